/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * gate_devices.c - a job in the gate gets other devices on a node: those that the kubelet there has
 * given its pod, where a device plugin hands them out. The job has been launched nowhere yet, so only
 * Slurm's own records know the ones that it had.
 */
#include "lib/slurm/gres.h"
#include "lib/slurm/mask_gres.h"

struct change {
	const char *name;
	uint32_t host;		/* which of the job's nodes it is */
	gres_node_state_t *ns;
	bitstr_t *had, *wanted;	/* by the job */
	bitstr_t *left;		/* of the wanted ones: that no entry has got yet */
	bool fits;
};

static bitstr_t **bits_of(const struct change *change, gres_state_t *state)
{
	gres_job_state_t *js = xstrcmp(state->gres_name, change->name) ? NULL : sk8_gres_of_job(state);

	if (!js || !js->gres_bit_alloc || (change->host >= js->node_cnt) ||
	    !js->gres_bit_alloc[change->host] ||
	    (bit_size(js->gres_bit_alloc[change->host]) != bit_size(change->had)))
		return NULL;
	return &js->gres_bit_alloc[change->host];
}

/* ---- may it have them? --------------------------------------------------------------- */

static int add_had(void *x, void *arg)
{
	struct change *change = arg;
	bitstr_t **bits = bits_of(change, x);

	if (bits)
		bit_or(change->had, *bits);
	return 0;
}

/* so many of this type of those that are left, the first ones; fewer if there are not so many */
static bitstr_t *pick(struct change *change, const char *type, int count)
{
	bitstr_t *out = bit_alloc(bit_size(change->left));

	for (int d = 0; count && (d < bit_size(change->left)); d++)
		if (bit_test(change->left, d) && sk8_gres_is_of_type(change->ns, d, type)) {
			bit_clear(change->left, d);
			bit_set(out, d);
			count--;
		}
	return out;
}

static bitstr_t *pick_for(struct change *change, gres_state_t *state, bitstr_t *bits)
{
	const gres_job_state_t *js = state->gres_data;

	return pick(change, js->type_name ? js->type_name : "", bit_set_count(bits));
}

/* Takes an entry's part of what is left; it is given only if that is meant. */
static int share_of(struct change *change, gres_state_t *state, bool meant)
{
	bitstr_t **bits = bits_of(change, state), *fresh;

	if (!bits)
		return 0;
	fresh = pick_for(change, state, *bits);
	change->fits &= bit_set_count(fresh) == bit_set_count(*bits);
	if (meant) {
		bit_free(*bits);
		*bits = fresh;
	} else {
		bit_free(fresh);
	}
	return 0;
}

static int try_entry(void *x, void *arg)
{
	return share_of(arg, x, false);
}

/* ---- it gets them ---------------------------------------------------------------------- */

static void count(gres_node_state_t *ns, bitstr_t *devices, bool more)
{
	for (int d = 0; d < bit_size(devices); d++) {
		if (!bit_test(devices, d))
			continue;
		if (more)
			bit_set(ns->gres_bit_alloc, d);
		else
			bit_clear(ns->gres_bit_alloc, d);
		sk8_gres_count_topologies(ns, d, more ? 1 : -1);
	}
}

static int give(void *x, void *arg)
{
	return share_of(arg, x, true);
}

/* f has all of the wanted ones to give to the entries of this list, and is to leave none. */
static bool share_out(struct change *change, sk8_list_t list, int (*f)(void *x, void *arg))
{
	bit_copybits(change->left, change->wanted);
	change->fits = true;
	list_for_each(list, f, change);
	return change->fits && (bit_ffs(change->left) < 0);
}

/* NULL, or why not. The stock plugin counts by what the job has, and by what it asked for when it
 * asks how things will be when jobs have ended: its bits are in both lists. */
static const char *exchange(struct change *change, job_record_t *job_ptr, const struct sk8_device_change *c)
{
	list_for_each(job_ptr->gres_list_alloc, add_had, change);
	for (uint32_t k = 0; k < c->device_count; k++) {
		const int d = c->devices[k];

		if (d >= bit_size(change->wanted))
			return "the node has no such device in Slurm";
		if (bit_test(change->ns->gres_bit_alloc, d) && !bit_test(change->had, d))
			return "another job has one of these devices";
		bit_set(change->wanted, d);
	}
	if (bit_set_count(change->wanted) != bit_set_count(change->had))
		return "the job has not so many of these devices";
	if (!share_out(change, job_ptr->gres_list_alloc, try_entry) ||
	    !share_out(change, job_ptr->gres_list_req, try_entry))
		return "these devices are of another type than the job's";
	count(change->ns, change->had, false);
	count(change->ns, change->wanted, true);
	(void) share_out(change, job_ptr->gres_list_alloc, give);
	(void) share_out(change, job_ptr->gres_list_req, give);
	return NULL;
}

/* which of the job's nodes this is; -1: none */
static int host_of(const job_record_t *job_ptr, const node_record_t *node_ptr)
{
	const job_resources_t *resrcs = job_ptr->job_resrcs;

	if (!resrcs || !resrcs->node_bitmap || !bit_test(resrcs->node_bitmap, node_ptr->index))
		return -1;
	return node_ptr->index ? bit_set_count_range(resrcs->node_bitmap, 0, node_ptr->index) : 0;
}

static const char *set_devices(const struct sk8_device_change *c)
{
	job_record_t *job_ptr = sk8_layout_fits() ? find_job_record(c->job_id) : NULL;
	node_record_t *node_ptr = find_node_record((char *) c->node);
	struct change change = { .name = c->gres };
	const gres_state_t *state;
	const char *problem;
	int host;

	if (!job_ptr || !sk8_layout_fits_job(job_ptr) || sk8_is_ours(job_ptr) || !job_ptr->details ||
	    (job_ptr->details->submit_time != c->submit_time) || !IS_JOB_RUNNING(job_ptr) || !IS_JOB_CONFIGURING(job_ptr))
		return "the job is not in the gate any more";
	if (!node_ptr || !job_ptr->gres_list_alloc || !job_ptr->gres_list_req || ((host = host_of(job_ptr, node_ptr)) < 0))
		return "the job is not on this node";
	sk8_gres_unshow();	/* what it has set is no job's */
	state = sk8_gres_find(node_ptr->gres_list, c->gres);
	change.ns = sk8_gres_of_node(state);
	if (!change.ns || !change.ns->gres_bit_alloc || sk8_gres_is_shared(state) ||
	    !sk8_gres_find(job_ptr->gres_list_alloc, c->gres))
		return "Slurm knows no devices of this GRES";
	change.host = host;
	change.had = bit_alloc(bit_size(change.ns->gres_bit_alloc));
	change.wanted = bit_alloc(bit_size(change.ns->gres_bit_alloc));
	change.left = bit_alloc(bit_size(change.ns->gres_bit_alloc));
	if (!(problem = exchange(&change, job_ptr, c))) {
		sk8_gres_details(job_ptr);
		last_job_update = last_node_update = time(NULL);
	}
	bit_free(change.had);
	bit_free(change.wanted);
	bit_free(change.left);
	return problem;
}

extern void sk8_set_devices(const struct sk8_device_change *c, struct sk8_outcome *out)
{
	const char *problem = set_devices(c);

	*out = (struct sk8_outcome) { .job_id = c->job_id, .submit_time = c->submit_time };
	if (problem)
		sk8_outcome_error(out, ESLURM_INVALID_GRES, problem);
}
