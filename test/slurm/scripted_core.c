/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * scripted_core.c - stands in for libsk8core.so in tests of lib/slurm and the
 * plugins on a real slurmctld: a test says what the engine does.
 *
 * One line in, one line out, on the socket SLURM_K8S_TEST_SOCKET; what the hooks
 * tell goes to the file SLURM_K8S_TEST_SOCKET.events. It is never installed.
 */
#define _GNU_SOURCE
#include "lib/sk8_abi.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_MASKS 8192
#define MAX_CORES 512

static const struct sk8_host *host;
static FILE *events;
static int listen_fd = -1;
static __thread bool submitting;

static const char *const state_names[] = {
	"PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT",
	"NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "OTHER_END",
};

/* ---- masks: immutable once published, freed with the last user -------------- */

struct published {
	struct sk8_masks masks;		/* first: a pointer to it is one to this */
	int users;
	struct sk8_mask mask[];
};

static pthread_mutex_t masks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct published *in_force;
static bool any_masks;

const struct sk8_masks *sk8_masks_get(void)
{
	struct published *p;

	if (!__atomic_load_n(&any_masks, __ATOMIC_ACQUIRE))
		return NULL;
	pthread_mutex_lock(&masks_lock);
	p = in_force;
	p->users++;
	pthread_mutex_unlock(&masks_lock);
	return &p->masks;
}

static void free_gres(const struct sk8_gres *gres, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++) {
		free((char *) gres[k].name);
		free((char *) gres[k].type);
		free((uint16_t *) gres[k].devices);
	}
	free((struct sk8_gres *) gres);
}

static struct sk8_gres *copy_gres(const struct sk8_gres *gres, uint32_t count)
{
	struct sk8_gres *copy = calloc(count + 1, sizeof(*copy));

	for (uint32_t k = 0; k < count; k++) {
		uint16_t *devices = calloc(gres[k].device_count + 1, sizeof(*devices));

		memcpy(devices, gres[k].devices, gres[k].device_count * sizeof(*devices));
		copy[k] = gres[k];
		copy[k].name = strdup(gres[k].name);
		copy[k].type = strdup(gres[k].type);
		copy[k].devices = devices;
	}
	return copy;
}

void sk8_masks_put(const struct sk8_masks *m)
{
	struct published *p = (struct published *) m;
	bool last;

	pthread_mutex_lock(&masks_lock);
	last = !--p->users;
	pthread_mutex_unlock(&masks_lock);
	if (!last)
		return;
	for (size_t k = 0; k < p->masks.count; k++) {
		free((struct sk8_mask *) p->mask[k].exclusive);	/* has nothing of its own */
		free((char *) p->mask[k].node);
		free((uint16_t *) p->mask[k].cores);
		free((uint32_t *) p->mask[k].jobs);
		free_gres(p->mask[k].gres, p->mask[k].gres_count);
	}
	free(p);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct sk8_mask *) a)->node, ((const struct sk8_mask *) b)->node);
}

/* p may be NULL; count 0 counts as no masks at all */
static void publish(struct published *p)
{
	static uint64_t generation;
	struct published *old;

	if (p) {
		qsort(p->mask, p->masks.count, sizeof(p->mask[0]), by_name);
		p->masks.mask = p->mask;
		p->masks.generation = ++generation;
		p->users = 1;
	}
	pthread_mutex_lock(&masks_lock);
	old = in_force;
	in_force = p;
	__atomic_store_n(&any_masks, p && p->masks.count, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&masks_lock);
	if (old)
		sk8_masks_put(&old->masks);
}

/* ---- hooks -------------------------------------------------------------------- */

/* "gpu:a100:2@0,3+foo::5@": name, type, count, devices */
static void print_gres(FILE *to, const struct sk8_gres *gres, uint32_t count)
{
	fputs("gres=", to);
	for (uint32_t k = 0; k < count; k++) {
		const struct sk8_gres *g = &gres[k];

		fprintf(to, "%s%s:%s:%lu@", k ? "+" : "", g->name, g->type, (unsigned long) g->count);
		for (uint32_t d = 0; d < g->device_count; d++)
			fprintf(to, "%s%u", d ? "," : "", g->devices[d]);
	}
	fputc(' ', to);
}

