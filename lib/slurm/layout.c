/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * layout.c - a last check that our headers describe the slurmctld we run in.
 *
 * The plugin's version was compared with slurmctld's already, but distributions
 * patch: a build of 26.05.5 had a job_record_t with 8 bytes more before job_id
 * than the source of the same release. job_ptr->magic alone proves nothing, it is
 * the first member; slurmctld's own hash table knows better.
 */
#include "lib/slurm/slurmctld.h"

static enum { UNKNOWN, FITS, BROKEN } layout;

static const char *why_not(job_record_t *job_ptr)
{
	node_record_t *node_ptr;
	int i = 0;

	if ((node_ptr = next_node(&i)) && (node_ptr->magic != NODE_MAGIC))
		return "node_record_t";
	if (!job_ptr)
		return NULL;
	if (job_ptr->magic != JOB_MAGIC)
		return "job_record_t (magic)";
	if (find_job_record(job_ptr->job_id) != job_ptr)
		return "job_record_t (job_id)";
	if (job_ptr->details && (job_ptr->details->magic != DETAILS_MAGIC))
		return "struct job_details";
	if (job_ptr->part_ptr && (job_ptr->part_ptr->magic != PART_MAGIC))
		return "part_record_t";
	return NULL;
}

extern bool sk8_layout_fits(job_record_t *job_ptr)
{
	const char *what;
	int now = __atomic_load_n(&layout, __ATOMIC_RELAXED);

	if (now != UNKNOWN)
		return now == FITS;
	if ((what = why_not(job_ptr))) {
		error("slurm-k8s: %s of this slurmctld is not that of Slurm %s, for which slurm-k8s was built: it does nothing from now on. Build it with the source of the installed Slurm.",
		      what, SK8_SLURM_VERSION);
		__atomic_store_n(&layout, BROKEN, __ATOMIC_RELAXED);
		return false;
	}
	/* without a job only half of it was seen */
	if (job_ptr && job_ptr->details && job_ptr->part_ptr)
		__atomic_store_n(&layout, FITS, __ATOMIC_RELAXED);
	return true;
}
