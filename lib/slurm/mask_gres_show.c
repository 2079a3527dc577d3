/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mask_gres_show.c - masked GRES in sinfo and scontrol show node; see mask_gres.h */
#include "lib/slurm/gres.h"
#include "lib/slurm/mask_gres.h"

static struct sk8_gres_marks marks;	/* between before and after */

/* What is left for Slurm's answers. By name: the node's record may be another by the time it goes. */
static struct {
	struct {
		char *node, *gres;
		bitstr_t *bits;	/* NULL: a text */
		uint64_t *shares;	/* of each topology; NULL: it is not made of these */
		int shares_count;
	} *row;
	uint32_t count;
} shown;

extern void sk8_gres_before_show(void)
{
	size_t count;
	struct sk8_masked *masked;

	sk8_gres_unshow();
	masked = sk8_masks_table(&count);
	for (struct sk8_masked *entry = masked; entry < masked + count; entry++)
		if (entry->node_inx >= 0)
			sk8_gres_mark(&marks, entry, NULL);
}

static void remember(struct sk8_gres_mark *mark, bitstr_t *bits)
{
	xrecalloc(shown.row, shown.count + 1, sizeof(*shown.row));
	shown.row[shown.count].node = xstrdup(node_record_table_ptr[mark->node_inx]->name);
	shown.row[shown.count].gres = xstrdup(mark->name);
	shown.row[shown.count].bits = bits;
	shown.count++;
}

/* Since 24.11 the text of shares is made of how many of each device are used: "shard:3(0/4,3/4)". */
static bool shows_shares(const gres_state_t *state)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24,11,0)
	return state && sk8_gres_is_shared(state);
#else
	(void) state;
	return false;
#endif
}

static bitstr_t *bits_of(const struct sk8_gres_mark *mark)
{
	bitstr_t *bits = bit_alloc(mark->device_count);

	for (int d = 0; d < mark->device_count; d++)
		if (sk8_gres_is_marked(mark, d))
			bit_set(bits, d);
	return bits;
}

static void remember_shares(const struct sk8_gres_mark *mark)
{
	const size_t size = mark->ns->topo_cnt * sizeof(*mark->topo);
	const node_record_t *node_ptr = node_record_table_ptr[mark->node_inx];

	if (!shows_shares(sk8_gres_find(node_ptr->gres_list, mark->name)))
		return;
	shown.row[shown.count - 1].shares = xmalloc(size);
	shown.row[shown.count - 1].shares_count = mark->ns->topo_cnt;
	memcpy(shown.row[shown.count - 1].shares, mark->topo, size);
}

/* Of GRES without a topology Slurm keeps the text: it is made while the marks are there. */
static void make_text(struct sk8_gres_mark *mark)
{
	char *text;

	xfree(mark->ns->gres_used);
	text = gres_get_node_used(node_record_table_ptr[mark->node_inx]->gres_list);
	xfree(text);
	remember(mark, NULL);
}

extern void sk8_gres_after_show(void)
{
	const uint32_t count = marks.count;
	uint32_t first;

	for (uint32_t k = 0; k < count; k++)
		if (!marks.mark[k].ns->topo_cnt)
			make_text(&marks.mark[k]);
	first = shown.count;
	for (uint32_t k = 0; k < count; k++)
		if (marks.mark[k].ns->topo_cnt && marks.mark[k].device_count) {
			remember(&marks.mark[k], bits_of(&marks.mark[k]));
			remember_shares(&marks.mark[k]);
		}
	sk8_gres_unmark(&marks);
	for (uint32_t k = first; k < shown.count; k++) {
		node_record_t *node_ptr = find_node_record(shown.row[k].node);
		gres_node_state_t *ns = node_ptr ?
			sk8_gres_of_node(sk8_gres_find(node_ptr->gres_list, shown.row[k].gres)) : NULL;

		if (!ns)
			continue;
		bit_or(ns->gres_bit_alloc, shown.row[k].bits);
		for (int t = 0; t < shown.row[k].shares_count; t++)
			ns->topo_gres_cnt_alloc[t] += shown.row[k].shares[t];
	}
}

/*
 * A node that registers with another gres.conf meanwhile gets topologies that are counted
 * from these bits: there each device that is used counts as one.
 */
static void clear(gres_node_state_t *ns, bitstr_t *bits, bool shared)
{
	const int size = ns->gres_bit_alloc ? MIN(bit_size(bits), bit_size(ns->gres_bit_alloc)) : 0;

	for (int d = 0; d < size; d++)
		if (bit_test(bits, d))
			bit_clear(ns->gres_bit_alloc, d);
	for (int t = 0; size && !shared && ns->topo_gres_bitmap && ns->topo_gres_cnt_alloc &&
	     (t < ns->topo_cnt); t++) {
		uint64_t used;

		if (!ns->topo_gres_bitmap[t] ||
		    (bit_size(ns->topo_gres_bitmap[t]) != bit_size(ns->gres_bit_alloc)))
			continue;
		used = bit_overlap(ns->topo_gres_bitmap[t], ns->gres_bit_alloc);
		if (ns->topo_gres_cnt_alloc[t] > used)
			ns->topo_gres_cnt_alloc[t] = used;
	}
}

/* A node that registers with more or fewer devices meanwhile keeps the numbers of those that it still has. */
static void clear_shares(gres_node_state_t *ns, const uint64_t *shares, int count)
{
	for (int t = 0; ns->topo_gres_cnt_alloc && (t < MIN(count, ns->topo_cnt)); t++)
		ns->topo_gres_cnt_alloc[t] -= MIN(ns->topo_gres_cnt_alloc[t], shares[t]);
}

extern void sk8_gres_unshow(void)
{
	for (uint32_t k = 0; k < shown.count; k++) {
		node_record_t *node_ptr = find_node_record(shown.row[k].node);
		const gres_state_t *state = node_ptr ?
			sk8_gres_find(node_ptr->gres_list, shown.row[k].gres) : NULL;
		gres_node_state_t *ns = sk8_gres_of_node(state);

		if (ns && shown.row[k].bits) {
			clear(ns, shown.row[k].bits, sk8_gres_is_shared(state));
			clear_shares(ns, shown.row[k].shares, shown.row[k].shares_count);
		} else if (ns)
			xfree(ns->gres_used);
		xfree(shown.row[k].node);
		xfree(shown.row[k].gres);
		FREE_NULL_BITMAP(shown.row[k].bits);
		xfree(shown.row[k].shares);
	}
	xfree(shown.row);
	shown.count = 0;
}
