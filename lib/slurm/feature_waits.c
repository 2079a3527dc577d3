/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * feature_waits.c - which label a job waits for that has gone while it waited.
 *
 * Slurm holds such a job (BadConstraints) and does not say for which feature. Its comment says it from the
 * change of labels on that took the last node, until another one gives it a node, or it runs.
 */
#include "lib/slurm/feature_hint.h"
#include "lib/slurm/slurmctld.h"

/* Many jobs have the same constraint. Those of more are told at a later change. */
enum { MOST_KINDS = 64 };

struct kind {
	const char *constraint;	/* of a job that is there as long as this is */
	uint32_t min_nodes;
	bool known;		/* else what was said stays */
	char *hint;		/* NULL: there are nodes */
	uint32_t told;
};

struct kinds {
	struct kind kind[MOST_KINDS];
	int count;
};

static struct kind *kind_of(struct kinds *kinds, const job_details_t *details)
{
	struct kind *k = kinds->kind;

	for (; k < kinds->kind + kinds->count; k++)
		if ((k->min_nodes == details->min_nodes) && !xstrcmp(k->constraint, details->features))
			return k;
	if (kinds->count == MOST_KINDS)
		return NULL;
	kinds->count++;
	*k = (struct kind) {
		.constraint = details->features, .min_nodes = details->min_nodes,
	};
	k->known = sk8_lost_feature_hint(k->constraint, k->min_nodes, &k->hint);
	return k;
}

static int tell(void *x, void *arg)
{
	job_record_t *job_ptr = x;
	struct kind *kind;

	if (!sk8_layout_fits_job(job_ptr) || !IS_JOB_PENDING(job_ptr) || !job_ptr->details || !xstrstr(job_ptr->details->features, "k8s."))
		return SLURM_SUCCESS;
	if ((kind = kind_of(arg, job_ptr->details)) && kind->known && sk8_comment_waits(job_ptr, kind->hint))
		kind->told++;
	return SLURM_SUCCESS;
}

extern void sk8_tell_feature_waits(void)
{
	struct kinds kinds = { .count = 0 };

	(void) list_for_each(job_list, tell, &kinds);
	for (struct kind *k = kinds.kind; k < kinds.kind + kinds.count; k++) {
		if (k->hint && k->told)
			info("slurm-k8s: %u jobs with --constraint=%.1200s wait: %s", k->told, k->constraint, k->hint);
		xfree(k->hint);
	}
}
