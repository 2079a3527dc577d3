/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* job_nodes.c - see there */
#include "lib/slurm/job_nodes.h"

extern bool sk8_next_job_node(const job_resources_t *resrcs, struct sk8_job_node *at)
{
	int k;

	if (!resrcs || !resrcs->node_bitmap || !resrcs->core_bitmap)
		return false;
	if (at->begun) {
		at->host++;
		at->of_kind++;
		at->first_core += at->cores;
		k = at->node_inx + 1;
	} else {
		at->begun = true;
		at->last = bit_fls(resrcs->node_bitmap);
		k = bit_ffs(resrcs->node_bitmap);
	}
	while ((k >= 0) && (k <= at->last) && !bit_test(resrcs->node_bitmap, k))
		k++;
	if ((k < 0) || (k > at->last) || (k >= node_record_count) || (at->host >= resrcs->nhosts))
		return false;
	if (at->of_kind >= resrcs->sock_core_rep_count[at->kind]) {
		at->kind++;
		at->of_kind = 0;
	}
	at->node_inx = k;
	at->cores = resrcs->sockets_per_node[at->kind] * resrcs->cores_per_socket[at->kind];
	return true;
}

/* As the select plugin counts: what a job that ends had is free from the end on. */
static int add_job(void *x, void *arg)
{
	job_record_t *job_ptr = x;
	struct sk8_node_use *use = arg;
	struct sk8_job_node at = { .begun = false };
	const job_resources_t *resrcs;

	if (!sk8_layout_fits_job(job_ptr))
		return -1;	/* stop */
	if (!IS_JOB_RUNNING(job_ptr) && !IS_JOB_SUSPENDED(job_ptr))
		return 0;
	if (IS_JOB_CONFIGURING(job_ptr) && sk8_is_exclusive(job_ptr))
		return 0;	/* it is launched when pods that are in its way have gone */
	resrcs = job_ptr->job_resrcs;
	while (sk8_next_job_node(resrcs, &at)) {
		const uint32_t end = MIN(at.first_core + at.cores, (uint32_t) bit_size(resrcs->core_bitmap));

		if (IS_JOB_RUNNING(job_ptr) && (at.first_core < end))
			use[at.node_inx].cores += bit_set_count_range(resrcs->core_bitmap, at.first_core, end);
		if (resrcs->memory_allocated)
			use[at.node_inx].memory_mb += resrcs->memory_allocated[at.host];
	}
	return 0;
}

extern struct sk8_node_use *sk8_node_use(void)
{
	struct sk8_node_use *use = xcalloc(node_record_count + 1, sizeof(*use));

	if (job_list)
		list_for_each_ro(job_list, add_job, use);
	return use;
}
