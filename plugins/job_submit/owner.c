/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* owner.c - see owner.h. What a request does not change is NO_VAL of its width, or NULL (slurm_init_job_desc_msg()). */
#include "plugins/job_submit/owner.h"

static bool changes_amount(const job_desc_msg_t *d)
{
	const uint32_t wide[] = { d->min_cpus, d->max_cpus, d->num_tasks, d->min_nodes, d->max_nodes };
	const uint16_t narrow[] = {
		d->core_spec, d->cores_per_socket, d->cpus_per_task, d->ntasks_per_core, d->ntasks_per_node,
		d->ntasks_per_socket, d->ntasks_per_tres, d->pn_min_cpus, d->shared, d->sockets_per_node,
		d->threads_per_core,
	};

	for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++)
		if (wide[i] != NO_VAL)
			return true;
	for (size_t i = 0; i < sizeof(narrow) / sizeof(*narrow); i++)
		if (narrow[i] != NO_VAL16)
			return true;
	return (d->pn_min_memory != NO_VAL64) || (d->overcommit != NO_VAL8);
}

extern bool sk8_takes_memory(const job_desc_msg_t *d, const job_record_t *job_ptr)
{
	return !IS_JOB_PENDING(job_ptr) && (d->pn_min_memory != NO_VAL64);
}

extern bool sk8_changes_request(const job_desc_msg_t *d)
{
	const char *const lists[] = {
		d->cpus_per_tres, d->exc_nodes, d->mem_per_tres, d->req_nodes, d->tres_per_job, d->tres_per_node,
		d->tres_per_socket, d->tres_per_task,
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (lists[i])
			return true;
	return changes_amount(d);
}
