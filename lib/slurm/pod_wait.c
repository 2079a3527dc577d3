/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
#include "lib/slurm/pod_wait.h"

/* Jobs that are looked at this seldom wait for other things as well, seconds. */
#define FORGOTTEN_AFTER 900

static struct wait {
	uint32_t job_id;	/* 0: nobody's */
	time_t since, last;
} waits[256];

#define END (waits + sizeof(waits) / sizeof(waits[0]))

static struct wait *find(uint32_t job_id)
{
	for (struct wait *w = waits; w < END; w++)
		if (w->job_id == job_id)
			return w;
	return NULL;
}

/* Whoever was not looked at for the longest time is forgotten: it is said to begin to wait. */
static struct wait *oldest(void)
{
	struct wait *found = waits;

	for (struct wait *w = waits; w < END; w++)
		if (w->last < found->last)
			found = w;
	return found;
}

extern time_t sk8_held_up_by_pods(uint32_t job_id, time_t now)
{
	struct wait *w = find(job_id);
	time_t lasted;

	if (!w)
		*(w = oldest()) = (struct wait) { .job_id = job_id, .since = now };
	else if ((now < w->last) || (now - w->last > FORGOTTEN_AFTER))
		w->since = now;
	w->last = now;
	lasted = now - w->since;
	return now + ((lasted > SK8_SHORTEST_POD_WAIT) ? lasted : SK8_SHORTEST_POD_WAIT);
}

extern void sk8_not_held_up_by_pods(uint32_t job_id)
{
	struct wait *w = find(job_id);

	if (w)
		*w = (struct wait) { 0 };
}
