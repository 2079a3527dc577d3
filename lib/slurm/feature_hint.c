/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
#include "lib/slurm/release.h"
#include <dlfcn.h>
#include "lib/slurm/constraint.h"
#include "lib/slurm/feature_hint.h"
#include "lib/slurm/sizes.h"

#define PREFIX "k8s."		/* lib/core/node_features.h */
#define SHOW "sinfo -o \"%%N %%f\" shows what nodes have"

enum {
	MOST_NAMED = 3,
	MOST_MISSING = 6,	/* of which it is found out whether it is their fault: each number of them may be there */
};

/*
 * slurmctld's own; a plugin that refers to it by name cannot be loaded for a look elsewhere.
 * Those that nodes may get by a reboot are among them.
 */
static sk8_list_t features(void)
{
	sk8_list_t *list = dlsym(RTLD_DEFAULT, "avail_feature_list");

	return list ? *list : NULL;
}

static int is_named(void *x, void *key)
{
	const node_feature_t *feature = x;

	return sk8_is_sized(feature, sizeof(*feature)) && !xstrcmp(feature->name, key);
}

static int has_nodes(void *x, void *key)
{
	const node_feature_t *feature = x;

	(void) key;
	return sk8_is_sized(feature, sizeof(*feature)) && feature->node_bitmap;
}

static bool is_ours(const char *name)
{
	return !xstrncmp(name, PREFIX, strlen(PREFIX));
}

/* A label's feature has a single dot between key and value; those of a key are double. Others are k8s.exclusive and k8s.shared. */
static bool is_of_label(const char *name)
{
	for (const char *c = name + strlen(PREFIX); *c; c++)
		if ((*c == '.') && (*++c != '.'))
			return true;
	return false;
}

/* ---- the names of a constraint ---- */

struct name {
	char *text;
	bitstr_t *nodes;	/* slurmctld's; NULL: all, or none of one that is unknown */
	bool unknown;		/* Slurm has never heard it, and refuses the constraint, even with others to choose from */
	int missing;		/* no node has it: which one of those it is, from 1 on */
};

struct names {
	sk8_list_t list;
	struct name name[SK8_MOST_TERMS];
	int count, missing;
	bitstr_t *all, *none;
	uint64_t there;		/* a bit for each that no node has, and all are taken to have */
	bool everywhere;	/* what some nodes have is taken to be on all */
};

static void free_names(struct names *n)
{
	for (int k = 0; k < n->count; k++)
		xfree(n->name[k].text);
	FREE_NULL_BITMAP(n->all);
	FREE_NULL_BITMAP(n->none);
}

static struct name *name_of(struct names *n, const char *text, int length)
{
	struct name *found = n->name;
	const node_feature_t *feature;

	for (; found < n->name + n->count; found++)
		if (!xstrncmp(found->text, text, length) && !found->text[length])
			return found;
	n->count++;
	found->text = xstrndup(text, length);
	feature = list_find_first(n->list, is_named, found->text);
	found->unknown = !feature;
	found->nodes = feature ? feature->node_bitmap : NULL;
	if (found->unknown || (found->nodes && (bit_ffs(found->nodes) < 0)))
		found->missing = ++n->missing;
	return found;
}

static bitstr_t *nodes_of(void *arg, const char *text, int length)
{
	struct names *n = arg;
	const struct name *name = name_of(n, text, length);

	if (name->missing)
		return (n->there >> (name->missing - 1)) & 1 ? n->all : n->none;
	/* of another size: while slurmctld makes its table of nodes anew */
	return n->everywhere || !name->nodes || (bit_size(name->nodes) != bit_size(n->all)) ? n->all : name->nodes;
}

static bool is_possible(struct names *n, const char *constraint, uint64_t there)
{
	struct sk8_constraint c;
	bool possible;

	n->there = there;
	possible = sk8_read_constraint(&c, constraint, nodes_of, n) && sk8_is_possible(&c);
	sk8_free_constraint(&c);
	return possible;
}

/* ---- those that no node has ---- */

/*
 * Is there a number of the others with which it would be possible, and is not without this
 * one? So of a&(b|c) c is at no fault if nodes have b.
 */
static bool is_at_fault(const bool *possible, int missing, int number)
{
	const uint32_t bit = 1u << (number - 1);

	for (uint64_t there = 0; there < (1u << missing); there++)
		if (!possible[there & ~bit] && possible[there | bit])
			return true;
	return false;
}

