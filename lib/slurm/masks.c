/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * masks.c - keep Slurm's jobs away from what pods hold.
 *
 * Around the stock job_test the masked cores are added to the "exclude these
 * cores" argument, the memory to the node's alloc_memory, and GRES to what the node
 * counts as allocated (mask_gres.h), if the job asks for it; a node that has all its pods
 * is no candidate of a job that needs one more there. Afterwards all is as it was. job_test
 * always runs with the node write lock, so nobody sees the marks.
 *
 * No marks where the question is "could it ever run here?" (TEST_ONLY, at submit:
 * pods go), nor for the made-up jobs that reservation code asks about.
 *
 * What is masked where: mask_table.h, with the locks it wants.
 */
#include <dlfcn.h>
#include "lib/slurm/gres.h"
#include "lib/slurm/mask_gres.h"
#include "lib/slurm/mask_table.h"
#include "lib/slurm/pod_wait.h"
#include "lib/slurm/sizes.h"

static int (*stock_job_test)(SK8_JOB_TEST_PARAMS);
static node_use_record_t **node_usage;	/* &select_node_usage of the stock plugin */
extern bool sk8_masks_start(void *stock)
{
	node_usage = dlsym(stock, "select_node_usage");
	stock_job_test = dlsym(stock, "select_p_job_test");
	return node_usage && stock_job_test && sk8_mask_table_start(stock);
}

extern bool sk8_masks_fit(void)
{
	return (!*node_usage ||
		sk8_is_sized(*node_usage, node_record_count * sizeof(**node_usage))) &&
		sk8_mask_table_fits();
}

/* ---- marks -------------------------------------------------------------------- */

struct marks {
	sk8_excluded_t excluded;
	struct sk8_gres_marks gres;
	uint32_t count;
	struct { int node_inx; uint64_t memory; } node[];
};

/*
 * Does the job want the node for itself, with all of its GRES? By OverSubscribe=EXCLUSIVE of its partition, too: from
 * 24.11 on details say so only while it is tried to start it (node_scheduler.c, select_nodes()), not when backfill plans.
 */
static bool wants_whole_node(const job_record_t *job_ptr)
{
	return (job_ptr->details && sk8_asks_for_whole_nodes(job_ptr->details)) ||
		(job_ptr->part_ptr && !job_ptr->part_ptr->max_share);
}

/*
 * Does the job need one more pod on this node, which has all that it can have? A pod that is being
 * adopted is there already. How many CPUs a job gets of one node is not known yet: no more than of all.
 */
static bool needs_slot(const struct sk8_mask *mask, const job_record_t *job_ptr)
{
	const job_details_t *details = job_ptr->details;

	if (!details)
		return false;
	if (sk8_is_ours(job_ptr))
		return mask->full_for_pods && !details->req_node_bitmap;
	return mask->full_for_jobs && (sk8_gres_any(job_ptr->gres_list_req) || wants_whole_node(job_ptr) ||
		(details->min_cpus > mask->full_but_cpus));
}

struct runs_on { int node_inx; };

static int is_on(void *x, void *arg)
{
	job_record_t *job_ptr = x;
	const struct runs_on *on = arg;

	return sk8_layout_fits_job(job_ptr) && job_ptr->node_bitmap && (on->node_inx < bit_size(job_ptr->node_bitmap)) &&
		bit_test(job_ptr->node_bitmap, on->node_inx);
}

/* A job that it may preempt there has a pod, too: on what that one has it may start. */
static bool may_replace_one(sk8_list_t preemptees, int node_inx)
{
	struct runs_on on = { .node_inx = node_inx };

	return preemptees && list_find_first(preemptees, is_on, &on);
}

/* the cores of a node that no job has */
static bitstr_t *free_cores(int node_inx)
{
	bitstr_t *cores = bit_alloc(node_record_table_ptr[node_inx]->tot_cores);

	sk8_add_used_cores(cores, node_inx);
	bit_not(cores);
	return cores;
}

static struct marks *make_marks(struct marks *marks, size_t count, sk8_excluded_t excluded)
{
	if (marks)
		return marks;
	marks = xcalloc(1, sizeof(*marks) + count * sizeof(marks->node[0]));
	marks->excluded = sk8_excluded_copy(excluded);
	return marks;
}

/* Does the job wait in the gate until pods are gone? What those hold is not in its way. */
static bool outlasts_pods(const job_record_t *job_ptr)
{
	return sk8_has_gate() && sk8_is_exclusive(job_ptr);
}

