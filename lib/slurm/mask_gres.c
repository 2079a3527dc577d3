/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mask_gres.c - see there */
#include "lib/slurm/gres.h"
#include "lib/slurm/mask_gres.h"
#include "lib/slurm/tokens.h"

/* ---- which devices --------------------------------------------------------------- */

/* How much of each device is hidden: of a shared GRES so many shares, of another 0 or 1. */
struct plan {
	gres_node_state_t *ns;
	bool shared;
	int devices;
	uint64_t *amount, few[32]; /* few, where they suffice: this is done for each masked node in each call */
};

static uint64_t shares_left(const gres_node_state_t *ns, int device)
{
	const int t = sk8_gres_topology_of(ns, device);

	if ((t < 0) || (ns->topo_gres_cnt_avail[t] <= ns->topo_gres_cnt_alloc[t]))
		return 0;
	return ns->topo_gres_cnt_avail[t] - ns->topo_gres_cnt_alloc[t];
}

static bool is_used(const gres_node_state_t *ns, int device)
{
	return ns && ns->gres_bit_alloc && (device < bit_size(ns->gres_bit_alloc)) &&
		bit_test(ns->gres_bit_alloc, device);
}

/* what can still be hidden of this device */
static uint64_t room_of(const struct plan *plan, int device)
{
	const uint64_t has = plan->shared ? shares_left(plan->ns, device) :
		!is_used(plan->ns, device);

	return (has > plan->amount[device]) ? has - plan->amount[device] : 0;
}

static void plan_known(struct plan *plan, const struct sk8_gres *gres)
{
	for (uint32_t k = 0; k < gres->device_count; k++) {
		const int d = gres->devices[k];

		if (d < plan->devices)
			plan->amount[d] += MIN(plan->shared ? gres->count : 1, room_of(plan, d));
	}
}

/* From the last one down, as cores: Slurm takes the first ones first. Of another type, or one that
 * jobs have by its other name, only if there is no other. */
static void plan_others(struct plan *plan, const struct sk8_gres *gres)
{
	const gres_node_state_t *alternate = sk8_gres_alternate(plan->ns);
	const uint64_t known = (plan->shared && gres->device_count) ? gres->count : gres->device_count;
	uint64_t left = (gres->count > known) ? gres->count - known : 0;
	enum { BEST, OF_TYPE, ANY, ROUNDS };

	for (int round = BEST; left && (round < ROUNDS); round++)
		for (int d = plan->devices - 1; left && (d >= 0); d--) {
			uint64_t n;

			if (((round < ANY) && !sk8_gres_is_of_type(plan->ns, d, gres->type)) ||
			    ((round == BEST) && is_used(alternate, d)))
				continue;
			n = MIN(left, room_of(plan, d));
			plan->amount[d] += n;
			left -= n;
		}
}

/* Of all entries of this name. end_plan() it; it points into itself. */
static void make_plan(struct plan *plan, const gres_state_t *state, gres_node_state_t *ns,
		      const struct sk8_mask *mask)
{
	*plan = (struct plan) {
		.ns = ns,
		.shared = sk8_gres_is_shared(state),
		.devices = bit_size(ns->gres_bit_alloc),
	};
	plan->amount = (plan->devices < (int) (sizeof(plan->few) / sizeof(plan->few[0]))) ?
		plan->few : xcalloc(plan->devices + 1, sizeof(*plan->amount));
	for (uint32_t k = 0; k < mask->gres_count; k++)
		if (!xstrcmp(mask->gres[k].name, state->gres_name))
			plan_known(plan, &mask->gres[k]);
	for (uint32_t k = 0; k < mask->gres_count; k++)
		if (!xstrcmp(mask->gres[k].name, state->gres_name))
			plan_others(plan, &mask->gres[k]);
}

static void end_plan(struct plan *plan)
{
	if (plan->amount != plan->few)
		xfree(plan->amount);
}