/* If they are too many to look at all that no node has; those that Slurm has never heard always are. */
static void find_faults(struct names *n, const char *constraint, bool *at_fault)
{
	bool possible[1 << MOST_MISSING];
	const bool few = n->missing <= MOST_MISSING, all = !few && !is_possible(n, constraint, 0);

	/* if not even all of them together would do: as if they were all that is wrong */
	n->everywhere = few && !is_possible(n, constraint, UINT64_MAX);
	for (uint64_t there = 0; few && (there < (1u << n->missing)); there++)
		possible[there] = is_possible(n, constraint, there);
	for (int k = 0; k < n->count; k++)
		at_fault[k] = n->name[k].unknown || (n->name[k].missing && (few ? is_at_fault(possible, n->missing, n->name[k].missing) : all));
}

static char *hint_about_missing(struct names *n, const char *constraint)
{
	bool at_fault[SK8_MOST_TERMS];
	char *labels = NULL, *others = NULL, *hint = NULL;
	int named = 0;

	find_faults(n, constraint, at_fault);
	for (int k = 0; (k < n->count) && (named < MOST_NAMED); k++) {
		char **names = is_of_label(n->name[k].text) ? &labels : &others;

		if (!is_ours(n->name[k].text) || !at_fault[k])
			continue;
		xstrfmtcat(*names, "%s%.400s", *names ? ", " : "", n->name[k].text);
		named++;
	}
	if (labels)
		xstrfmtcat(hint, "slurm-k8s: no node has the label for %s (k8s.KEY.VALUE, each dot of the key twice); " SHOW, labels);
	if (others)
		xstrfmtcat(hint, "%sslurm-k8s: no node has %s, and no label makes such a feature (k8s.KEY.VALUE does); k8s.exclusive and k8s.shared are those "
			   "of nodes that jobs may have without others' pods; " SHOW, hint ? "\n" : "", others);
	xfree(labels);
	xfree(others);
	return hint;
}

/* ---- those that no node has together, or too few ---- */

static bool speaks_of_ours(const struct sk8_term *t)
{
	return memmem(t->text, t->length, PREFIX, strlen(PREFIX));
}

static char *hint_about_few(const struct sk8_terms *counted)
{
	for (int k = 0; k < counted->count; k++) {
		const struct sk8_term *t = &counted->term[k];

		if (((uint32_t) bit_set_count(t->nodes) < t->count) && speaks_of_ours(t))
			return xstrdup_printf("slurm-k8s: of the %u nodes with %.*s that it wants there are %d; " SHOW, t->count,
					      MIN(t->length, 400), t->text, bit_set_count(t->nodes));
	}
	return NULL;
}

/* What nodes need all of: all before the last '|' is one of these. */
struct needs {
	struct sk8_term term[SK8_MOST_TERMS];
	int count;
};

static void take_needs(struct needs *needs, const struct sk8_terms *terms)
{
	int last = terms->count - 1;

	while (last && !terms->term[last].either)
		last--;
	needs->term[0] = (struct sk8_term) { .text = terms->term[0].text, .nodes = sk8_joined(terms->term, last + 1) };
	needs->term[0].length = terms->term[last].text + terms->term[last].length - terms->term[0].text;
	needs->count = 1;
	for (int k = last + 1; k < terms->count; k++)
		needs->term[needs->count++] = terms->term[k];
}

static bool is_met_without(const struct needs *needs, int without)
{
	bitstr_t *nodes = NULL;
	bool met;

	for (int k = 0; k < needs->count; k++) {
		if (k == without)
			continue;
		if (nodes)
			bit_and(nodes, needs->term[k].nodes);
		else
			nodes = bit_copy(needs->term[k].nodes);
	}
	met = !nodes || (bit_ffs(nodes) >= 0);
	FREE_NULL_BITMAP(nodes);
	return met;
}

/* Those without which it still is not met have no part in it. */
static void leave_conflict(struct needs *needs)
{
	for (int k = needs->count - 1; k >= 0; k--)
		if (!is_met_without(needs, k))
			memmove(&needs->term[k], &needs->term[k + 1], (--needs->count - k) * sizeof(*needs->term));
}

static char *words_about(const struct needs *needs)
{
	char *list = NULL;
	bool ours = false;

	for (int k = 0; k < needs->count; k++) {
		const struct sk8_term *t = &needs->term[k];

		ours = ours || speaks_of_ours(t);
		xstrfmtcat(list, "%s%.*s", !k ? "" : k + 1 < needs->count ? ", " : " and ", MIN(t->length, 400), t->text);
	}
	if (!ours)
		xfree(list);
	return list;
}

static char *hint_about_conflict(const struct sk8_terms *terms)
{
	struct needs needs;
	bitstr_t *joined;
	char *list, *hint = NULL;

	take_needs(&needs, terms);
	joined = needs.term[0].nodes;
	leave_conflict(&needs);
	if ((list = words_about(&needs)))
		hint = xstrdup_printf("slurm-k8s: no node has %s%.1200s%s; " SHOW, needs.count == 2 ? "both " : "", list, needs.count > 2 ? " together" : "");
	FREE_NULL_BITMAP(joined);
	xfree(list);
	return hint;
}

