/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * masks.c - keep Slurm's jobs away from what pods hold.
 *
 * Around the stock job_test the masked cores are added to the "exclude these
 * cores" argument and the memory to the node's alloc_memory; afterwards all is as
 * it was. job_test always runs with the node write lock, so nobody sees the marks.
 *
 * No marks where the question is "could it ever run here?" (TEST_ONLY, at submit:
 * pods go), nor for the made-up jobs that reservation code asks about.
 *
 * The table below is used under the node write lock only; since 26.05 what is shown is
 * counted under the read lock, and a lock of its own.
 */
#include <dlfcn.h>
#include "lib/slurm/sizes.h"
#include "lib/slurm/slurmctld.h"

/*
 * Seconds until a job that only pods hold up is said to start: long enough that
 * backfill reserves its nodes instead of starving it, and asked again each time.
 */
#define POD_WAIT_ESTIMATE 120

static int (*stock_job_test)(SK8_JOB_TEST_PARAMS);
static node_use_record_t **node_usage;	/* &select_node_usage of the stock plugin */
static part_res_record_t **part_usage;	/* &select_part_record */
static void (*rebuild_rows)(part_res_record_t *parts);

/* one masked node */
struct entry {
	const struct sk8_mask *mask;
	int node_inx;		/* -1: Slurm has no such node */
	bitstr_t *cores;	/* what is hidden there; made when first needed */
	uint32_t cores_epoch;	/* more_cores: of which usage it was chosen */
};

static struct {
	const struct sk8_masks *masks;	/* ours to put */
	struct entry *entries;
	uint32_t usage_epoch;		/* another number = jobs hold other cores */
	bool stale;			/* node indexes may mean other nodes */
	uint64_t shown;			/* generation of the last sk8_masks_changed() */
	bool shown_any;
} table;

extern bool sk8_masks_start(void *stock)
{
	node_usage = dlsym(stock, "select_node_usage");
	part_usage = dlsym(stock, "select_part_record");
	stock_job_test = dlsym(stock, "select_p_job_test");
	rebuild_rows = SK8_REBUILD_ROWS(stock);
	return node_usage && part_usage && stock_job_test && rebuild_rows;
}

extern bool sk8_masks_fit(void)
{
	return (!*node_usage ||
		sk8_is_sized(*node_usage, node_record_count * sizeof(**node_usage))) &&
		(!*part_usage || sk8_is_sized(*part_usage, sizeof(**part_usage)));
}

extern void sk8_masks_nodes_changed(void)
{
	table.stale = true;
	table.usage_epoch++;
}

extern void sk8_masks_usage_changed(void)
{
	table.usage_epoch++;
}

/* ---- the table -------------------------------------------------------------- */

static void forget(void)
{
	if (!table.masks)
		return;
	for (size_t k = 0; k < table.masks->count; k++)
		FREE_NULL_BITMAP(table.entries[k].cores);
	xfree(table.entries);
	sk8_masks_put(table.masks);
	table.masks = NULL;
}

/* NULL, or the masks in force, with their entries looked up */
static const struct sk8_masks *current(void)
{
	const struct sk8_masks *masks = sk8_masks_get();

	if (!masks) {
		forget();
		return NULL;
	}
	if (table.masks && !table.stale &&
	    (table.masks->generation == masks->generation)) {
		sk8_masks_put(masks);
		return table.masks;
	}
	forget();
	table.masks = masks;
	table.stale = false;
	table.entries = xcalloc(masks->count + 1, sizeof(*table.entries));
	for (size_t k = 0; k < masks->count; k++) {
		const struct sk8_mask *mask = &masks->mask[k];
		node_record_t *node_ptr = find_node_record((char *) mask->node);

		table.entries[k].mask = mask;
		table.entries[k].node_inx = node_ptr ? (int) node_ptr->index : -1;
	}
	return masks;
}

extern bool sk8_masks_changed(void)
{
	const struct sk8_masks *masks = sk8_masks_get();
	bool any = masks, changed;
	uint64_t generation = any ? masks->generation : 0;

	if (masks)
		sk8_masks_put(masks);
	changed = (any != table.shown_any) || (generation != table.shown);
	table.shown_any = any;
	table.shown = generation;
	return changed;
}

/* ---- which cores -------------------------------------------------------------- */

/* Set the cores of this node that running jobs hold, as the stock plugin has them. */
static void add_used_cores(bitstr_t *cores, int node_inx)
{
	rebuild_rows(*part_usage);
	for (part_res_record_t *part = *part_usage; part; part = part->next)
		for (int r = 0; part->row && (r < part->num_rows); r++)
			if (part->row[r].row_bitmap && part->row[r].row_bitmap[node_inx])
				bit_or(cores, part->row[r].row_bitmap[node_inx]);
}

/* Hide so many more of the cores that are not in avoid, from the last one down:
 * Slurm takes the first ones first, so the choice moves as little as can be. */
static uint32_t hide_more(bitstr_t *cores, const bitstr_t *avoid, uint32_t more)
{
	for (int k = bit_size(cores) - 1; more && (k >= 0); k--) {
		if (bit_test(cores, k) || (avoid && bit_test((bitstr_t *) avoid, k)))
			continue;
		bit_set(cores, k);
		more--;
	}
	return more;
}