/* NULL: no candidate is masked. Takes wholly masked nodes out of the candidates. */
static struct marks *mark(struct sk8_masked *masked, size_t count, bitstr_t *node_bitmap,
			  sk8_excluded_t excluded, const job_record_t *job_ptr, sk8_list_t preemptees)
{
	const bool whole = wants_whole_node(job_ptr), asks = whole || job_ptr->gres_list_req;
	const bool exclusive = outlasts_pods(job_ptr);
	struct marks *marks = NULL;

	for (struct sk8_masked *of_node = masked; of_node < masked + count; of_node++) {
		struct sk8_masked *entry = (exclusive && of_node->exclusive) ? of_node->exclusive : of_node;
		int inx = entry->node_inx;
		uint64_t memory;
		bool hides, gres, slot;

		if ((inx < 0) || (inx >= bit_size(node_bitmap)) ||
		    !bit_test(node_bitmap, inx))
			continue;
		/* Perhaps more than is left: that counts when the stock job_test looks what preemption would free. It takes
		 * no more from less (_verify_node_state()). */
		memory = sk8_masked_memory(entry);
		gres = asks && entry->mask->gres_count;
		slot = needs_slot(entry->mask, job_ptr);
		hides = bit_ffs(sk8_hidden_cores(entry)) >= 0;
		if (!memory && !gres && !slot && !hides)
			continue;	/* all of it fits beside what jobs may have */
		marks = make_marks(marks, count, excluded);
		if (entry->mask->whole || (whole && (hides || (gres && sk8_gres_hides_any(entry)))) ||
		    (slot && !may_replace_one(preemptees, inx))) {
			bit_clear(node_bitmap, inx);
			continue;
		}
		if (slot) {
			bitstr_t *cores = free_cores(inx);

			sk8_excluded_add(&marks->excluded, inx, cores);
			bit_free(cores);
		}
		sk8_excluded_add(&marks->excluded, inx, sk8_hidden_cores(entry));
		marks->node[marks->count].node_inx = inx;
		marks->node[marks->count].memory = memory;
		(*node_usage)[inx].alloc_memory += memory;
		marks->count++;
		if (job_ptr->gres_list_req)
			sk8_gres_mark(&marks->gres, entry, job_ptr->gres_list_req);
	}
	return marks;
}

static void unmark(struct marks *marks)
{
	for (uint32_t k = 0; k < marks->count; k++)
		(*node_usage)[marks->node[k].node_inx].alloc_memory -=
			marks->node[k].memory;
	sk8_gres_unmark(&marks->gres);
	sk8_excluded_free(&marks->excluded);
	xfree(marks);
}

extern int sk8_masks_job_test(SK8_JOB_TEST_PARAMS)
{
	uint16_t base = mode & SELECT_MODE_BASE;
	bitstr_t *candidates = NULL;
	struct sk8_masked *masked;
	struct marks *marks;
	size_t count;
	int rc;

	if (!sk8_layout_fits_record(job_ptr) || (base == SELECT_MODE_TEST_ONLY) ||
	    !(masked = sk8_masks_table(&count)) ||
	    (find_job_record(job_ptr->job_id) != job_ptr))
		return stock_job_test(SK8_JOB_TEST_ARGS);
	if (base == SELECT_MODE_WILL_RUN)
		candidates = bit_copy(node_bitmap);	/* job_test changes it */
	if (!(marks = mark(masked, count, node_bitmap, SK8_JOB_TEST_EXCLUDED, job_ptr, preemptee_candidates))) {
		FREE_NULL_BITMAP(candidates);
		return stock_job_test(SK8_JOB_TEST_ARGS);
	}
	rc = stock_job_test(SK8_JOB_TEST_WITH(preemptee_candidates, preemptee_job_list,
					      &marks->excluded));
	unmark(marks);

	/*
	 * "When could it run?", and the answer is never. If it could without
	 * the marks, only pods are in its way: say "later".
	 */
	if (rc && candidates) {
		sk8_excluded_t callers = SK8_JOB_TEST_EXCLUDED;
		time_t later;

		bit_copybits(node_bitmap, candidates);
		rc = stock_job_test(SK8_JOB_TEST_WITH(NULL, NULL, &callers));
		if (!rc && (job_ptr->start_time < (later = sk8_held_up_by_pods(job_ptr->job_id, time(NULL)))))
			job_ptr->start_time = later;
	} else if (candidates) {
		sk8_not_held_up_by_pods(job_ptr->job_id);
	}
	FREE_NULL_BITMAP(candidates);
	return rc;
}

/* ---- sinfo, scontrol show node --------------------------------------------------- */

extern void sk8_masks_show(void)
{
	size_t count;
	struct sk8_masked *masked = sk8_masks_table(&count);

	for (struct sk8_masked *entry = masked; entry < masked + count; entry++) {
		node_record_t *node_ptr;
		uint32_t cpus, more;
		uint64_t memory;
		bitstr_t *hidden, *used;

		if (entry->node_inx < 0)
			continue;
		node_ptr = node_record_table_ptr[entry->node_inx];
		sk8_shown_allocated(node_ptr, &cpus, &memory);
		hidden = bit_copy(sk8_hidden_cores(entry));
		used = bit_alloc(bit_size(hidden));
		sk8_add_used_cores(used, entry->node_inx);
		bit_and_not(hidden, used);	/* those are counted already */
		more = bit_set_count(hidden) * (node_ptr->cpus / node_ptr->tot_cores);
		if (cpus + more > node_ptr->cpus_efctv)
			more = (cpus < node_ptr->cpus_efctv) ?
				node_ptr->cpus_efctv - cpus : 0;
		sk8_show_allocated(node_ptr, more, sk8_hidden_memory(entry, memory));
		bit_free(hidden);
		bit_free(used);
	}
}
