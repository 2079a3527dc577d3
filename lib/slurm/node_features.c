/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * node_features.c - a node has other features because its labels in Kubernetes have changed.
 *
 * No plugin of type node_features, and none of the features is one that such a plugin
 * calls changeable: a job that asks for them can never make Slurm reboot a node, and the
 * administrator's own plugins (helpers, knl) keep theirs. Nor by update_node(), which asks
 * those plugins what the features should be: helpers never lets go of one that is not its
 * own. It would also cut config_list into a record for each node, all of which the
 * scheduler walks for each job. So this is what update_node() does besides: the node's
 * two lists, and the two tables by which --constraint finds it. What Slurm asks those records
 * instead, matching_or.c knows better.
 *
 * slurm.conf has none of this: after a reconfigure or a restart it is done again.
 */
#include "lib/slurm/slurmctld.h"

static bool changed;	/* since sk8_features_done(); node write lock */

static bool is(const char *text, const char *expected)
{
	return !xstrcmp(text ? text : "", expected);
}

static void set(char **text, const char *value)
{
	xfree(*text);
	if (value[0])
		*text = xstrdup(value);
}

static void change(node_record_t *node_ptr, const struct sk8_feature_change *c)
{
	bitstr_t *node = bit_alloc(node_record_count);

	bit_set(node, node_ptr->index);
	set(&node_ptr->features, c->features);
	set(&node_ptr->features_act, c->active);
	SK8_UPDATE_FEATURE_LIST(avail_feature_list, node_ptr->features, node);
	SK8_UPDATE_FEATURE_LIST(active_feature_list, node_ptr->features_act, node);
	FREE_NULL_BITMAP(node);
	last_node_update = time(NULL);
	changed = true;
}

extern void sk8_change_features(const struct sk8_feature_change *c, struct sk8_outcome *out)
{
	node_record_t *node_ptr = sk8_layout_fits() ? find_node_record((char *) c->node) : NULL;
	int rc = SLURM_SUCCESS;

	*out = (struct sk8_outcome) { .rc = SLURM_SUCCESS };
	if (!node_ptr || !avail_feature_list || !active_feature_list)
		rc = ESLURM_INVALID_NODE_NAME;
	else if (!is(node_ptr->features, c->expected) || !is(node_ptr->features_act, c->expected_active))
		rc = ESLURM_INVALID_NODE_STATE;
	else
		change(node_ptr, c);
	sk8_outcome_error(out, rc, NULL);
}

/*
 * The scheduler holds a job for which there is no node. Slurm lets it go when features
 * change, but looks only every 30 seconds.
 */
static int let_go(void *x, void *arg)
{
	job_record_t *job_ptr = x;

	(void) arg;
	if (sk8_layout_fits_job(job_ptr) && IS_JOB_PENDING(job_ptr) && !job_ptr->priority &&
	    (job_ptr->state_reason == FAIL_BAD_CONSTRAINTS) && job_ptr->details && job_ptr->details->features) {
		job_ptr->state_reason = WAIT_NO_REASON;
		set_job_prio(job_ptr);
		last_job_update = time(NULL);
	}
	return SLURM_SUCCESS;
}

extern void sk8_features_done(void)
{
	if (changed && sk8_layout_fits()) {
		(void) list_for_each(job_list, let_go, NULL);
		sk8_tell_feature_waits();
	}
	changed = false;
}
