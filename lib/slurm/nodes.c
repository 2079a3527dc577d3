/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* nodes.c - Slurm's nodes as struct sk8_node */
#include "lib/slurm/slurmctld.h"

static bool usable(node_record_t *node_ptr)
{
	return !IS_NODE_DOWN(node_ptr) && !IS_NODE_DRAIN(node_ptr) &&
		!IS_NODE_FAIL(node_ptr) && !IS_NODE_FUTURE(node_ptr) &&
		!IS_NODE_UNKNOWN(node_ptr) && !IS_NODE_NO_RESPOND(node_ptr);
}

extern void sk8_each_node(void (*f)(void *arg, const struct sk8_node *node), void *arg)
{
	node_record_t *node_ptr;

	if (!sk8_layout_fits())
		return;
	for (int i = 0; (node_ptr = next_node(&i)); i++) {
		const struct sk8_node node = {
			.name = node_ptr->name,
			.cpus = node_ptr->cpus_efctv,
			.cores = node_ptr->tot_cores - node_ptr->core_spec_cnt,
			.threads_per_core = node_ptr->tpc,
			.memory_mb = node_ptr->real_memory - node_ptr->mem_spec_limit,
			.usable = usable(node_ptr),
		};

		f(arg, &node);
	}
}
