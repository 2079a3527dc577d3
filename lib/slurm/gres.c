/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* gres.c - see there */
#include "lib/slurm/gres.h"

static int is_named(void *x, void *key)
{
	return !xstrcmp(((gres_state_t *) x)->gres_name, key);
}

extern gres_state_t *sk8_gres_find(sk8_list_t list, const char *name)
{
	gres_state_t *first = list ? list_peek(list) : NULL;

	if (!first || !sk8_layout_fits_gres(first))
		return NULL;
	return list_find_first(list, is_named, (void *) name);
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

/* ---- what a job has ----------------------------------------------------------- */

struct filling {
	struct sk8_view *view;
	uint32_t entries, devices;	/* written; or, in the first round, needed at most */
	bool count;			/* the first round */
};

static void add(struct filling *f, const gres_state_t *state, const gres_job_state_t *js,
		uint64_t count, const bitstr_t *devices, int only)
{
	struct sk8_gres *gres = &f->view->gres[f->entries++];

	*gres = (struct sk8_gres) {
		.name = state->gres_name,
		.type = js->type_name ? js->type_name : "",
		.count = count,
		.devices = f->view->devices + f->devices,
	};
	for (int d = 0; devices && (d < bit_size((bitstr_t *) devices)); d++)
		if (bit_test((bitstr_t *) devices, d) && ((only < 0) || (d == only))) {
			f->view->devices[f->devices++] = d;
			gres->device_count++;
		}
}

static int fill(void *x, void *arg)
{
	const gres_state_t *state = x;
	const gres_job_state_t *js = sk8_gres_of_job(state);
	struct filling *f = arg;
	const uint64_t count = (js && js->node_cnt && js->gres_cnt_node_alloc) ?
		js->gres_cnt_node_alloc[0] : 0;
	bitstr_t *devices = (js && js->node_cnt && js->gres_bit_alloc) ? js->gres_bit_alloc[0] : NULL;

	if (!js)
		return -1;	/* stop */
	if (!count || (count == NO_CONSUME_VAL64))
		return 0;
	if (f->count) {
		const int bits = devices ? bit_set_count(devices) : 0;

		f->entries += MAX(bits, 1);
		f->devices += bits;
	} else if (devices && sk8_gres_is_shared(state)) {
		for (int d = 0; d < bit_size(devices); d++)
			if (bit_test(devices, d))
				add(f, state, js, sk8_gres_on_device(js, 0, d, count), devices, d);
	} else
		add(f, state, js, count, devices, -1);
	return 0;
}

extern void sk8_gres_fill(struct sk8_view *view, const job_record_t *job_ptr)
{
	struct filling need = { .view = view, .count = true }, f = { .view = view };
	gres_state_t *first = job_ptr->gres_list_alloc ? list_peek(job_ptr->gres_list_alloc) : NULL;

	if (!first || !sk8_layout_fits_gres(first))
		return;
	list_for_each(job_ptr->gres_list_alloc, fill, &need);
	if (need.entries > view->gres_room) {
		xrecalloc(view->gres, need.entries, sizeof(*view->gres));
		view->gres_room = need.entries;
	}
	if (need.devices > view->device_room) {
		xrecalloc(view->devices, need.devices, sizeof(*view->devices));
		view->device_room = need.devices;
	}
	if (need.entries)
		list_for_each(job_ptr->gres_list_alloc, fill, &f);
	view->job.gres_count = f.entries;
	view->job.gres = view->gres;
}
