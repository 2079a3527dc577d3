/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* nodes.c - Slurm's nodes as struct sk8_node */
#include "lib/slurm/gres.h"
#include "lib/slurm/job_nodes.h"

enum { MAX_NODE_GRES = 64 };	/* as lib/core/gres.h has it */
/* What a node's GRES are written into: until this thread looks at the next node. */
static __thread struct sk8_gres node_gres[MAX_NODE_GRES], used_gres[MAX_NODE_GRES];

static void add_gres(struct sk8_gres *list, uint32_t *length, const char *name, const char *type, uint64_t count)
{
	if (count && (*length < MAX_NODE_GRES))
		list[(*length)++] = (struct sk8_gres) { .name = name, .type = type ? type : "", .count = count };
}

/* Of types that were configured Slurm may have found less. */
static int view_gres(void *x, void *arg)
{
	const gres_state_t *state = x;
	const gres_node_state_t *ns = sk8_gres_of_node(state);
	struct sk8_node *node = arg;
	uint64_t left = ns ? ns->gres_cnt_avail : 0;

	if (left == NO_VAL64)
		left = 0;
	for (int j = 0; left && (j < ns->type_cnt); j++) {
		const uint64_t some = MIN(left, ns->type_cnt_avail[j]);

		add_gres(node_gres, &node->gres_count, state->gres_name, ns->type_name[j], some);
		left -= some;
	}
	add_gres(node_gres, &node->gres_count, state->gres_name, "", left);
	if (ns)
		add_gres(used_gres, &node->used_gres_count, state->gres_name, "", ns->gres_cnt_alloc);
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
		.threads_per_core = node_ptr->threads,
		.sockets = node_ptr->tot_sockets,
		.cores_per_socket = node_ptr->cores,
		.memory_mb = node_ptr->real_memory - node_ptr->mem_spec_limit,
		.usable = usable(node_ptr),
		.drain = IS_NODE_DRAIN(node_ptr),
		.down = IS_NODE_DOWN(node_ptr),
		.fail = IS_NODE_FAIL(node_ptr),
		.maint = IS_NODE_MAINT(node_ptr),
		.asleep = IS_NODE_POWERED_DOWN(node_ptr) || IS_NODE_POWERING_DOWN(node_ptr) || IS_NODE_POWERING_UP(node_ptr),
		.reason = node_ptr->reason ? node_ptr->reason : "",
		.reason_uid = (node_ptr->reason && (node_ptr->reason_uid != NO_VAL)) ?
			node_ptr->reason_uid : SK8_NO_UID,
		.job_count = node_ptr->run_job_cnt + node_ptr->comp_job_cnt,
		.features = node_ptr->features ? node_ptr->features : "",
		.active_features = node_ptr->features_act ? node_ptr->features_act : "",
		.gres = node_gres,
		.used_gres = used_gres,
	};

	if (first && sk8_layout_fits_gres(first))
		(void) list_for_each(node_ptr->gres_list, view_gres, &node);
	return node;
}

extern void sk8_each_node(void (*f)(void *arg, const struct sk8_node *node), void *arg)
{
	struct sk8_node_use *use;
	node_record_t *node_ptr;

	if (!sk8_layout_fits())
		return;
	use = sk8_node_use();
	for (int i = 0; (node_ptr = next_node(&i)); i++) {
		struct sk8_node node = view(node_ptr);

		node.used_cores = use[i].cores;
		node.used_memory_mb = use[i].memory_mb;
		f(arg, &node);
	}
	xfree(use);
}

extern bool sk8_find_node(const char *name, struct sk8_node *node)
{
	node_record_t *node_ptr = sk8_layout_fits() ? find_node_record((char *) name) : NULL;

	if (node_ptr)
		*node = view(node_ptr);
	return node_ptr;
}
