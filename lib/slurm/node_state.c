/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * node_state.c - a node gets no more jobs because Kubernetes says so, and gets them
 * again. Only slurmctld's own update_node() changes a state; what is compared before
 * is compared under the lock that it is changed under, so that no administrator's
 * word is run over.
 */
#include "lib/slurm/slurmctld.h"
#include "src/slurmctld/reservation.h"

static bool changed;	/* since the last unlock; node write lock */

/* Is this reason ours, and the node's? An empty one is nobody's. */
static bool is_reason(const node_record_t *node_ptr, const char *reason)
{
	return reason[0] && !xstrcmp(node_ptr->reason, reason) &&
		(node_ptr->reason_uid == slurm_conf.slurm_user_id);
}

static bool is_kept_away(const node_record_t *node_ptr)
{
	return IS_NODE_DRAIN(node_ptr) || IS_NODE_DOWN(node_ptr) || IS_NODE_FAIL(node_ptr);
}

static bool is_as_expected(const node_record_t *node_ptr, const struct sk8_node_change *c)
{
	if (c->expected[0])
		return is_kept_away(node_ptr) && !IS_NODE_FAIL(node_ptr) &&
			is_reason(node_ptr, c->expected);
	return (c->action != SK8_NODE_RESUME) && !is_kept_away(node_ptr) && !IS_NODE_FUTURE(node_ptr);
}

static int update(const char *node, uint32_t state, const char *reason)
{
	update_node_msg_t msg;

	slurm_init_update_node_msg(&msg);
	msg.node_names = (char *) node;
	msg.node_state = state;
	msg.reason = (char *) reason;
	changed = true;
	return update_node(&msg, slurm_conf.slurm_user_id);
}

static void clear_reason(node_record_t *node_ptr)
{
	xfree(node_ptr->reason);
	node_ptr->reason_time = 0;
	node_ptr->reason_uid = NO_VAL;
}

/*
 * slurmd may have died while the node was drained: then it is DOWN with our reason, and
 * ReturnToService=1 wants to read that it does not respond.
 */
static int resume(node_record_t *node_ptr, const char *expected)
{
	const bool silent = IS_NODE_DOWN(node_ptr) && IS_NODE_NO_RESPOND(node_ptr);
	int rc = SLURM_SUCCESS;

	if (IS_NODE_DOWN(node_ptr) && !silent)
		rc = update(node_ptr->name, NODE_RESUME, NULL);
	else if (IS_NODE_DRAIN(node_ptr))
		rc = update(node_ptr->name, NODE_STATE_UNDRAIN, NULL);
	/* of a node that has not registered yet update_node() calls the state invalid, and has undrained it all the same */
	if (!is_kept_away(node_ptr))
		rc = SLURM_SUCCESS;
	/* some releases leave it there, with accounting or without */
	if (!rc && is_reason(node_ptr, expected)) {
		clear_reason(node_ptr);
		if (silent) {
			node_ptr->reason = xstrdup("Not responding");
			node_ptr->reason_time = time(NULL);
			node_ptr->reason_uid = slurm_conf.slurm_user_id;
		}
	}
	return rc;
}

extern void sk8_change_node(const struct sk8_node_change *c, struct sk8_outcome *out)
{
	node_record_t *node_ptr = sk8_layout_fits() ? find_node_record((char *) c->node) : NULL;
	int rc;

	*out = (struct sk8_outcome) { .rc = SLURM_SUCCESS };
	if (!node_ptr)
		rc = ESLURM_INVALID_NODE_NAME;
	else if (!is_as_expected(node_ptr, c))
		rc = ESLURM_INVALID_NODE_STATE;
	else if (c->action == SK8_NODE_RESUME)
		rc = resume(node_ptr, c->expected);
	else {
		rc = update(node_ptr->name, NODE_STATE_DRAIN, c->reason);
		/* drained too: with ReturnToService=2 the next registration ends what is DOWN */
		if (!rc && (c->action == SK8_NODE_DOWN))
			rc = update(node_ptr->name, NODE_STATE_DOWN, c->reason);
	}
	sk8_outcome_error(out, rc, NULL);
}

extern bool sk8_nodes_changed(void)
{
	const bool rc = changed;

	changed = false;
	return rc;
}

extern void sk8_save_nodes(void)
{
	schedule_node_save();
	SK8_VALIDATE_ALL_RESERVATIONS();	/* floating ones look for other nodes */
}