static void event(const char *what, const struct sk8_job *j)
{
	struct timespec t;

	if (!events)
		return;
	clock_gettime(CLOCK_REALTIME, &t);
	fprintf(events, "%ld.%06ld %s", (long) t.tv_sec, t.tv_nsec / 1000, what);
	if (j) {
		fprintf(events, " job=%u state=%s node=%s ended_by=%u by_us=%d exit=%u mem=%lu mark=%s ",
			j->job_id, state_names[j->state], j->node, j->ended_by, j->ended_by_us,
			j->exit_code, (unsigned long) j->memory_mb, j->mark);
		print_gres(events, j->gres, j->gres_count);
		fputs("cores=", events);
		for (uint32_t k = 0; k < j->core_count; k++)
			fprintf(events, "%s%u", k ? "," : "", j->cores[k]);
	}
	fputc('\n', events);
	fflush(events);
}

void sk8_on_node_init(bool goes_on) { event(goes_on ? "goes_on" : "node_init", NULL); }
void sk8_on_reconfigure(void) { event("reconfigure", NULL); }
void sk8_on_shutdown(void) { event("shutdown", NULL); }
void sk8_on_job_start(const struct sk8_job *j) { event("job_start", j); }
void sk8_on_job_fini(const struct sk8_job *j) { event("job_fini", j); }

static _Atomic bool keeps;	/* jobs, in the gate */

bool sk8_on_gate(const struct sk8_native_job *j)
{
	(void) j;
	if (keeps)
		event("gate", NULL);
	return keeps;
}

void sk8_on_native_resized(uint32_t job_id, int64_t submit_time)
{
	(void) submit_time;
	(void) job_id;
	event("resized", NULL);
}

void sk8_on_native_fini(uint32_t job_id, int64_t submit_time)
{
	(void) job_id;
	(void) submit_time;
}

bool sk8_submitting(void)
{
	return submitting;
}

bool sk8_is_mark(const char *c)
{
	return c && !strncmp(c, SK8_MARK_PREFIX, strlen(SK8_MARK_PREFIX));
}

/* partitions whose jobs get tokens, between commas; no test changes it while jobs are submitted */
static char token_partitions[256];

bool sk8_completes_tokens(const char *partition)
{
	char name[128];

	snprintf(name, sizeof(name), ",%s,", partition);
	return strstr(token_partitions, name);
}

/* ---- commands --------------------------------------------------------------------- */

struct words { char *w[64]; int n; };

static const char *value(const struct words *a, const char *key, const char *otherwise)
{
	size_t len = strlen(key);

	for (int k = 0; k < a->n; k++)
		if (!strncmp(a->w[k], key, len) && (a->w[k][len] == '='))
			return a->w[k] + len + 1;
	return otherwise;
}

static long number(const struct words *a, const char *key, long otherwise)
{
	const char *v = value(a, key, NULL);

	return v ? atol(v) : otherwise;
}

/* "0-3,6" */
static uint32_t parse_cores(const char *text, uint16_t *cores)
{
	uint32_t n = 0;

	while (text && *text && (n < MAX_CORES)) {
		char *end;
		long from = strtol(text, &end, 10), to = from;

		if (*end == '-')
			to = strtol(end + 1, &end, 10);
		for (long c = from; (c <= to) && (n < MAX_CORES); c++)
			cores[n++] = (uint16_t) c;
		text = (*end == ',') ? end + 1 : end;
	}
	return n;
}

/* As print_gres() writes it. */
static struct sk8_gres *parse_gres(const char *text, uint32_t *count)
{
	struct sk8_gres *gres = calloc(64, sizeof(*gres));
	char *copy = strdup(text ? text : ""), *rest = NULL;

	*count = 0;
	for (char *word = strtok_r(copy, "+", &rest); word && (*count < 64); word = strtok_r(NULL, "+", &rest)) {
		uint16_t *devices = calloc(MAX_CORES, sizeof(*devices));
		char *type = strchr(word, ':'), *number = strchr(type + 1, ':'), *at = strchr(word, '@');
		struct sk8_gres *g = &gres[(*count)++];

		g->name = strndup(word, type - word);
		g->type = strndup(type + 1, number - type - 1);
		g->count = strtoull(number + 1, NULL, 10);
		g->device_count = at ? parse_cores(at + 1, devices) : 0;
		g->devices = devices;
	}
	free(copy);
	return gres;
}