/* Each name is on some node, or is taken to be. */
static char *hint_about_nodes(struct names *n, const char *constraint)
{
	struct sk8_constraint c;
	char *hint = NULL;

	n->everywhere = false;
	n->there = UINT64_MAX;
	if (sk8_read_constraint(&c, constraint, nodes_of, n) && !sk8_is_possible(&c))
		hint = c.counted.count ? hint_about_few(&c.counted) : hint_about_conflict(&c.outer);
	sk8_free_constraint(&c);
	return hint;
}

/* ---- as many nodes as it wants ---- */

/* How many nodes meet it; -1: it has numbers of nodes, or Slurm would not take it. */
static int count_nodes(struct names *n, const char *constraint)
{
	struct sk8_constraint c;
	int count = -1;

	if (sk8_read_constraint(&c, constraint, nodes_of, n) && !c.counted.count) {
		bitstr_t *nodes = sk8_joined(c.outer.term, c.outer.count);

		count = bit_set_count(nodes);
		FREE_NULL_BITMAP(nodes);
	}
	sk8_free_constraint(&c);
	return count;
}

/* The end of what begins here and has no operator outside parentheses. */
static const char *end_of_choice(const char *at)
{
	for (int depth = 0; *at && (depth || !strchr("&|,*[])", *at)); at++)
		depth += (*at == '(') - (*at == ')');
	return at;
}

/*
 * Matching OR: [a|b], and what else each node needs around it. Of how many nodes there are with the same one the
 * most; -1: it is none, or one of which Slurm makes something else.
 */
static int count_matching(struct names *n, const char *constraint)
{
	const char *open = strchr(constraint, '['), *end = open;
	int most = -1;

	for (const char *at = constraint; open && *at; at++)
		if ((at < open) && (*at == '|'))
			return -1;
	while (end && ((end == open) || (*end == '|'))) {
		const char *choice = end + 1, *close = strchr(choice, ']');
		char *text;

		end = end_of_choice(choice);
		if (!close || (end == choice) || strpbrk(close, "|["))
			return -1;
		text = xstrdup_printf("%.*s%.*s%s", (int) (open - constraint), constraint, (int) (end - choice), choice, close + 1);
		most = MAX(most, count_nodes(n, text));
		xfree(text);
	}
	return end && (*end == ']') ? most : -1;
}

static char *hint_about_number(struct names *n, const char *constraint, uint32_t min_nodes)
{
	const bool matching = strchr(constraint, '[');
	int count;

	n->everywhere = false;
	n->there = 0;
	count = matching ? count_matching(n, constraint) : count_nodes(n, constraint);
	if ((count < 0) || ((uint32_t) count >= min_nodes))
		return NULL;
	return xstrdup_printf("slurm-k8s: of the %u nodes with %s%.1200s that it wants there %s %d; " SHOW, min_nodes,
			      matching ? "the same of " : "", constraint, count == 1 ? "is" : "are", count);
}

/* Also of one that Slurm would not take: the names up to where it does not understand it. */
static void read_names(struct names *n, const char *constraint)
{
	struct sk8_constraint c;
	const node_feature_t *any = list_find_first(n->list, has_nodes, NULL);
	const int size = any ? bit_size(any->node_bitmap) : 1;

	n->all = bit_alloc(size);
	n->none = bit_alloc(size);
	bit_set_all(n->all);
	(void) sk8_read_constraint(&c, constraint, nodes_of, n);
	sk8_free_constraint(&c);
}

static bool all_are_known(const struct names *n)
{
	for (int k = 0; k < n->count; k++)
		if (n->name[k].unknown)
			return false;
	return true;
}

static char *hint_about(struct names *n, const char *constraint, uint32_t min_nodes)
{
	char *hint = hint_about_missing(n, constraint);

	if (!hint)
		hint = hint_about_nodes(n, constraint);
	if (!hint && (min_nodes != NO_VAL) && (min_nodes > 1))
		hint = hint_about_number(n, constraint, min_nodes);
	return hint;
}

extern char *sk8_feature_hint(const char *constraint, uint32_t min_nodes)
{
	struct names n = { .list = constraint && strstr(constraint, PREFIX) ? features() : NULL };
	char *hint;

	if (!n.list)
		return NULL;
	read_names(&n, constraint);
	hint = hint_about(&n, constraint, min_nodes);
	free_names(&n);
	return hint;
}

extern bool sk8_lost_feature_hint(const char *constraint, uint32_t min_nodes, char **hint)
{
	struct names n = { .list = features() };
	bool known;

	*hint = NULL;
	if (!n.list)
		return false;
	read_names(&n, constraint);
	if ((known = all_are_known(&n)))
		*hint = hint_about(&n, constraint, min_nodes);
	free_names(&n);
	return known;
}
