/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * power.c - pods keep a node from being powered down.
 *
 * For Slurm a node with nothing but pods is IDLE, and power saving looks only how long it has been so since its last
 * job ended (last_busy, _do_power_work() in power_save.c, 22.05 and 24.11), or whether it is to go as soon as it is idle
 * (POWER_DOWN): because an administrator wants it (POWER_DOWN, POWER_DOWN_ASAP), or its partition (PowerDownOnIdle, with
 * each job that starts). That flag is taken off while pods are there, and put back when they are gone.
 */
#include <errno.h>
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

/*
 * Nodes that are to be powered down when their pods are gone. By name, as a reconfigure may give them other indices. Node
 * write lock.
 */
static struct {
	char **name;
	uint32_t count;
} to_go;

/*
 * POWER_DOWN_FORCE waits for nobody: its node is in use no more, although it is not DOWN (_make_node_unavail(), node_mgr.c).
 */
static bool is_forced(const node_record_t *node_ptr)
{
	return !bit_test(up_node_bitmap, node_ptr->index);
}

/* Or is on its way there or back. */
static bool is_asleep(const node_record_t *node_ptr)
{
	return IS_NODE_POWERED_DOWN(node_ptr) || IS_NODE_POWERING_DOWN(node_ptr) || IS_NODE_POWERING_UP(node_ptr);
}

static void hold_up(node_record_t *node_ptr)
{
	if (!(node_ptr->node_state & NODE_STATE_POWER_DOWN) || is_forced(node_ptr) || is_asleep(node_ptr))
		return;
	node_ptr->node_state &= ~NODE_STATE_POWER_DOWN;
	last_node_update = time(NULL);
	for (uint32_t k = 0; k < to_go.count; k++)
		if (!xstrcmp(to_go.name[k], node_ptr->name))
			return;
	xrecalloc(to_go.name, to_go.count + 1, sizeof(*to_go.name));
	to_go.name[to_go.count++] = xstrdup(node_ptr->name);
	info("slurm-k8s: node %s is powered down when its pods are gone", node_ptr->name);
}

/* As update_node() does it for POWER_DOWN. */
static void let_go(node_record_t *node_ptr)
{
	if (is_asleep(node_ptr))
		return;
	node_ptr->node_state |= NODE_STATE_POWER_DOWN;
	if (IS_NODE_IDLE(node_ptr))
		bit_clear(avail_node_bitmap, node_ptr->index);	/* before a job gets there */
	last_node_update = time(NULL);
	info("slurm-k8s: the pods of node %s are gone, and it is powered down when it is idle", node_ptr->name);
}

static bool has_pods(const struct sk8_masked *masked, size_t count, int node_inx)
{
	for (const struct sk8_masked *entry = masked; entry < masked + count; entry++)
		if ((entry->node_inx == node_inx) && is_in_use(entry->mask))
			return true;
	return false;
}

static void let_empty_ones_go(const struct sk8_masked *masked, size_t count)
{
	uint32_t left = 0;

	for (uint32_t k = 0; k < to_go.count; k++) {
		node_record_t *node_ptr = find_node_record(to_go.name[k]);

		if (node_ptr && has_pods(masked, count, node_ptr->index)) {
			to_go.name[left++] = to_go.name[k];
			continue;
		}
		if (node_ptr)
			let_go(node_ptr);
		xfree(to_go.name[k]);
	}
	to_go.count = left;
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

		if (!node_ptr || !is_in_use(entry->mask))
			continue;
		/* 0: it is down already, or to be kept from that */
		if (node_ptr->last_busy && (node_ptr->last_busy < now))
			node_ptr->last_busy = now;
		hold_up(node_ptr);
	}
	let_empty_ones_go(masked, count);
}

extern void sk8_keep_nodes_up_after(const job_record_t *job_ptr)
{
	const int saved_errno = errno;
	size_t count;
	struct sk8_masked *masked;

	if (!sk8_saves_power() || !job_ptr->node_bitmap)
		return;
	masked = sk8_masks_table(&count);
	for (const struct sk8_masked *entry = masked; entry < masked + count; entry++)
		if ((entry->node_inx >= 0) && (entry->node_inx < bit_size(job_ptr->node_bitmap)) &&
		    bit_test(job_ptr->node_bitmap, entry->node_inx) && is_in_use(entry->mask))
			hold_up(node_record_table_ptr[entry->node_inx]);
	errno = saved_errno;
}
