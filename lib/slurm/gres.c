/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* gres.c - see there */
#include "lib/slurm/gres.h"
#include "lib/slurm/tokens.h"

static int is_named(void *x, void *key)
{
	const gres_state_t *state = x;

	return sk8_layout_fits_gres(state) && !xstrcmp(state->gres_name, key);
}

extern gres_state_t *sk8_gres_find(sk8_list_t list, const char *name)
{
	return list ? list_find_first(list, is_named, (void *) name) : NULL;
}

static int is_no_token(void *x, void *key)
{
	const gres_state_t *state = x;

	(void) key;
	return sk8_layout_fits_gres(state) && !sk8_is_token(state->gres_name);
}

extern bool sk8_gres_any(sk8_list_t list)
{
	return list && list_find_first(list, is_no_token, NULL);
}

extern gres_node_state_t *sk8_gres_of_node(const gres_state_t *state)
{
	gres_node_state_t *ns = state ? state->gres_data : NULL;

	return (ns && sk8_layout_fits_gres_node(ns) && !ns->no_consume) ? ns : NULL;
}

extern gres_job_state_t *sk8_gres_of_job(const gres_state_t *state)
{
	gres_job_state_t *js = state ? state->gres_data : NULL;

	return (js && sk8_layout_fits_gres_job(js)) ? js : NULL;
}

extern bool sk8_gres_is_shared(const gres_state_t *state)
{
	return state->config_flags & GRES_CONF_SHARED;
}

extern int sk8_gres_topology_of(const gres_node_state_t *ns, int device)
{
	for (int t = 0; ns->topo_gres_bitmap && (t < ns->topo_cnt); t++)
		if (ns->topo_gres_bitmap[t] && (device < bit_size(ns->topo_gres_bitmap[t])) &&
		    bit_test(ns->topo_gres_bitmap[t], device))
			return t;
	return -1;
}

extern bool sk8_gres_is_of_type(const gres_node_state_t *ns, int device, const char *type)
{
	const int t = sk8_gres_topology_of(ns, device);

	return !type[0] || ((t >= 0) && ns->topo_type_name && !xstrcmp(ns->topo_type_name[t], type));
}

/* Of GRES without topologies types are counted by number alone: that stays. */
extern void sk8_gres_count_topologies(gres_node_state_t *ns, int device, int n)
{
	for (int t = 0; ns->topo_gres_bitmap && ns->topo_gres_cnt_alloc && (t < ns->topo_cnt); t++) {
		if (!ns->topo_gres_bitmap[t] || (device >= bit_size(ns->topo_gres_bitmap[t])) ||
		    !bit_test(ns->topo_gres_bitmap[t], device))
			continue;
		if ((n > 0) || ns->topo_gres_cnt_alloc[t])
			ns->topo_gres_cnt_alloc[t] += n;
		if (!ns->topo_type_name || !ns->topo_type_name[t])
			continue;
		for (int j = 0; j < ns->type_cnt; j++)
			if (ns->type_name[j] && (ns->type_id[j] == ns->topo_type_id[t])) {
				if ((n > 0) || ns->type_cnt_alloc[j])
					ns->type_cnt_alloc[j] += n;
				break;
			}
	}
}

/* ---- what a job has ----------------------------------------------------------- */

struct filling {
	struct sk8_gres_room *room;
	uint32_t node, nodes;	/* of the job's: this one; or, to count, the first so many */
};

static uint64_t count_on(const gres_job_state_t *js, uint32_t node)
{
	const uint64_t count = ((node < js->node_cnt) && js->gres_cnt_node_alloc) ? js->gres_cnt_node_alloc[node] : 0;

	return (count == NO_CONSUME_VAL64) ? 0 : count;
}

static bitstr_t *devices_on(const gres_job_state_t *js, uint32_t node)
{
	return ((node < js->node_cnt) && js->gres_bit_alloc) ? js->gres_bit_alloc[node] : NULL;
}

/* what is needed at most */
static int count(void *x, void *arg)
{
	const gres_job_state_t *js = sk8_gres_of_job(x);
	struct filling *need = arg;

	if (!js)
		return -1;	/* stop */
	if (sk8_is_token(((const gres_state_t *) x)->gres_name))
		return 0;
	for (uint32_t n = 0; n < need->nodes; n++) {
		bitstr_t *devices = devices_on(js, n);
		const uint32_t bits = devices ? bit_set_count(devices) : 0;

		if (!count_on(js, n))
			continue;
		need->room->entries += MAX(bits, 1);
		need->room->indices += bits;
	}
	return 0;
}

static void add(struct sk8_gres_room *room, const gres_state_t *state, const gres_job_state_t *js,
		uint64_t count, bitstr_t *devices, int only)
{
	struct sk8_gres *gres = &room->gres[room->entries++];

	*gres = (struct sk8_gres) {
		.name = state->gres_name,
		.type = js->type_name ? js->type_name : "",
		.count = count,
		.devices = room->devices + room->indices,
	};
	for (int d = 0; devices && (d < bit_size(devices)); d++)
		if (bit_test(devices, d) && ((only < 0) || (d == only))) {
			room->devices[room->indices++] = d;
			gres->device_count++;
		}
}

static int fill(void *x, void *arg)
{
	const gres_state_t *state = x;
	const gres_job_state_t *js = sk8_gres_of_job(state);
	const struct filling *f = arg;
	uint64_t has;
	bitstr_t *devices;

	if (!js)
		return -1;	/* stop */
	if (sk8_is_token(state->gres_name))
		return 0;
	has = count_on(js, f->node);
	devices = devices_on(js, f->node);
	if (!has)
		return 0;
	if (devices && sk8_gres_is_shared(state)) {
		for (int d = 0; d < bit_size(devices); d++)
			if (bit_test(devices, d))
				add(f->room, state, js, sk8_gres_on_device(js, f->node, d, has), devices, d);
	} else
		add(f->room, state, js, has, devices, -1);
	return 0;
}

static bool has_any(const job_record_t *job_ptr)
{
	const gres_state_t *first = job_ptr->gres_list_alloc ? list_peek(job_ptr->gres_list_alloc) : NULL;

	return first && sk8_layout_fits_gres(first);
}

extern void sk8_gres_prepare(struct sk8_gres_room *room, const job_record_t *job_ptr, uint32_t nodes)
{
	struct filling need = { .room = room, .nodes = nodes };

	room->entries = room->indices = 0;
	if (has_any(job_ptr))
		list_for_each(job_ptr->gres_list_alloc, count, &need);
	if (room->entries > room->gres_size) {
		room->gres_size = room->entries;
		xrecalloc(room->gres, room->gres_size, sizeof(*room->gres));
	}
	if (room->indices > room->device_size) {
		room->device_size = room->indices;
		xrecalloc(room->devices, room->device_size, sizeof(*room->devices));
	}
	room->entries = room->indices = 0;
}

extern uint32_t sk8_gres_fill(struct sk8_gres_room *room, const job_record_t *job_ptr, uint32_t node,
			      const struct sk8_gres **gres)
{
	struct filling f = { .room = room, .node = node };
	const uint32_t before = room->entries;

	if (has_any(job_ptr))
		list_for_each(job_ptr->gres_list_alloc, fill, &f);
	*gres = room->gres + before;
	return room->entries - before;
}
