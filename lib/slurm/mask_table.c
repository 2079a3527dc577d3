/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mask_table.c - see there */
#include <dlfcn.h>
#include "lib/slurm/mask_table.h"
#include "lib/slurm/sizes.h"

static part_res_record_t **part_usage;	/* &select_part_record of the stock plugin */
static void (*rebuild_rows)(part_res_record_t *parts);

static struct {
	const struct sk8_masks *masks;	/* ours to put */
	struct sk8_masked *entries;	/* as many */
	bool stale;			/* node indexes may mean other nodes */
} table;

/* Another number: jobs hold other cores there. Of all nodes together, and of each. */
static struct {
	uint64_t all;
	uint64_t *node;
	int nodes;
} usage;

extern bool sk8_mask_table_start(void *stock)
{
	part_usage = dlsym(stock, "select_part_record");
	rebuild_rows = SK8_REBUILD_ROWS(stock);
	return part_usage && rebuild_rows;
}

extern bool sk8_mask_table_fits(void)
{
	return !*part_usage || sk8_is_sized(*part_usage, sizeof(**part_usage));
}

/* ---- what has changed --------------------------------------------------------- */

extern void sk8_masks_nodes_changed(void)
{
	table.stale = true;
	usage.all++;
	xfree(usage.node);
	usage.nodes = 0;
}

extern void sk8_masks_usage_changed(job_record_t *job_ptr)
{
	bitstr_t *held;

	if (!usage.node) {
		usage.node = xcalloc(node_record_count + 1, sizeof(*usage.node));
		usage.nodes = node_record_count;
	}
	if (!job_ptr || !sk8_layout_fits_job(job_ptr) || !job_ptr->job_resrcs ||
	    !(held = job_ptr->job_resrcs->node_bitmap) || (bit_size(held) > usage.nodes)) {
		usage.all++;
		return;
	}
	for (int k = bit_ffs(held), last = bit_fls(held); (k >= 0) && (k <= last); k++)
		if (bit_test(held, k))
			usage.node[k]++;
}

static uint64_t epoch(int node_inx)
{
	return usage.all + ((node_inx < usage.nodes) ? usage.node[node_inx] : 0);
}

/* ---- the table ------------------------------------------------------------------ */

static void forget_entries(struct sk8_masked *entries, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		FREE_NULL_BITMAP(entries[k].cores);
		if (entries[k].exclusive)
			FREE_NULL_BITMAP(entries[k].exclusive->cores);
		xfree(entries[k].exclusive);
	}
	xfree(entries);
}

static void take_cores(struct sk8_masked *entry, struct sk8_masked *old)
{
	entry->cores = old->cores;
	entry->cores_epoch = old->cores_epoch;
	old->cores = NULL;
}

/* What was known of each mask that is still the same. Both are sorted by name. */
static void take_over(struct sk8_masked *entries, const struct sk8_masks *masks)
{
	size_t old = 0;

	for (size_t k = 0; table.masks && !table.stale && (k < masks->count); k++) {
		const struct sk8_mask *mask = &masks->mask[k];
		int order = -1;

		while ((old < table.masks->count) &&
		       ((order = strcmp(table.masks->mask[old].node, mask->node)) < 0))
			old++;
		if (order || (old == table.masks->count))
			continue;
		entries[k].node_inx = table.entries[old].node_inx;
		if (table.masks->mask[old].version != mask->version)
			continue;
		take_cores(&entries[k], &table.entries[old]);
		if (entries[k].exclusive && table.entries[old].exclusive)
			take_cores(entries[k].exclusive, table.entries[old].exclusive);
	}
}

extern struct sk8_masked *sk8_masks_table(size_t *count)
{
	const int unknown = -2;
	const struct sk8_masks *masks = sk8_masks_get();
	struct sk8_masked *entries = NULL;

	*count = masks ? masks->count : 0;
	if (masks && table.masks && !table.stale &&
	    (table.masks->generation == masks->generation)) {
		sk8_masks_put(masks);
		return table.entries;
	}
	if (masks) {
		entries = xcalloc(masks->count + 1, sizeof(*entries));
		for (size_t k = 0; k < masks->count; k++) {
			entries[k].node_inx = unknown;
			if (masks->mask[k].exclusive)
				entries[k].exclusive = xcalloc(1, sizeof(*entries[k].exclusive));
		}
		take_over(entries, masks);
		for (size_t k = 0; k < masks->count; k++) {
			node_record_t *node_ptr;

			entries[k].mask = &masks->mask[k];
			if (entries[k].node_inx == unknown) {
				node_ptr = find_node_record((char *) masks->mask[k].node);
				entries[k].node_inx = node_ptr ? (int) node_ptr->index : -1;
			}
			if (!entries[k].exclusive)
				continue;
			entries[k].exclusive->mask = masks->mask[k].exclusive;
			entries[k].exclusive->node_inx = entries[k].node_inx;
		}
	}
	if (table.masks) {
		forget_entries(table.entries, table.masks->count);
		sk8_masks_put(table.masks);
	}
	table.masks = masks;
	table.entries = entries;
	table.stale = false;
	return entries;
}