/* ---- marks ------------------------------------------------------------------------ */

/* What marks are made of, for all nodes of a call: of each masked node in each call nothing is allocated. */
struct sk8_gres_chunk {
	struct sk8_gres_chunk *next;
	uint32_t used, room;
	uint64_t word[];
};

/* so many zeros, which do not move until sk8_gres_unmark() */
static uint64_t *words(struct sk8_gres_marks *marks, uint32_t count)
{
	struct sk8_gres_chunk *chunk = marks->chunk;

	if (!chunk || (chunk->room - chunk->used < count)) {
		const uint32_t room = MAX(count, chunk ? 2 * chunk->room : 64);

		chunk = xcalloc(1, sizeof(*chunk) + room * sizeof(chunk->word[0]));
		chunk->room = room;
		chunk->next = marks->chunk;
		marks->chunk = chunk;
	}
	chunk->used += count;
	return &chunk->word[chunk->used - count];
}

static void set_device(struct sk8_gres_mark *mark, int device)
{
	bit_set(mark->ns->gres_bit_alloc, device);
	mark->devices[device / 64] |= UINT64_C(1) << (device % 64);
}

extern bool sk8_gres_is_marked(const struct sk8_gres_mark *mark, int device)
{
	return mark->devices[device / 64] & (UINT64_C(1) << (device % 64));
}

static struct sk8_gres_mark *mark_in(struct sk8_gres_marks *marks, int node_inx,
				     gres_node_state_t *ns, const char *name)
{
	struct sk8_gres_mark *mark;

	for (uint32_t k = marks->count; k-- && (marks->mark[k].node_inx == node_inx);)
		if (marks->mark[k].ns == ns)
			return &marks->mark[k];
	if (marks->count == marks->room) {
		marks->room = marks->room ? 2 * marks->room : 16;
		xrecalloc(marks->mark, marks->room, sizeof(*marks->mark));
	}
	mark = &marks->mark[marks->count++];
	*mark = (struct sk8_gres_mark) { .node_inx = node_inx, .name = name, .ns = ns };
	mark->device_count = ns->gres_bit_alloc ? bit_size(ns->gres_bit_alloc) : 0;
	mark->devices = words(marks, (mark->device_count + 63) / 64);
	mark->topo = words(marks, ns->topo_cnt);
	mark->type = words(marks, ns->type_cnt);
	return mark;
}

/* More than the node has would underflow what Slurm computes of it. */
static uint64_t count_more(struct sk8_gres_mark *mark, uint64_t n)
{
	gres_node_state_t *ns = mark->ns;

	n = (ns->gres_cnt_avail > ns->gres_cnt_alloc) ?
		MIN(n, ns->gres_cnt_avail - ns->gres_cnt_alloc) : 0;
	ns->gres_cnt_alloc += n;
	mark->count += n;
	return n;
}

/* Of this type; what does not fit there, and all without a type, of any */
static void count_types(struct sk8_gres_mark *mark, const char *type, uint64_t n)
{
	gres_node_state_t *ns = mark->ns;

	for (int round = type[0] ? 0 : 1; n && (round < 2); round++)
		for (int j = 0; n && (j < ns->type_cnt); j++) {
			uint64_t some;

			if (((round == 0) && xstrcmp(ns->type_name[j], type)) ||
			    (ns->type_cnt_avail[j] <= ns->type_cnt_alloc[j]))
				continue;
			some = MIN(n, ns->type_cnt_avail[j] - ns->type_cnt_alloc[j]);
			ns->type_cnt_alloc[j] += some;
			mark->type[j] += some;
			n -= some;
		}
}

