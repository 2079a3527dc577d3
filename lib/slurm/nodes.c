/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* nodes.c - Slurm's nodes as struct sk8_node */
#include "lib/slurm/gres.h"

enum { MAX_NODE_GRES = 64 };	/* as lib/core/gres.h has it */
/* What a node's GRES are written into: until this thread looks at the next node. */
static __thread struct sk8_gres node_gres[MAX_NODE_GRES];

static void add_gres(struct sk8_node *node, const char *name, const char *type, uint64_t count)
{
	if (count && (node->gres_count < MAX_NODE_GRES))
		node_gres[node->gres_count++] =
			(struct sk8_gres) { .name = name, .type = type ? type : "", .count = count };
}

/* Of types that were configured Slurm may have found less. */
static int view_gres(void *x, void *arg)
{
	const gres_state_t *state = x;
	const gres_node_state_t *ns = sk8_gres_of_node(state);
	uint64_t left = ns ? ns->gres_cnt_avail : 0;

	if (left == NO_VAL64)
		left = 0;
	for (int j = 0; left && (j < ns->type_cnt); j++) {
		const uint64_t some = MIN(left, ns->type_cnt_avail[j]);

		add_gres(arg, state->gres_name, ns->type_name[j], some);
		left -= some;
	}
	add_gres(arg, state->gres_name, "", left);
	return 0;
}

static bool usable(node_record_t *node_ptr)
{
	return !IS_NODE_DOWN(node_ptr) && !IS_NODE_DRAIN(node_ptr) &&
		!IS_NODE_FAIL(node_ptr) && !IS_NODE_FUTURE(node_ptr) &&
		!IS_NODE_UNKNOWN(node_ptr) && !IS_NODE_NO_RESPOND(node_ptr);
}

static struct sk8_node view(node_record_t *node_ptr)
{
	const gres_state_t *first = node_ptr->gres_list ? list_peek(node_ptr->gres_list) : NULL;
	struct sk8_node node = {
		.name = node_ptr->name,
		.cpus = node_ptr->cpus_efctv,
		.cores = node_ptr->tot_cores - node_ptr->core_spec_cnt,
		.threads_per_core = node_ptr->tpc,
		.memory_mb = node_ptr->real_memory - node_ptr->mem_spec_limit,
		.usable = usable(node_ptr),
		.drain = IS_NODE_DRAIN(node_ptr),
		.down = IS_NODE_DOWN(node_ptr),
		.fail = IS_NODE_FAIL(node_ptr),
		.maint = IS_NODE_MAINT(node_ptr),
		.reason = node_ptr->reason ? node_ptr->reason : "",
		.reason_uid = (node_ptr->reason && (node_ptr->reason_uid != NO_VAL)) ?
			node_ptr->reason_uid : SK8_NO_UID,
		.job_count = node_ptr->run_job_cnt + node_ptr->comp_job_cnt,
		.features = node_ptr->features ? node_ptr->features : "",
		.active_features = node_ptr->features_act ? node_ptr->features_act : "",
		.gres = node_gres,
	};

	if (first && sk8_layout_fits_gres(first))
		(void) list_for_each(node_ptr->gres_list, view_gres, &node);
	return node;
}

extern void sk8_each_node(void (*f)(void *arg, const struct sk8_node *node), void *arg)
{
	node_record_t *node_ptr;

	if (!sk8_layout_fits())
		return;
	for (int i = 0; (node_ptr = next_node(&i)); i++) {
		const struct sk8_node node = view(node_ptr);

		f(arg, &node);
	}
}

extern bool sk8_find_node(const char *name, struct sk8_node *node)
{
	node_record_t *node_ptr = sk8_layout_fits() ? find_node_record((char *) name) : NULL;

	if (node_ptr)
		*node = view(node_ptr);
	return node_ptr;
}
