/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * matching_or.c - --constraint=[a|b]: all nodes of a job have a, or all have b.
 *
 * Slurm looks for these features at its records of slurm.conf's nodes, not at nodes: if one
 * node of a record has a all of them do (_valid_features() in node_scheduler.c). So its own
 * update_node() cuts records until all nodes of each have the same. Labels may differ from
 * node to node, and the scheduler walks all records for each job: we leave them whole
 * (node_features.c), and look at the nodes here, for the jobs that ask so.
 *
 * Only if one of the features is ours: of others the records tell the truth.
 */
#include "lib/slurm/sizes.h"
#include "lib/slurm/slurmctld.h"

enum { MOST_CHOICES = 16 };	/* more are left to Slurm */

struct choices {
	bitstr_t *nodes[MOST_CHOICES];
	int count;
	bool ours, unusable;
	bitstr_t *term;		/* what is read: a feature, or those in parentheses so far */
	uint8_t inner_op, last_op;
};

/* One before or behind the brackets is no choice: valid_feature_counts() has seen to it. */
static void take_term(struct choices *c, uint8_t op)
{
	const bool choice = (op == FEATURE_OP_MOR) || (c->last_op == FEATURE_OP_MOR);

	c->unusable = choice && (c->count == MOST_CHOICES);
	if (choice && !c->unusable) {
		c->nodes[c->count++] = c->term;
		c->term = NULL;
	}
	FREE_NULL_BITMAP(c->term);
	c->last_op = op;
}

/* The last one in parentheses counts as outside (build_feature_list()). */
static int read_feature(void *x, void *arg)
{
	const job_feature_t *feature = x;
	struct choices *c = arg;

	c->unusable = !sk8_is_sized(feature, sizeof(*feature)) || !feature->node_bitmap_avail || feature->count ||
		(bit_size(feature->node_bitmap_avail) != node_record_count);
	if (c->unusable)
		return -1;
	c->ours = c->ours || !xstrncmp(feature->name, "k8s.", 4);
	if (!c->term)
		c->term = bit_copy(feature->node_bitmap_avail);
	else if (c->inner_op == FEATURE_OP_AND)
		bit_and(c->term, feature->node_bitmap_avail);
	else
		bit_or(c->term, feature->node_bitmap_avail);
	c->inner_op = feature->op_code;
	if (!feature->paren)
		take_term(c, feature->op_code);
	return c->unusable ? -1 : 0;
}

static void free_choices(struct choices *c)
{
	FREE_NULL_BITMAP(c->term);
	for (int k = 0; k < c->count; k++)
		FREE_NULL_BITMAP(c->nodes[k]);
}

static bool read_choices(struct choices *c, const job_details_t *details)
{
	*c = (struct choices) { .last_op = FEATURE_OP_AND };
	if (!details || !details->feature_list_use || !xstrchr(details->features_use, '['))
		return false;
	(void) list_for_each(details->feature_list_use, read_feature, c);
	if (c->ours && c->count && !c->unusable)
		return true;
	free_choices(c);
	return false;
}

/* As Slurm tries one feature after the other, and takes the first one that will do. */
extern int sk8_matching_or_job_test(SK8_JOB_TEST_PARAMS)
{
	const bitstr_t *required;
	struct choices c;
	bitstr_t *all;
	int rc = EINVAL;

	if (!sk8_layout_fits_record(job_ptr) || !read_choices(&c, job_ptr->details))
		return sk8_suspension_job_test(SK8_JOB_TEST_ARGS);
	required = job_ptr->details->req_node_bitmap;
	all = bit_copy(node_bitmap);
	for (int k = 0; rc && (k < c.count); k++) {
		bit_copybits(node_bitmap, all);
		bit_and(node_bitmap, c.nodes[k]);
		if (((uint32_t) bit_set_count(node_bitmap) >= min_nodes) &&
		    (!required || bit_super_set((bitstr_t *) required, node_bitmap)))
			rc = sk8_suspension_job_test(SK8_JOB_TEST_ARGS);
	}
	FREE_NULL_BITMAP(all);
	free_choices(&c);
	return rc;
}
