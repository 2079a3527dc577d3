/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * constraint.h - whether there are nodes for a --constraint, as Slurm takes it: from left
 * to right and without precedence, so that a|b&c is (a|b)&c (valid_feature_counts() in
 * node_scheduler.c). [a|b], nodes that all have the same one, is for each node as (a|b).
 */
#ifndef SK8_SLURM_CONSTRAINT_H
#define SK8_SLURM_CONSTRAINT_H

#include "lib/slurm/release.h"
#include <stdbool.h>
#include <stdint.h>

enum { SK8_MOST_TERMS = 64 };

/* What stands between operators: a name, or (...) or [...] with all that is in it. */
struct sk8_term {
	const char *text;	/* in the constraint, and not cut there */
	int length;
	bool either;		/* behind a '|' */
	uint32_t count;		/* of nodes, behind a '*'; 0: none */
	bitstr_t *nodes;	/* that have it */
};

struct sk8_terms {
	struct sk8_term term[SK8_MOST_TERMS];
	int count;
};

struct sk8_constraint {
	struct sk8_terms outer, counted;	/* outside all brackets, and those with a number of nodes, wherever they are */
};

/* The nodes that have a feature: never NULL, and of one size with those of all others. */
typedef bitstr_t *(*sk8_nodes_of_t)(void *arg, const char *name, int length);

/* False: Slurm would not take it, or it is too long to be looked at. sk8_free_constraint() it whatever comes. */
extern bool sk8_read_constraint(struct sk8_constraint *c, const char *text, sk8_nodes_of_t nodes_of, void *arg);
extern void sk8_free_constraint(struct sk8_constraint *c);

/* The nodes that are left of so many terms in a row, at least one. FREE_NULL_BITMAP() it. */
extern bitstr_t *sk8_joined(const struct sk8_term *terms, int count);

/* One with numbers of nodes, such as [a*2&b*1], needs so many of each, and Slurm looks at nothing else (_get_req_features()). */
extern bool sk8_is_possible(const struct sk8_constraint *c);

#endif
