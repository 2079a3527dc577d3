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
		if (marks.mark[k].ns->topo_cnt && marks.mark[k].bits)
			remember(&marks.mark[k], bit_copy(marks.mark[k].bits));
	sk8_gres_unmark(&marks);
	for (uint32_t k = first; k < shown.count; k++) {
		node_record_t *node_ptr = find_node_record(shown.row[k].node);
		gres_node_state_t *ns = node_ptr ?
			sk8_gres_of_node(sk8_gres_find(node_ptr->gres_list, shown.row[k].gres)) : NULL;

		if (ns)
			bit_or(ns->gres_bit_alloc, shown.row[k].bits);
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

extern void sk8_gres_unshow(void)
{
	for (uint32_t k = 0; k < shown.count; k++) {
		node_record_t *node_ptr = find_node_record(shown.row[k].node);
		const gres_state_t *state = node_ptr ?
			sk8_gres_find(node_ptr->gres_list, shown.row[k].gres) : NULL;
		gres_node_state_t *ns = sk8_gres_of_node(state);

		if (ns && shown.row[k].bits)
			clear(ns, shown.row[k].bits, sk8_gres_is_shared(state));
		else if (ns)
			xfree(ns->gres_used);
		xfree(shown.row[k].node);
		xfree(shown.row[k].gres);
		FREE_NULL_BITMAP(shown.row[k].bits);
	}
	xfree(shown.row);
	shown.count = 0;
}