static const char *node_name(char *name, size_t size, const struct words *a, long i)
{
	if (value(a, "from", NULL))
		snprintf(name, size, "%s%ld", a->w[1], i);
	else
		snprintf(name, size, "%s", a->w[1]);
	return name;
}

static struct sk8_mask *copy_exclusive(const struct sk8_mask *m, const char *node)
{
	struct sk8_mask *copy = m ? calloc(1, sizeof(*copy)) : NULL;

	if (copy) {
		*copy = *m;
		copy->node = node;
	}
	return copy;
}

static uint32_t *copy_job(uint32_t id)
{
	uint32_t *copy = malloc(sizeof(*copy));

	*copy = id;
	return copy;
}

/* Of jobs that ask for k8s.exclusive: exclusive_milli=N (0: nothing is hidden from them), exclusive_whole=1 */
static struct sk8_mask *parse_exclusive(const struct words *a, const char *node)
{
	const struct sk8_mask m = {
		.milli_cpu = number(a, "exclusive_milli", 0),
		.whole = number(a, "exclusive_whole", 0),
	};

	return (value(a, "exclusive_milli", NULL) || m.whole) ? copy_exclusive(&m, node) : NULL;
}

/* mask NODE [cores=0-3] [more=N] [milli=N] [mem=MB] [whole=1] [node_milli=N] [node_mem=MB]
 * [full_pods=1] [full_jobs=1] [full_but=CPUS] [can_milli=N] [can_mem=MB] [gres=gpu:TYPE:2@0-1+...] [exclusive_milli=N] [exclusive_whole=1] [job=ID] [some_jobs=1]: replaces what it had. node_: of pods that belong to the node; can_: allocatable.
 * "mask n from=1 to=1000" masks n1 to n1000. */
static void cmd_mask(FILE *io, const struct words *a, bool remove)
{
	long from = number(a, "from", 0), to = number(a, "to", from);
	struct published *p = calloc(1, sizeof(*p) + MAX_MASKS * sizeof(p->mask[0]));
	static uint64_t version;
	size_t n = 0;

	/* only this thread publishes: no lock to read what is in force */
	for (size_t k = 0; in_force && (k < in_force->masks.count) && (n < MAX_MASKS); k++) {
		const struct sk8_mask *m = &in_force->mask[k];
		bool replaced = a->n < 2;

		for (long i = from; (i <= to) && !replaced; i++) {
			char name[256];

			replaced = !strcmp(node_name(name, sizeof(name), a, i), m->node);
		}
		if (replaced)
			continue;
		p->mask[n] = *m;
		p->mask[n].node = strdup(m->node);
		p->mask[n].exclusive = copy_exclusive(m->exclusive, p->mask[n].node);
		p->mask[n].gres = copy_gres(m->gres, m->gres_count);
		p->mask[n].cores = memcpy(malloc(MAX_CORES * 2), m->cores, m->core_count * 2);
		p->mask[n].jobs = copy_job(m->job_count ? m->jobs[0] : 0);
		n++;
	}
	for (long i = from; (i <= to) && (a->n > 1) && !remove && (n < MAX_MASKS); i++) {
		uint16_t *cores = malloc(MAX_CORES * sizeof(*cores));
		char name[256];

		(void) node_name(name, sizeof(name), a, i);
		p->mask[n] = (struct sk8_mask) {
			.node = strdup(name),
			.core_count = parse_cores(value(a, "cores", NULL), cores),
			.cores = cores,
			.more_cores = number(a, "more", 0),
			.milli_cpu = number(a, "milli", 0),
			.memory_mb = number(a, "mem", 0),
			.whole = number(a, "whole", 0),
			.overhead_milli_cpu = number(a, "node_milli", 0),
			.overhead_mb = number(a, "node_mem", 0),
			.allocatable_milli_cpu = number(a, "can_milli", 0),
			.allocatable_mb = number(a, "can_mem", 0),
			.full_for_pods = number(a, "full_pods", 0),
			.full_for_jobs = number(a, "full_jobs", 0),
			.full_but_cpus = number(a, "full_but", 0),
			.version = ++version,
			.job_count = value(a, "job", NULL) != NULL,
			.jobs = copy_job(number(a, "job", 0)),
			.some_jobs = number(a, "some_jobs", 0),
		};
		p->mask[n].exclusive = parse_exclusive(a, p->mask[n].node);
		p->mask[n].gres = parse_gres(value(a, "gres", NULL), &p->mask[n].gres_count);
		n++;
	}
	p->masks.count = n;
	host->ops->lock(true);
	publish(p);
	host->ops->unlock(true, remove, true);
	fprintf(io, "masks=%zu\n", n);
}

