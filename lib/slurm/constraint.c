/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
#include "lib/slurm/constraint.h"

#include <ctype.h>

#define OPERATORS "&|,[]()*"

/* Slurm takes (...) in [...], and nothing deeper. */
enum { MOST_BRACKETS = 2 };

struct reader {
	const char *at;
	sk8_nodes_of_t nodes_of;
	void *arg;
	struct sk8_terms *counted;
	int names, brackets;
};

static void free_terms(struct sk8_terms *terms)
{
	for (int k = 0; k < terms->count; k++)
		FREE_NULL_BITMAP(terms->term[k].nodes);
	terms->count = 0;
}

extern bitstr_t *sk8_joined(const struct sk8_term *terms, int count)
{
	bitstr_t *nodes = bit_copy(terms[0].nodes);

	for (int k = 1; k < count; k++)
		if (terms[k].either)
			bit_or(nodes, terms[k].nodes);
		else
			bit_and(nodes, terms[k].nodes);
	return nodes;
}

static bool read_terms(struct reader *r, char end, struct sk8_terms *all);

static bool read_brackets(struct reader *r, struct sk8_term *t, char end)
{
	struct sk8_terms inner = { 0 };
	const bool good = (++r->brackets <= MOST_BRACKETS) && (r->at++, read_terms(r, end, &inner));

	if (good)
		t->nodes = sk8_joined(inner.term, inner.count);
	free_terms(&inner);
	r->brackets--;
	return good;
}

static bool read_name(struct reader *r, struct sk8_term *t)
{
	const int length = strcspn(r->at, OPERATORS);

	if (!length || (++r->names > SK8_MOST_TERMS))
		return false;
	t->nodes = bit_copy(r->nodes_of(r->arg, r->at, length));
	r->at += length;
	return true;
}

static bool read_count(struct reader *r, struct sk8_term *t)
{
	char *end;

	if (*r->at != '*')
		return true;
	if (!isdigit((unsigned char) r->at[1]))
		return false;
	t->count = strtoul(r->at + 1, &end, 10);
	r->at = end;
	if (!t->count || (r->counted->count == SK8_MOST_TERMS))
		return false;
	r->counted->term[r->counted->count] = *t;
	r->counted->term[r->counted->count++].nodes = bit_copy(t->nodes);
	return true;
}

static bool read_term(struct reader *r, struct sk8_term *t)
{
	bool good;

	t->text = r->at;
	if (*r->at == '(')
		good = read_brackets(r, t, ')');
	else if (*r->at == '[')
		good = read_brackets(r, t, ']');
	else
		good = read_name(r, t);
	t->length = r->at - t->text;
	return good && read_count(r, t);
}

static bool read_terms(struct reader *r, char end, struct sk8_terms *all)
{
	bool either = false;

	while (all->count < SK8_MOST_TERMS) {
		struct sk8_term *t = &all->term[all->count++];

		*t = (struct sk8_term) { .either = either };
		if (!read_term(r, t))
			return false;
		if (*r->at == end) {
			r->at += end != '\0';
			return true;
		}
		either = *r->at == '|';
		if (!either && (*r->at != '&') && (*r->at != ','))
			return false;
		r->at++;
	}
	return false;
}

extern bool sk8_read_constraint(struct sk8_constraint *c, const char *text, sk8_nodes_of_t nodes_of, void *arg)
{
	struct reader r = { .at = text, .nodes_of = nodes_of, .arg = arg, .counted = &c->counted };

	*c = (struct sk8_constraint) { 0 };
	return read_terms(&r, '\0', &c->outer);
}

extern void sk8_free_constraint(struct sk8_constraint *c)
{
	free_terms(&c->outer);
	free_terms(&c->counted);
}

extern bool sk8_is_possible(const struct sk8_constraint *c)
{
	bitstr_t *nodes;
	bool possible;

	for (int k = 0; k < c->counted.count; k++)
		if ((uint32_t) bit_set_count(c->counted.term[k].nodes) < c->counted.term[k].count)
			return false;
	if (c->counted.count)
		return true;
	nodes = sk8_joined(c->outer.term, c->outer.count);
	possible = bit_ffs(nodes) >= 0;
	FREE_NULL_BITMAP(nodes);
	return possible;
}