static bitstr_t *choose_cores(const struct entry *entry)
{
	const struct sk8_mask *mask = entry->mask;
	node_record_t *node_ptr = node_record_table_ptr[entry->node_inx];
	bitstr_t *cores = bit_alloc(node_ptr->tot_cores), *used;
	uint32_t left;

	if (mask->whole) {
		bit_set_all(cores);
		return cores;
	}
	for (uint32_t k = 0; k < mask->core_count; k++)
		if (mask->cores[k] < node_ptr->tot_cores)
			bit_set(cores, mask->cores[k]);
	if (!mask->more_cores)
		return cores;
	used = bit_alloc(node_ptr->tot_cores);
	/* a specialised core is nobody's: it cannot stand for a pod's */
	if (node_ptr->node_spec_bitmap) {
		bit_or_not(used, node_ptr->node_spec_bitmap);
	}
	add_used_cores(used, entry->node_inx);
	/* overcommitted: hide cores in use too, so that none becomes free too early */
	if ((left = hide_more(cores, used, mask->more_cores)))
		(void) hide_more(cores, NULL, left);
	bit_free(used);
	return cores;
}

static bitstr_t *hidden_cores(struct entry *entry)
{
	if (entry->cores && entry->mask->more_cores &&
	    (entry->cores_epoch != table.usage_epoch))
		FREE_NULL_BITMAP(entry->cores);
	if (!entry->cores) {
		entry->cores = choose_cores(entry);
		entry->cores_epoch = table.usage_epoch;
	}
	return entry->cores;
}

/* MB of the mask that there is still room for beside what is counted already;
 * alloc_memory above the node's memory would underflow. */
static uint64_t hidden_memory(const struct entry *entry, uint64_t counted)
{
	node_record_t *node_ptr = node_record_table_ptr[entry->node_inx];
	uint64_t all = node_ptr->real_memory - node_ptr->mem_spec_limit;

	if (all <= counted)
		return 0;
	if (entry->mask->whole)
		return all - counted;
	return MIN(entry->mask->memory_mb, all - counted);
}

/* ---- marks -------------------------------------------------------------------- */

struct marks {
	sk8_excluded_t excluded;
	uint32_t count;
	struct { int node_inx; uint64_t memory; } node[];
};

/* NULL: no candidate is masked. Takes wholly masked nodes out of the candidates. */
static struct marks *mark(bitstr_t *node_bitmap, sk8_excluded_t excluded)
{
	struct marks *marks = NULL;

	for (size_t k = 0; k < table.masks->count; k++) {
		struct entry *entry = &table.entries[k];
		int inx = entry->node_inx;

		if ((inx < 0) || (inx >= bit_size(node_bitmap)) ||
		    !bit_test(node_bitmap, inx))
			continue;
		if (!marks) {
			marks = xcalloc(1, sizeof(*marks) +
					table.masks->count * sizeof(marks->node[0]));
			marks->excluded = sk8_excluded_copy(excluded);
		}
		if (entry->mask->whole) {
			bit_clear(node_bitmap, inx);
			continue;
		}
		sk8_excluded_add(&marks->excluded, inx, hidden_cores(entry));
		marks->node[marks->count].node_inx = inx;
		marks->node[marks->count].memory =
			hidden_memory(entry, (*node_usage)[inx].alloc_memory);
		(*node_usage)[inx].alloc_memory += marks->node[marks->count].memory;
		marks->count++;
	}
	return marks;
}

static void unmark(struct marks *marks)
{
	for (uint32_t k = 0; k < marks->count; k++)
		(*node_usage)[marks->node[k].node_inx].alloc_memory -=
			marks->node[k].memory;
	sk8_excluded_free(&marks->excluded);
	xfree(marks);
}

extern int sk8_masks_job_test(SK8_JOB_TEST_PARAMS)
{
	uint16_t base = mode & SELECT_MODE_BASE;
	bitstr_t *candidates = NULL;
	struct marks *marks;
	int rc;

	if (!sk8_layout_fits_record(job_ptr) ||
	    (base == SELECT_MODE_TEST_ONLY) || !current() ||
	    (find_job_record(job_ptr->job_id) != job_ptr))
		return stock_job_test(SK8_JOB_TEST_ARGS);
	if (base == SELECT_MODE_WILL_RUN)
		candidates = bit_copy(node_bitmap);	/* job_test changes it */
	if (!(marks = mark(node_bitmap, SK8_JOB_TEST_EXCLUDED))) {
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
		time_t later = time(NULL) + POD_WAIT_ESTIMATE;

		bit_copybits(node_bitmap, candidates);
		rc = stock_job_test(SK8_JOB_TEST_WITH(NULL, NULL, &callers));
		if (!rc && (job_ptr->start_time < later))
			job_ptr->start_time = later;
	}
	FREE_NULL_BITMAP(candidates);
	return rc;
}

/* ---- sinfo, scontrol show node --------------------------------------------------- */

extern void sk8_masks_show(void)
{
	if (!current())
		return;
	for (size_t k = 0; k < table.masks->count; k++) {
		struct entry *entry = &table.entries[k];
		node_record_t *node_ptr;
		uint32_t cpus, more;
		uint64_t memory;
		bitstr_t *hidden, *used;

		if (entry->node_inx < 0)
			continue;
		node_ptr = node_record_table_ptr[entry->node_inx];
		sk8_shown_allocated(node_ptr, &cpus, &memory);
		hidden = bit_copy(hidden_cores(entry));
		used = bit_alloc(bit_size(hidden));
		add_used_cores(used, entry->node_inx);
		bit_and_not(hidden, used);	/* those are counted already */
		more = bit_set_count(hidden) * (node_ptr->cpus / node_ptr->tot_cores);
		if (cpus + more > node_ptr->cpus_efctv)
			more = (cpus < node_ptr->cpus_efctv) ?
				node_ptr->cpus_efctv - cpus : 0;
		sk8_show_allocated(node_ptr, more, hidden_memory(entry, memory));
		bit_free(hidden);
		bit_free(used);
	}
}