static void print_outcome(FILE *io, const struct sk8_outcome *o)
{
	fprintf(io, "rc=%d fatal=%d job=%u submit_time=%ld running=%d told=%d text=%s\n", o->rc, o->fatal,
		o->job_id, (long) o->submit_time, o->running, o->told, o->text);
}

/* submit count=N per=N uid= gid= partition= cpus= mem= minutes= tres= ... */
static void cmd_submit(FILE *io, const struct words *a)
{
	long count = number(a, "count", 1), per = number(a, "per", 1), made = 0, running = 0;
	struct sk8_outcome o = { .rc = 0 };
	char mark[512], name[256];
	struct timespec t0, t1, c0, c1;
	struct sk8_submit s = {
		.mark = mark, .job_name = name,
		.uid = number(a, "uid", 65534), .gid = number(a, "gid", 65534),
		.account = value(a, "account", ""), .partition = value(a, "partition", ""),
		.qos = value(a, "qos", ""), .reservation = value(a, "reservation", ""),
		.wckey = value(a, "wckey", ""), .comment = value(a, "comment", ""),
		.features = value(a, "features", ""), .licenses = value(a, "licenses", ""),
		.tres_per_node = value(a, "tres", ""),
		.cpus = number(a, "cpus", 1), .memory_mb = number(a, "mem", 0),
		.time_limit_minutes = number(a, "minutes", 0),
		.excluded_nodes = value(a, "exclude", ""), .required_node = value(a, "node", ""),
		.held = number(a, "held", 0),
		.nice_set = value(a, "nice", NULL) != NULL, .nice = number(a, "nice", 0),
		.begin_time = number(a, "begin", SK8_NO_TIME),
	};

	clock_gettime(CLOCK_MONOTONIC, &t0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &c0);
	for (long k = 0; k < count;) {
		host->ops->lock(true);
		for (long m = 0; (m < per) && (k < count); m++, k++) {
			snprintf(name, sizeof(name), "%s%ld", value(a, "name", "pod-"), k);
			snprintf(mark, sizeof(mark), "%s", value(a, "mark", "k8s:prod/ns/pod/uid"));
			if (count > 1)
				snprintf(mark, sizeof(mark), "k8s:prod/ns/%s/uid-%ld", name, k);
			submitting = true;
			host->ops->submit(&s, &o);
			submitting = false;
			made += !!o.job_id;
			running += o.running;
		}
		host->ops->unlock(true, true, false);
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &c1);
	fprintf(io, "made=%ld started=%ld seconds=%.4f cpu=%.6f ", made, running,
		(t1.tv_sec - t0.tv_sec) + (t1.tv_nsec - t0.tv_nsec) / 1e9,
		(c1.tv_sec - c0.tv_sec) + (c1.tv_nsec - c0.tv_nsec) / 1e9);
	print_outcome(io, &o);
}

/* the job's own submit_time and mark, unless the test gives others */
static void identify(const struct words *a, uint32_t id, int64_t *submit_time, char *mark, size_t size)
{
	struct sk8_job j;

	*submit_time = number(a, "submit_time", 0);
	snprintf(mark, size, "%s", value(a, "mark", ""));
	if (!host->ops->find(id, &j))
		return;
	if (!value(a, "submit_time", NULL))
		*submit_time = j.submit_time;
	if (!value(a, "mark", NULL))
		snprintf(mark, size, "%s", j.mark);
}

/* end ID STATE [exit=STATUS] [comment=] [node=] */
static void cmd_end(FILE *io, const struct words *a)
{
	struct sk8_end e = { .job_id = atoi(a->w[1]), .exit_code = number(a, "exit", 0),
			     .comment = value(a, "comment", ""), .node = value(a, "node", "") };
	struct sk8_outcome o;
	char mark[512];

	for (size_t k = 0; k < sizeof(state_names) / sizeof(state_names[0]); k++)
		if (!strcmp(a->w[2], state_names[k]))
			e.state = k;
	host->ops->lock(true);
	identify(a, e.job_id, &e.submit_time, mark, sizeof(mark));
	e.mark = mark;
	host->ops->end(&e, &o);
	host->ops->unlock(true, true, false);
	print_outcome(io, &o);
}

