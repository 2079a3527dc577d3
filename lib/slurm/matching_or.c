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

/* As valid_feature_counts(): without features_use Slurm looks only when a job could start (job_start_data()). */
static bool read_choices(struct choices *c, const job_details_t *details)
{
	const bool in_use = details && details->features_use;
	const char *text = in_use ? details->features_use : details ? details->features : NULL;
	sk8_list_t list = in_use ? details->feature_list_use : details ? details->feature_list : NULL;

	*c = (struct choices) { .last_op = FEATURE_OP_AND };
	if (!list || !xstrchr(text, '['))
		return false;
	(void) list_for_each(list, read_feature, c);
	if (c->ours && c->count && !c->unusable)
		return true;
	free_choices(c);
	return false;
}

/* ---- one choice after the other, each as if it were the first ---- */

/* What a test changes of a job, and what it found. */
struct found {
	bitstr_t *nodes;
	sk8_list_t victims;
	time_t start_time;
	uint64_t memory;
	uint32_t cpus;
};

static void put_back(job_record_t *job_ptr, const struct found *found)
{
	job_ptr->start_time = found->start_time;
	job_ptr->details->pn_min_memory = found->memory;	/* Slurm makes it 0 where GRES say how much */
	job_ptr->total_cpus = found->cpus;
}

static struct found state_of(const job_record_t *job_ptr, const bitstr_t *nodes)
{
	return (struct found) {
		.nodes = bit_copy((bitstr_t *) nodes), .start_time = job_ptr->start_time, .memory = job_ptr->details->pn_min_memory,
		.cpus = job_ptr->total_cpus,
	};
}

static void forget(struct found *found)
{
	FREE_NULL_BITMAP(found->nodes);
	FREE_NULL_LIST(found->victims);
}

static void hand_over(job_record_t *job_ptr, struct found *best, bitstr_t *node_bitmap, sk8_list_t *preemptee_job_list)
{
	put_back(job_ptr, best);
	bit_copybits(node_bitmap, best->nodes);
	if (!best->victims)
		return;
	if (*preemptee_job_list) {
		list_transfer(*preemptee_job_list, best->victims);
	} else {
		*preemptee_job_list = best->victims;
		best->victims = NULL;
	}
}

static bool is_enough(const job_record_t *job_ptr, const bitstr_t *node_bitmap, uint32_t min_nodes)
{
	bitstr_t *required = job_ptr->details->req_node_bitmap;

	return ((uint32_t) bit_set_count((bitstr_t *) node_bitmap) >= min_nodes) &&
		(!required || bit_super_set(required, (bitstr_t *) node_bitmap));
}

/* Victims of one choice are none of another's. */
static int test_choice(struct found *found, SK8_JOB_TEST_PARAMS)
{
	sk8_list_t victims = NULL;
	int rc;

	if (!is_enough(job_ptr, node_bitmap, min_nodes))
		return EINVAL;
	preemptee_job_list = preemptee_job_list ? &victims : NULL;
	rc = sk8_suspension_job_test(SK8_JOB_TEST_ARGS);
	*found = state_of(job_ptr, node_bitmap);
	found->victims = victims;
	return rc;
}

/*
 * As Slurm tries one feature after the other, and takes the first one that will do; of those for which a job has to wait
 * the one that is free first (_try_sched() of sched/backfill).
 */
extern int sk8_matching_or_job_test(SK8_JOB_TEST_PARAMS)
{
	struct found before, best = { .start_time = 0 };
	struct choices c;
	int rc = EINVAL;

	if (!sk8_layout_fits_record(job_ptr) || !read_choices(&c, job_ptr->details))
		return sk8_suspension_job_test(SK8_JOB_TEST_ARGS);
	before = state_of(job_ptr, node_bitmap);
	for (int k = 0; k < c.count; k++) {
		struct found found = { .nodes = NULL };

		put_back(job_ptr, &before);
		bit_copybits(node_bitmap, before.nodes);
		bit_and(node_bitmap, c.nodes[k]);
		if (!test_choice(&found, SK8_JOB_TEST_ARGS) && (rc || (found.start_time < best.start_time))) {
			rc = 0;
			forget(&best);
			best = found;
		} else {
			forget(&found);
		}
		if (!rc && (((mode & SELECT_MODE_BASE) != SELECT_MODE_WILL_RUN) || (best.start_time <= time(NULL))))
			break;
	}
	if (!rc)
		hand_over(job_ptr, &best, node_bitmap, preemptee_job_list);
	forget(&best);
	forget(&before);
	free_choices(&c);
	return rc;
}
