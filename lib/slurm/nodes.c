/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* nodes.c - Slurm's nodes as struct sk8_node */
#include "lib/slurm/slurmctld.h"

static bool usable(node_record_t *node_ptr)
{
	return !IS_NODE_DOWN(node_ptr) && !IS_NODE_DRAIN(node_ptr) &&
		!IS_NODE_FAIL(node_ptr) && !IS_NODE_FUTURE(node_ptr) &&
		!IS_NODE_UNKNOWN(node_ptr) && !IS_NODE_NO_RESPOND(node_ptr);
}

static struct sk8_node view(node_record_t *node_ptr)
{
	return (struct sk8_node) {
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
	};
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