/* one answer for each node that a job has */
static void print_native(void *arg, const struct sk8_native_job *j)
{
	FILE *io = arg;

	for (uint32_t k = 0; k < j->share_count; k++) {
		fprintf(io, "job=%u submit_time=%ld requeues=%d exclusive=%d ending=%d node=%s cpus=%u mem=%lu ", j->job_id,
			(long) j->submit_time, j->requeues, j->exclusive, j->ending, j->shares[k].node, j->shares[k].cpus,
			(unsigned long) j->shares[k].memory_mb);
		print_gres(io, j->shares[k].gres, j->shares[k].gres_count);
		fputc(';', io);
	}
}

static void cmd_natives(FILE *io)
{
	host->ops->lock(false);
	host->ops->each_native(print_native, io);
	host->ops->unlock(false, false, false);
	fputc('\n', io);
}

static void note_submit_time(void *arg, const struct sk8_native_job *j)
{
	*(int64_t *) arg = j->submit_time;
}

/* end_native ID [requeue=1] [comment=] [submit_time=] [told=1] */
static void cmd_end_native(FILE *io, const struct words *a)
{
	struct sk8_native_end e = { .job_id = atoi(a->w[1]), .requeue = number(a, "requeue", 0),
				    .comment = value(a, "comment", "") };
	struct sk8_outcome o;

	host->ops->lock(true);
	host->ops->with_native(e.job_id, note_submit_time, &e.submit_time);
	e.submit_time = number(a, "submit_time", e.submit_time);
	e.told = number(a, "told", 0);
	host->ops->end_native(&e, &o);
	host->ops->unlock(true, true, false);
	print_outcome(io, &o);
}

/* tell_refusal ID [why=] */
static void cmd_tell_refusal(FILE *io, const struct words *a)
{
	const struct sk8_gate_answer answer = { .job_id = atoi(a->w[1]), .why = value(a, "why", "") };
	bool told;

	host->ops->lock(false);
	told = host->ops->tell_refusal(&answer);
	host->ops->unlock(false, false, false);
	fprintf(io, "told=%d\n", told);
}

/* answer ID open|refuse [delay=] [why=] */
static void cmd_answer(FILE *io, const struct words *a)
{
	const struct sk8_gate_answer answer = { .job_id = atoi(a->w[1]), .open = !strcmp(a->w[2], "open"),
						.delay = number(a, "delay", 0), .why = value(a, "why", "") };

	host->ops->answer_gate(&answer);
	fprintf(io, "done\n");
}

/* of a job of Slurm's own, or of ours */
static void note_job(uint32_t id, int64_t *submit_time)
{
	struct sk8_job j;

	if (host->ops->find(id, &j))
		*submit_time = j.submit_time;
	else
		host->ops->with_native(id, note_submit_time, submit_time);
}

/* devices ID NODE GRES 0-3,6 [submit_time=] [from=ID]: of a job in the gate, or of one of ours */
static void cmd_devices(FILE *io, const struct words *a)
{
	uint16_t devices[MAX_CORES];
	struct sk8_device_change c = { .job_id = atoi(a->w[1]), .node = a->w[2], .gres = a->w[3], .devices = devices };
	struct sk8_outcome o;

	c.device_count = parse_cores(a->w[4], devices);
	c.from_job = number(a, "from", 0);
	host->ops->lock(true);
	note_job(c.job_id, &c.submit_time);
	note_job(c.from_job, &c.from_submit_time);
	c.submit_time = number(a, "submit_time", c.submit_time);
	host->ops->set_devices(&c, &o);
	host->ops->unlock(true, true, false);
	print_outcome(io, &o);
}

/* start ID NODE */
static void cmd_start(FILE *io, const struct words *a)
{
	uint32_t id = atoi(a->w[1]);
	struct sk8_outcome o;
	int64_t submit_time;
	char mark[512];

	host->ops->lock(true);
	identify(a, id, &submit_time, mark, sizeof(mark));
	host->ops->start(id, submit_time, mark, a->w[2], &o);
	host->ops->unlock(true, true, false);
	print_outcome(io, &o);
}