/* As the stock plugin counts a job's device: by the type of each topology that it is in */
static void count_topologies(struct sk8_gres_mark *mark, int device, uint64_t n)
{
	gres_node_state_t *ns = mark->ns;

	for (int t = 0; ns->topo_gres_bitmap && ns->topo_gres_cnt_alloc && (t < ns->topo_cnt); t++) {
		if (!ns->topo_gres_bitmap[t] || (device >= bit_size(ns->topo_gres_bitmap[t])) ||
		    !bit_test(ns->topo_gres_bitmap[t], device))
			continue;
		ns->topo_gres_cnt_alloc[t] += n;
		mark->topo[t] += n;
		if (!ns->topo_type_name || !ns->topo_type_name[t])
			continue;
		for (int j = 0; j < ns->type_cnt; j++)
			if (ns->type_name[j] && (ns->type_id[j] == ns->topo_type_id[t])) {
				ns->type_cnt_alloc[j] += n;
				mark->type[j] += n;
				break;
			}
	}
}

static void take(struct sk8_gres_mark *mark, int device, uint64_t n)
{
	gres_node_state_t *ns = mark->ns;

	if (!n)
		return;
	if (!is_used(ns, device))
		set_device(mark, device);
	(void) count_more(mark, n);
	if (ns->topo_cnt)
		count_topologies(mark, device, n);
	else
		count_types(mark, "", n);
}

extern void sk8_gres_unmark(struct sk8_gres_marks *marks)
{
	for (uint32_t k = marks->count; k--;) {
		struct sk8_gres_mark *mark = &marks->mark[k];
		gres_node_state_t *ns = mark->ns;

		for (int d = 0; d < mark->device_count; d++)
			if (sk8_gres_is_marked(mark, d))
				bit_clear(ns->gres_bit_alloc, d);
		for (int t = 0; t < ns->topo_cnt; t++)
			if (mark->topo[t])
				ns->topo_gres_cnt_alloc[t] -= mark->topo[t];
		for (int j = 0; j < ns->type_cnt; j++)
			ns->type_cnt_alloc[j] -= mark->type[j];
		ns->gres_cnt_alloc -= mark->count;
	}
	for (struct sk8_gres_chunk *chunk = marks->chunk, *next; chunk; chunk = next) {
		next = chunk->next;
		xfree(chunk);
	}
	xfree(marks->mark);
	*marks = (struct sk8_gres_marks) { 0 };
}

/* ---- what a job asks for: the same for all nodes of a call, so what is found out of one is so of the next ------------- */

static bool asks_for(struct sk8_gres_marks *marks, sk8_list_t asked, const char *name)
{
	if (!asked)
		return true;
	if (!marks->looked_for || xstrcmp(marks->looked_for, name)) {
		marks->looked_for = name;
		marks->found = sk8_gres_find(asked, name);
	}
	return marks->found;
}

static bool asks_for_tokens(struct sk8_gres_marks *marks, sk8_list_t asked)
{
	if (!asked)
		return true;
	if (!marks->looked_for_tokens) {
		marks->looked_for_tokens = true;
		marks->found_tokens = sk8_gres_find(asked, SK8_TOKEN_CPU) || sk8_gres_find(asked, SK8_TOKEN_MEMORY);
	}
	return marks->found_tokens;
}

/* ---- a node ------------------------------------------------------------------------- */

struct look {
	sk8_list_t node_list;
	const gres_node_state_t *ns;
};

static int is_record_of(void *x, void *arg)
{
	const struct look *look = arg;
	const gres_state_t *state = sk8_gres_find(look->node_list, ((gres_state_t *) x)->gres_name);

	return state && (state->gres_data == look->ns);
}

static bool is_asked(sk8_list_t asked, sk8_list_t node_list, const gres_node_state_t *ns)
{
	struct look look = { .node_list = node_list, .ns = ns };

	return ns && list_find_first(asked, is_record_of, &look);
}

