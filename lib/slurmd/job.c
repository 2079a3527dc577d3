/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* job.c - see there */
#include <stdio.h>
#include "lib/slurm/release.h"
#include "lib/slurmd/job.h"

enum { LONGEST_CORES = 65536, LONGEST_COMMAND = 65536 };

static const char *node;

extern void sk8_find_jobs_on(const char *name)
{
	node = name;
}

static void tell(const slurm_job_info_t *job, void (*f)(void *, const struct sk8_agent_job *), void *arg)
{
	const bool running = (job->job_state & JOB_STATE_BASE) == JOB_RUNNING &&
		!(job->job_state & JOB_COMPLETING);
	char *cores = xmalloc(LONGEST_CORES);

	/* In slurmd libslurm has no table of nodes, and takes each core for one CPU: that is what we want. */
	if (running && job->job_resrcs &&
	    slurm_job_cpus_allocated_str_on_node(cores, LONGEST_CORES, job->job_resrcs, node))
		cores[0] = '\0';
	f(arg, &(struct sk8_agent_job) {
		.mark = job->admin_comment,
		.running = running,
		.cores = cores,
	});
	xfree(cores);
}

extern const char *sk8_find_job(uint32_t id, void (*f)(void *arg, const struct sk8_agent_job *job),
				void *arg)
{
	job_info_msg_t *found = NULL;

	if (slurm_load_job(&found, id, SHOW_ALL | SHOW_DETAIL)) {
		if (errno == ESLURM_INVALID_JOB_ID)
			return NULL;
		return slurm_strerror(errno);
	}
	for (uint32_t i = 0; i < found->record_count; i++)
		if (found->job_array[i].job_id == id)
			tell(&found->job_array[i], f, arg);
	slurm_free_job_info_msg(found);
	return NULL;
}

extern char *sk8_node_of_command_line(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text, *found = NULL;
	size_t size;

	if (!file)
		return NULL;
	text = xmalloc(LONGEST_COMMAND + 2);
	size = fread(text, 1, LONGEST_COMMAND, file);	/* ends with two zeros */
	fclose(file);
	for (char *word = text; !found && (word < text + size); word += strlen(word) + 1) {
		if (strncmp(word, "-N", 2))
			continue;
		if (word[2])
			found = xstrdup(word + 2);
		else if (word[3])
			found = xstrdup(word + 3);
	}
	xfree(text);
	return found;
}
