/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * power.c - pods keep a node from being powered down.
 *
 * For Slurm a node with nothing but pods is IDLE, and power saving looks only how long it has been so since its last
 * job ended (last_busy, _do_power_work() in power_save.c, 22.05 and 24.11).
 */
#include "lib/slurm/mask_table.h"

/* Read without a lock: whoever changes it does so in a reconfigure, after which the next look sees it. */
extern bool sk8_saves_power(void)
{
	return slurm_conf.suspend_program && slurm_conf.suspend_program[0];
}

/* What belongs to the node (DaemonSets, static pods) is there as long as the node is: that is no use of it. */
static bool is_in_use(const struct sk8_mask *mask)
{
	return mask->whole || mask->core_count || mask->more_cores || mask->milli_cpu || mask->memory_mb || mask->gres_count;
}

extern void sk8_keep_masked_nodes_up(void)
{
	const time_t now = time(NULL);
	size_t count;
	struct sk8_masked *masked = sk8_masks_table(&count);

	if (!sk8_layout_fits())
		return;
	for (const struct sk8_masked *entry = masked; entry < masked + count; entry++) {
		node_record_t *node_ptr = (entry->node_inx < 0) ? NULL : node_record_table_ptr[entry->node_inx];

		/* 0: it is down already, or to be kept from that */
		if (node_ptr && is_in_use(entry->mask) && node_ptr->last_busy && (node_ptr->last_busy < now))
			node_ptr->last_busy = now;
	}
}
