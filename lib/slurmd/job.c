/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* job.c - see there */
#include <stdio.h>
#include "lib/slurm/sizes.h"
#include "lib/slurmd/job.h"

enum { LONGEST_COMMAND = 65536 };

static const char *const other_headers =
	"jobs of this slurmd's Slurm are not those of the Slurm " SK8_SLURM_VERSION
	" which slurm-k8s was built with; build it with the source of the installed Slurm";

static const char *node;
static const char *spool;	/* SlurmdSpoolDir of that node; stepd_available() would leak what it finds itself */

extern void sk8_find_jobs_on(const char *name)
{
	node = name;
	spool = slurm_conf_expand_slurmd_path(slurm_conf.slurmd_spooldir, name, NULL);
}

/* -1: the job is not there */
static int index_of_node(const char *nodes)
{
	__auto_type list = hostlist_create(nodes);	/* of another type in each release */
	const int found = list ? hostlist_find(list, node) : -1;

	if (list)
		hostlist_destroy(list);
	return found;
}

/* "0,3": Slurm's cores of the node that the job has. To be freed by xfree(). */
static char *cores_of(job_resources_t *of)
{
	char *text = xstrdup("");
	uint16_t sockets, cores;
	int inx, first;

	if (!of || !of->core_bitmap || !of->nodes || ((inx = index_of_node(of->nodes)) < 0) || ((uint32_t) inx >= of->nhosts) ||
	    get_job_resources_cnt(of, inx, &sockets, &cores) ||
	    ((first = get_job_resources_offset(of, inx, 0, 0)) < 0))
		return text;
	for (int core = 0; core < sockets * cores; core++)
		if ((first + core < bit_size(of->core_bitmap)) && bit_test(of->core_bitmap, first + core))
			xstrfmtcat(text, "%s%d", text[0] ? "," : "", core);
	return text;
}

/* Distributions patch, and micro releases change structs (lib/slurm/layout.c). */
static bool is_of_our_headers(const job_info_msg_t *jobs)
{
	if (!sk8_is_sized(jobs, sizeof(*jobs)) || (jobs->record_count &&
	    !sk8_is_sized(jobs->job_array, jobs->record_count * sizeof(jobs->job_array[0]))))
		return false;
	for (uint32_t i = 0; i < jobs->record_count; i++) {
		const job_resources_t *of = jobs->job_array[i].job_resrcs;

		if (of && !sk8_is_sized(of, sizeof(*of)))
			return false;
	}
	return true;
}

static void tell(const slurm_job_info_t *job, void (*f)(void *, const struct sk8_agent_job *), void *arg)
{
	const bool running = (job->job_state & JOB_STATE_BASE) == JOB_RUNNING &&
		!(job->job_state & JOB_COMPLETING);
	/* job->nodes is sorted by name, the cores are in the order of slurmctld's nodes */
	char *cores = running ? cores_of(job->job_resrcs) : xstrdup("");

	f(arg, &(struct sk8_agent_job) {
		.mark = job->admin_comment,
		.submit_time = job->submit_time,
		.running = running,
		.cores = cores,
		.exclusive = job->shared == JOB_SHARED_NONE,
	});
	xfree(cores);
}

extern const char *sk8_find_job(uint32_t id, void (*f)(void *arg, const struct sk8_agent_job *job),
				void *arg)
{
	job_info_msg_t *found = NULL;
	const char *trouble = NULL;

	if (sk8_load_job(&found, id)) {
		if (errno == ESLURM_INVALID_JOB_ID)
			return NULL;
		return slurm_strerror(errno);
	}
	if (!is_of_our_headers(found))
		trouble = other_headers;
	for (uint32_t i = 0; !trouble && (i < found->record_count); i++)
		if (found->job_array[i].job_id == id)
			tell(&found->job_array[i], f, arg);
	slurm_free_job_info_msg(found);
	return trouble;
}

struct steps {
	void (*f)(void *arg, uint32_t job_id);
	void *arg;
};

static int tell_step(void *x, void *arg)
{
	const step_loc_t *step = x;
	const struct steps *to = arg;

	if (sk8_is_sized(step, sizeof(*step)))
		to->f(to->arg, step->step_id.job_id);
	return 0;
}

extern void sk8_steps_here(void (*f)(void *arg, uint32_t job_id), void *arg)
{
	struct steps to = { .f = f, .arg = arg };
	__auto_type steps = stepd_available(spool, node);	/* of another type in each release */

	if (!steps)
		return;
	(void) list_for_each(steps, tell_step, &to);
	list_destroy(steps);
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