/* ---- which cores ------------------------------------------------------------------ */

extern void sk8_add_used_cores(bitstr_t *cores, int node_inx)
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

/* What of the node's own pods does not fit beside what Slurm offers to jobs */
static uint64_t beyond(uint64_t overhead, uint64_t allocatable, uint64_t offered)
{
	const uint64_t beside = (allocatable > offered) ? allocatable - offered : 0;

	return (overhead > beside) ? overhead - beside : 0;
}

/* Cores that this mask hides besides those that it names. Foreign pods' CPUs make whole
 * cores together: 1 CPU of Kubernetes is one hardware thread. */
static uint32_t unnamed_cores(const struct sk8_mask *mask, const node_record_t *node_ptr)
{
	const uint64_t milli_per_core = 1000 * (uint64_t) MAX(node_ptr->threads, 1); /* tpc is 1 where CPUs= is the number of cores */
	const uint64_t offered = (node_ptr->tot_cores - node_ptr->core_spec_cnt) * milli_per_core;
	const uint64_t milli = mask->milli_cpu +
		beyond(mask->overhead_milli_cpu, mask->allocatable_milli_cpu, offered);

	return MIN(mask->more_cores + milli / milli_per_core + !!(milli % milli_per_core),
		   node_ptr->tot_cores);
}

static bitstr_t *choose_cores(const struct sk8_masked *entry)
{
	const struct sk8_mask *mask = entry->mask;
	node_record_t *node_ptr = node_record_table_ptr[entry->node_inx];
	uint32_t more = unnamed_cores(mask, node_ptr), left;
	bitstr_t *cores = bit_alloc(node_ptr->tot_cores), *used, *nobodys;

	if (mask->whole) {
		bit_set_all(cores);
		return cores;
	}
	if (!more && !mask->core_count)
		return cores;
	used = bit_alloc(node_ptr->tot_cores);
	sk8_add_used_cores(used, entry->node_inx);
	for (uint32_t k = 0; k < mask->core_count; k++) {
		if (mask->cores[k] >= node_ptr->tot_cores) {
			more++;	/* from before slurm.conf gave it fewer: the pod is there all the same */
			continue;
		}
		bit_set(cores, mask->cores[k]);
		/* a job has it, too, as one that a killed slurmctld had forgotten the end of:
		 * two are there, and another core less is free */
		more += bit_test(used, mask->cores[k]);
	}
	/* a specialised core is nobody's: it cannot stand for a pod's */
	nobodys = bit_alloc(node_ptr->tot_cores);
	if (node_ptr->node_spec_bitmap)
		bit_or_not(nobodys, node_ptr->node_spec_bitmap);
	bit_or(used, nobodys);
	/* overcommitted: hide cores in use too, so that none becomes free too early */
	if ((left = hide_more(cores, used, more)))
		(void) hide_more(cores, nobodys, left);
	bit_free(nobodys);
	bit_free(used);
	return cores;
}

extern bitstr_t *sk8_hidden_cores(struct sk8_masked *entry)
{
	const struct sk8_mask *mask = entry->mask;
	const bool moves = !mask->whole &&
		(mask->core_count || mask->more_cores || mask->milli_cpu || mask->overhead_milli_cpu);
	const uint64_t now = epoch(entry->node_inx);

	if (moves && (entry->cores_epoch != now))
		FREE_NULL_BITMAP(entry->cores);
	if (!entry->cores) {
		entry->cores = choose_cores(entry);
		entry->cores_epoch = now;
	}
	return entry->cores;
}

static uint64_t memory_of(const struct sk8_masked *entry)
{
	const node_record_t *node_ptr = node_record_table_ptr[entry->node_inx];

	return node_ptr->real_memory - node_ptr->mem_spec_limit;
}

extern uint64_t sk8_masked_memory(const struct sk8_masked *entry)
{
	const struct sk8_mask *mask = entry->mask;
	const uint64_t all = memory_of(entry);

	return mask->whole ? all : MIN(mask->memory_mb + beyond(mask->overhead_mb, mask->allocatable_mb, all), all);
}

extern uint64_t sk8_hidden_memory(const struct sk8_masked *entry, uint64_t counted)
{
	const uint64_t all = memory_of(entry);

	return (all > counted) ? MIN(sk8_masked_memory(entry), all - counted) : 0;
}