/* exclude ID NODES */
static void cmd_exclude(FILE *io, const struct words *a)
{
	uint32_t id = atoi(a->w[1]);
	struct sk8_outcome o;
	int64_t submit_time;
	char mark[512];

	host->ops->lock(true);
	identify(a, id, &submit_time, mark, sizeof(mark));
	host->ops->exclude(id, submit_time, mark, (a->n > 2) ? a->w[2] : "", &o);
	host->ops->unlock(true, true, false);
	print_outcome(io, &o);
}

static void print_job(void *arg, const struct sk8_job *j)
{
	FILE *io = arg;

	fprintf(io, "job=%u state=%s held=%d priority=%u partition=%s node=%s cores=%u mem=%lu exit=%u ended_by=%u by_us=%d ",
		j->job_id, state_names[j->state], j->held, j->priority, j->partition, j->node,
		j->core_count, (unsigned long) j->memory_mb, j->exit_code, j->ended_by, j->ended_by_us);
	print_gres(io, j->gres, j->gres_count);
	fprintf(io, "excluded=%s mark=%s reason=%s;", j->excluded_nodes, j->mark, j->reason);
}

static void print_node(void *arg, const struct sk8_node *n)
{
	fprintf(arg, "node=%s cpus=%u cores=%u sockets=%ux%u tpc=%u mem=%lu usable=%d drain=%d down=%d fail=%d maint=%d uid=%d jobs=%u gres=",
		n->name, n->cpus, n->cores, n->sockets, n->cores_per_socket, n->threads_per_core, (unsigned long) n->memory_mb, n->usable,
		n->drain, n->down, n->fail, n->maint, (int) n->reason_uid, n->job_count);
	for (uint32_t i = 0; i < n->gres_count; i++)
		fprintf(arg, "%s%s:%s:%lu", i ? "," : "", n->gres[i].name, n->gres[i].type, (unsigned long) n->gres[i].count);
	fprintf(arg, " used=%u,%lu", n->used_cores, (unsigned long) n->used_memory_mb);
	for (uint32_t i = 0; i < n->used_gres_count; i++)
		fprintf(arg, ",%s:%lu", n->used_gres[i].name, (unsigned long) n->used_gres[i].count);
	fprintf(arg, " reason=%s;", n->reason);
}

/* node NAME drain|down|resume [reason=] [expected=]: as it is afterwards */
static void cmd_node(FILE *io, const struct words *a)
{
	struct sk8_node_change c = {
		.node = a->w[1], .reason = value(a, "reason", ""), .expected = value(a, "expected", ""),
		.action = !strcmp(a->w[2], "down") ? SK8_NODE_DOWN :
			  !strcmp(a->w[2], "resume") ? SK8_NODE_RESUME : SK8_NODE_DRAIN,
	};
	struct sk8_outcome o;
	struct sk8_node n;

	host->ops->lock(true);
	host->ops->change_node(&c, &o);
	fprintf(io, "rc=%d ", o.rc);
	if (host->ops->find_node(c.node, &n))
		print_node(io, &n);
	host->ops->unlock(true, true, false);
	fputc('\n', io);
}

/* features NAME [expected=] [expected_active=] [features=] [active=]: as they are afterwards */
static void cmd_features(FILE *io, const struct words *a)
{
	struct sk8_feature_change c = {
		.node = a->w[1], .expected = value(a, "expected", ""), .expected_active = value(a, "expected_active", ""),
		.features = value(a, "features", ""), .active = value(a, "active", ""),
	};
	struct sk8_outcome o;
	struct sk8_node n;

	host->ops->lock(true);
	host->ops->change_features(&c, &o);
	fprintf(io, "rc=%d ", o.rc);
	if (host->ops->find_node(c.node, &n))
		fprintf(io, "features=%s active=%s", n.features, n.active_features);
	host->ops->unlock(true, true, false);
	fputc('\n', io);
}

static void cmd_keep_up(FILE *io)
{
	host->ops->lock(true);
	if (host->ops->saves_power())
		host->ops->keep_masked_nodes_up();
	host->ops->unlock(true, false, false);
	fprintf(io, "saves_power=%d\n", host->ops->saves_power());
}

static void cmd_find(FILE *io, const struct words *a)
{
	struct sk8_job j;

	host->ops->lock(false);
	if (host->ops->find(atoi(a->w[1]), &j))
		print_job(io, &j);
	host->ops->unlock(false, false, false);
	fputc('\n', io);
}