/* A device of which a share is hidden is nobody's as a whole. */
static void take_alternate(struct sk8_gres_marks *marks, int node_inx, const struct plan *plan,
			   gres_node_state_t *alternate)
{
	struct sk8_gres_mark *mark;

	if (!sk8_layout_fits_gres_node(alternate) || !alternate->gres_bit_alloc)
		return;
	mark = mark_in(marks, node_inx, alternate, "");
	for (int d = 0; d < MIN(plan->devices, bit_size(alternate->gres_bit_alloc)); d++)
		if (plan->amount[d])
			take(mark, d, !is_used(alternate, d));
}

static void mark_devices(struct sk8_gres_marks *marks, const struct sk8_masked *entry,
			 const gres_state_t *state, gres_node_state_t *ns, sk8_list_t asked)
{
	const sk8_list_t list = node_record_table_ptr[entry->node_inx]->gres_list;
	gres_node_state_t *alternate = sk8_gres_alternate(ns);
	const bool itself = asks_for(marks, asked, state->gres_name);
	struct plan plan;

	if (!itself && !is_asked(asked, list, alternate))
		return;
	make_plan(&plan, state, ns, entry->mask);
	/* as a job that has the GPU: nobody gets shares of it, and none of them counts as taken, which would leave no other device
	 * to one_sharing (gres.c, gres_use_busy_dev()) */
	if (itself || !plan.shared) {
		struct sk8_gres_mark *mark = mark_in(marks, entry->node_inx, ns, state->gres_name);

		for (int d = 0; d < plan.devices; d++)
			take(mark, d, plan.amount[d]);
	} else
		take_alternate(marks, entry->node_inx, &plan, alternate);
	end_plan(&plan);
}

/* Entries of one name are marked together, with the first of them. */
static bool is_first(const struct sk8_mask *mask, uint32_t k)
{
	for (uint32_t i = 0; i < k; i++)
		if (!xstrcmp(mask->gres[i].name, mask->gres[k].name))
			return false;
	return true;
}

static bool has_devices(const gres_state_t *state, const gres_node_state_t *ns)
{
	/* shares are counted by topology, which a node has when it has registered */
	return ns->gres_bit_alloc && (!sk8_gres_is_shared(state) || ns->topo_cnt);
}

/*
 * Tokens stand for CPUs and memory: as many are hidden as of these, once, whatever the mask says
 * of GRES. A CPU is one of Slurm's, so all of a core that is hidden.
 */
static void mark_token(struct sk8_gres_marks *marks, struct sk8_masked *entry, const char *name, sk8_list_t asked)
{
	const node_record_t *node_ptr = node_record_table_ptr[entry->node_inx];
	const gres_state_t *state = (asked && !sk8_gres_find(asked, name)) ? NULL : sk8_gres_find(node_ptr->gres_list, name);
	gres_node_state_t *ns = sk8_gres_of_node(state);
	struct sk8_gres_mark *in;
	uint64_t hidden;

	if (!ns || ns->gres_bit_alloc)
		return;
	if (!xstrcmp(name, SK8_TOKEN_CPU))
		hidden = (uint64_t) bit_set_count(sk8_hidden_cores(entry)) * (node_ptr->cpus / MAX(node_ptr->tot_cores, 1));
	else
		hidden = sk8_hidden_memory(entry, 0);
	if (!hidden)
		return;
	in = mark_in(marks, entry->node_inx, ns, state->gres_name);
	count_types(in, "", count_more(in, hidden));
}

extern void sk8_gres_mark(struct sk8_gres_marks *marks, struct sk8_masked *entry, sk8_list_t asked)
{
	const struct sk8_mask *mask = entry->mask;
	const sk8_list_t list = node_record_table_ptr[entry->node_inx]->gres_list;

	if (asks_for_tokens(marks, asked)) {
		mark_token(marks, entry, SK8_TOKEN_CPU, asked);
		mark_token(marks, entry, SK8_TOKEN_MEMORY, asked);
	}
	for (uint32_t k = 0; k < mask->gres_count; k++) {
		const gres_state_t *state = sk8_gres_find(list, mask->gres[k].name);
		gres_node_state_t *ns = sk8_gres_of_node(state);

		if (!ns || sk8_is_token(state->gres_name))
			continue;
		if (has_devices(state, ns)) {
			if (is_first(mask, k))
				mark_devices(marks, entry, state, ns, asked);
		} else if (asks_for(marks, asked, state->gres_name)) {
			struct sk8_gres_mark *in = mark_in(marks, entry->node_inx, ns, state->gres_name);

			count_types(in, mask->gres[k].type, count_more(in, mask->gres[k].count));
		}
	}
}

