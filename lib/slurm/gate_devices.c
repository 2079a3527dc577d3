/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * gate_devices.c - a job gets other devices on a node: those that the kubelet there has given its pod,
 * where a device plugin hands them out. A job in the gate has been launched nowhere yet, and one of
 * ours never will be, so only Slurm's own records know the ones that it had.
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

static bool can_have(struct change *change, job_record_t *job_ptr)
{
	return share_out(change, job_ptr->gres_list_alloc, try_entry) &&
	       share_out(change, job_ptr->gres_list_req, try_entry);
}

static void get(struct change *change, job_record_t *job_ptr)
{
	count(change->ns, change->wanted, true);
	(void) share_out(change, job_ptr->gres_list_alloc, give);
	(void) share_out(change, job_ptr->gres_list_req, give);
	sk8_gres_details(job_ptr);
}

/* Jobs have parts of this device (shard): its kubelet knows nothing of these. */
static bool is_shared_out(const struct change *change, int device)
{
	const gres_node_state_t *parts = sk8_gres_alternate(change->ns);

	return parts && sk8_layout_fits_gres_node(parts) && parts->gres_bit_alloc &&
		(device < bit_size(parts->gres_bit_alloc)) && bit_test(parts->gres_bit_alloc, device);
}

/* What each of the two is to have; NULL, or why not. from: has nothing if there is nobody to exchange with. */
static const char *plan(struct change *change, struct change *from, const struct sk8_device_change *c)
{
	for (uint32_t k = 0; k < c->device_count; k++) {
		const int d = c->devices[k];

		if (d >= bit_size(change->wanted))
			return "the node has no such device in Slurm";
		if (bit_test(change->ns->gres_bit_alloc, d) && !bit_test(change->had, d)) {
			if (!bit_test(from->had, d))
				return "another job has one of these devices";
			bit_clear(from->wanted, d);
		}
		if (!bit_test(change->had, d) && is_shared_out(change, d))
			return "another job has a part of one of these devices";
		bit_set(change->wanted, d);
	}
	if (bit_set_count(change->wanted) != bit_set_count(change->had))
		return "the job has not so many of these devices";
	for (int d = 0; d < bit_size(change->had); d++)
		if (bit_test(change->had, d) && !bit_test(change->wanted, d) &&
		    (bit_set_count(from->wanted) < bit_set_count(from->had)))
			bit_set(from->wanted, d);
	return NULL;
}

/* NULL, or why not. The stock plugin counts by what the job has, and by what it asked for when it
 * asks how things will be when jobs have ended: its bits are in both lists. */
static const char *exchange(struct change *change, job_record_t *job_ptr, struct change *from,
			    job_record_t *from_ptr, const struct sk8_device_change *c)
{
	const char *problem;

	list_for_each(job_ptr->gres_list_alloc, add_had, change);
	if (from_ptr)
		list_for_each(from_ptr->gres_list_alloc, add_had, from);
	bit_copybits(from->wanted, from->had);
	if ((problem = plan(change, from, c)))
		return problem;
	if (!can_have(change, job_ptr) || (from_ptr && !can_have(from, from_ptr)))
		return "these devices are of another type than the job's";
	count(change->ns, change->had, false);
	count(change->ns, from->had, false);
	get(change, job_ptr);
	if (from_ptr)
		get(from, from_ptr);
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

/* NULL: not that job, or it has no devices of this GRES there. */
static job_record_t *find_owner(uint32_t job_id, int64_t submit_time, const node_record_t *node_ptr, struct change *change)
{
	job_record_t *job_ptr = find_job_record(job_id);
	int host;

	if (!job_ptr || !sk8_layout_fits_job(job_ptr) || !job_ptr->details || (job_ptr->details->submit_time != submit_time) ||
	    !IS_JOB_RUNNING(job_ptr) || !job_ptr->gres_list_alloc || !job_ptr->gres_list_req ||
	    ((host = host_of(job_ptr, node_ptr)) < 0) || !sk8_gres_find(job_ptr->gres_list_alloc, change->name))
		return NULL;
	change->host = host;
	return job_ptr;
}

static void begin(struct change *change, gres_node_state_t *ns)
{
	change->ns = ns;
	change->had = bit_alloc(bit_size(ns->gres_bit_alloc));
	change->wanted = bit_alloc(bit_size(ns->gres_bit_alloc));
	change->left = bit_alloc(bit_size(ns->gres_bit_alloc));
}

static void done(struct change *change)
{
	bit_free(change->had);
	bit_free(change->wanted);
	bit_free(change->left);
}

static const char *set_devices(const struct sk8_device_change *c)
{
	node_record_t *node_ptr = sk8_layout_fits() ? find_node_record((char *) c->node) : NULL;
	struct change change = { .name = c->gres }, from = { .name = c->gres };
	job_record_t *job_ptr, *from_ptr = NULL;
	const gres_state_t *state;
	gres_node_state_t *ns;
	const char *problem;

	if (!node_ptr || !(job_ptr = find_owner(c->job_id, c->submit_time, node_ptr, &change)))
		return "the job has no such devices there";
	if (!sk8_is_ours(job_ptr) && !IS_JOB_CONFIGURING(job_ptr))
		return "the job is not in the gate any more";
	if (c->from_job && (!(from_ptr = find_owner(c->from_job, c->from_submit_time, node_ptr, &from)) ||
			    (from_ptr == job_ptr) || !sk8_is_ours(from_ptr)))
		return "the other job has no such devices there";
	sk8_gres_unshow();	/* what it has set is no job's */
	state = sk8_gres_find(node_ptr->gres_list, c->gres);
	ns = sk8_gres_of_node(state);
	if (!ns || !ns->gres_bit_alloc || sk8_gres_is_shared(state))
		return "Slurm knows no devices of this GRES";
	begin(&change, ns);
	begin(&from, ns);
	if (!(problem = exchange(&change, job_ptr, &from, from_ptr, c)))
		last_job_update = last_node_update = time(NULL);
	done(&change);
	done(&from);
	return problem;
}

extern void sk8_set_devices(const struct sk8_device_change *c, struct sk8_outcome *out)
{
	const char *problem = set_devices(c);

	*out = (struct sk8_outcome) { .job_id = c->job_id, .submit_time = c->submit_time };
	if (problem)
		sk8_outcome_error(out, ESLURM_INVALID_GRES, problem);
}