static void cmd_list(FILE *io, bool jobs)
{
	host->ops->lock(false);
	if (jobs)
		host->ops->each_job(print_job, io);
	else
		host->ops->each_node(print_node, io);
	host->ops->unlock(false, false, false);
	fputc('\n', io);
}

static void command(FILE *io, char *line)
{
	struct words a = { .n = 0 };
	char *rest = NULL;

	for (char *t = strtok_r(line, "\t\n", &rest); t && (a.n < 64); t = strtok_r(NULL, "\t\n", &rest))
		a.w[a.n++] = t;
	if (!a.n)
		return;
	if (!strcmp(a.w[0], "active"))
		fprintf(io, "active=%d log_level=%d config=%s state_dir=%s cluster=%s version=%s uid=%u\n",
			host->ops->active(), host->log_level(), host->config_path, host->state_dir,
			host->slurm_cluster, host->slurm_version, host->slurm_uid);
	else if (!strcmp(a.w[0], "tokens"))
		fprintf(io, "%d\n", snprintf(token_partitions, sizeof(token_partitions), ",%s,", (a.n > 1) ? a.w[1] : ""));
	else if (!host->ops->active())
		fprintf(io, "not active\n");
	else if (!strcmp(a.w[0], "mask") || !strcmp(a.w[0], "unmask"))
		cmd_mask(io, &a, a.w[0][0] == 'u');
	else if (!strcmp(a.w[0], "submit"))
		cmd_submit(io, &a);
	else if (!strcmp(a.w[0], "end") && (a.n > 2))
		cmd_end(io, &a);
	else if (!strcmp(a.w[0], "natives"))
		cmd_natives(io);
	else if (!strcmp(a.w[0], "end_native") && (a.n > 1))
		cmd_end_native(io, &a);
	else if (!strcmp(a.w[0], "gate") && (a.n > 1))
		fprintf(io, "keeps=%d\n", keeps = !strcmp(a.w[1], "keeps"));
	else if (!strcmp(a.w[0], "devices") && (a.n > 4))
		cmd_devices(io, &a);
	else if (!strcmp(a.w[0], "tell_refusal") && (a.n > 1))
		cmd_tell_refusal(io, &a);
	else if (!strcmp(a.w[0], "answer") && (a.n > 2))
		cmd_answer(io, &a);
	else if (!strcmp(a.w[0], "start") && (a.n > 2))
		cmd_start(io, &a);
	else if (!strcmp(a.w[0], "exclude") && (a.n > 1))
		cmd_exclude(io, &a);
	else if (!strcmp(a.w[0], "node") && (a.n > 2))
		cmd_node(io, &a);
	else if (!strcmp(a.w[0], "features") && (a.n > 1))
		cmd_features(io, &a);
	else if (!strcmp(a.w[0], "keep_up"))
		cmd_keep_up(io);
	else if (!strcmp(a.w[0], "find") && (a.n > 1))
		cmd_find(io, &a);
	else if (!strcmp(a.w[0], "jobs") || !strcmp(a.w[0], "nodes"))
		cmd_list(io, a.w[0][0] == 'j');
	else
		fprintf(io, "unknown command\n");
}

static void *serve(void *arg)
{
	(void) arg;
	for (;;) {
		char *line = NULL;
		size_t room = 0;
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		FILE *io;

		if ((fd < 0) && ((errno == EINTR) || (errno == ECONNABORTED)))
			continue;
		if (fd < 0)
			return NULL;
		io = fdopen(fd, "r+");
		if (getline(&line, &room, io) > 0)
			command(io, line);
		free(line);
		fclose(io);
	}
}

const char SK8_BORDER[] = SK8_STAMP;

int sk8_runtime_acquire(const struct sk8_host *h)
{
	const char *path = getenv("SLURM_K8S_TEST_SOCKET");
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	sigset_t all, old;
	pthread_t thread;
	char name[4096];

	if (host || !path || (strlen(path) >= sizeof(sa.sun_path)))
		return 0;
	host = h;
	snprintf(name, sizeof(name), "%s.events", path);
	events = fopen(name, "ae");
	memcpy(sa.sun_path, path, strlen(path) + 1);
	unlink(path);
	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listen_fd, (struct sockaddr *) &sa, sizeof(sa)) || listen(listen_fd, 8))
		return -1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_create(&thread, NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_detach(thread);
	return 0;
}

void sk8_runtime_release(void)
{
}