extern bool sk8_gres_hides_any(const struct sk8_masked *entry)
{
	const sk8_list_t list = node_record_table_ptr[entry->node_inx]->gres_list;

	for (uint32_t k = 0; k < entry->mask->gres_count; k++) {
		const struct sk8_gres *gres = &entry->mask->gres[k];
		const gres_node_state_t *ns = sk8_gres_of_node(sk8_gres_find(list, gres->name));

		if (ns && ns->gres_cnt_avail && gres->count && !sk8_is_token(gres->name))
			return true;
	}
	return false;
}

/* ---- a job starts ------------------------------------------------------------------- */

/* Bits only: what the stock plugin counts is what job_test() has left room for. */
static struct sk8_gres_marks start_marks;

/* What the job is to have there must stay free, whatever has been masked since job_test(). */
static void hide_at_start(const struct sk8_masked *entry, const gres_state_t *state,
			  gres_node_state_t *ns, const gres_job_state_t *js)
{
	const int inx = entry->node_inx;
	const uint64_t wanted = (js->total_node_cnt && js->gres_cnt_node_select) ?
		js->gres_cnt_node_select[inx] : js->gres_per_node;
	uint64_t left = bit_clear_count(ns->gres_bit_alloc);
	struct sk8_gres_mark *mark;
	struct plan plan;

	if (js->gres_bit_select && js->gres_bit_select[inx])
		return;		/* job_test() has chosen them */
	left = (left > wanted) ? left - wanted : 0;
	mark = mark_in(&start_marks, inx, ns, state->gres_name);
	make_plan(&plan, state, ns, entry->mask);
	for (int d = plan.devices - 1; left && (d >= 0); d--)
		if (plan.amount[d]) {
			set_device(mark, d);
			left--;
		}
	end_plan(&plan);
}

static void before_start_on(const struct sk8_masked *entry, job_record_t *job_ptr)
{
	const struct sk8_mask *mask = entry->mask;
	const sk8_list_t list = node_record_table_ptr[entry->node_inx]->gres_list;

	for (uint32_t k = 0; k < mask->gres_count; k++) {
		const gres_state_t *state = sk8_gres_find(list, mask->gres[k].name);
		gres_node_state_t *ns = sk8_gres_of_node(state);
		const gres_job_state_t *js =
			sk8_gres_of_job(sk8_gres_find(job_ptr->gres_list_req, mask->gres[k].name));

		if (ns && js && ns->gres_bit_alloc && !sk8_gres_is_shared(state) && is_first(mask, k))
			hide_at_start(entry, state, ns, js);
	}
}

extern void sk8_gres_before_start(job_record_t *job_ptr)
{
	struct sk8_masked *masked;
	size_t count;

	/* at slurmctld's start and takeover the jobs that run are told again, with what they have */
	if (!job_ptr->gres_list_req || job_ptr->gres_list_alloc || !job_ptr->node_bitmap ||
	    !(masked = sk8_masks_table(&count)))
		return;
	for (struct sk8_masked *entry = masked; entry < masked + count; entry++)
		if ((entry->node_inx >= 0) && entry->mask->gres_count &&
		    (entry->node_inx < bit_size(job_ptr->node_bitmap)) &&
		    bit_test(job_ptr->node_bitmap, entry->node_inx))
			before_start_on(entry, job_ptr);
}

extern void sk8_gres_after_start(void)
{
	sk8_gres_unmark(&start_marks);
}
