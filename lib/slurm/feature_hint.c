/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
#include "lib/slurm/release.h"
#include <dlfcn.h>
#include "lib/slurm/feature_hint.h"
#include "lib/slurm/sizes.h"

#define PREFIX "k8s."		/* lib/core/node_features.h */
#define OPERATORS "&|,[]()*"	/* of --constraint */
#define SHOW "sinfo -o \"%%N %%f\" shows what nodes have"

static const unsigned max_named = 3;

/* slurmctld's own; a plugin that refers to it by name cannot be loaded for a look elsewhere */
static sk8_list_t active_features(void)
{
	sk8_list_t *list = dlsym(RTLD_DEFAULT, "active_feature_list");

	return list ? *list : NULL;
}

static int is_named(void *x, void *key)
{
	const node_feature_t *feature = x;

	return sk8_is_sized(feature, sizeof(*feature)) && !xstrcmp(feature->name, key);
}

/* Slurm refuses a constraint with a name that it has never heard, even among others to choose from. */
static bool is_unknown(sk8_list_t list, const char *name)
{
	return !list_find_first(list, is_named, (void *) name);
}

static bool has_node(sk8_list_t list, const char *name)
{
	const node_feature_t *found = list_find_first(list, is_named, (void *) name);

	return found && (!found->node_bitmap || (bit_ffs(found->node_bitmap) >= 0));
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

/* Calls f for each name of the constraint, until it is false. */
static void each_name(const char *constraint, bool (*f)(void *arg, const char *name), void *arg)
{
	char *rest = NULL, *text = xstrdup(constraint);

	for (char *name = strtok_r(text, OPERATORS, &rest); name && f(arg, name); name = strtok_r(NULL, OPERATORS, &rest))
		;
	xfree(text);
}

/* ---- those that no node has ---- */

struct missing {
	sk8_list_t list;
	bool choice;		/* others may do instead of those that no node has any more */
	char *labels, *others;
	unsigned named;
};

struct alternative {
	sk8_list_t list;
	bool possible;
};

static bool is_possible(void *arg, const char *name)
{
	struct alternative *a = arg;
	bool number = !name[strspn(name, "0123456789")];	/* of nodes, behind a '*' */

	return a->possible = number || has_node(a->list, name);
}

/*
 * May nodes have all names between two '|', or before the first or behind the last one? If not
 * of any, the constraint holds nowhere, however it is bracketed: (a|b)&(c|d) needs a, b and c, or d.
 */
static bool leaves_a_choice(sk8_list_t list, const char *constraint)
{
	struct alternative a = { .list = list };
	char *rest = NULL, *text = xstrdup(constraint);

	for (char *part = strtok_r(text, "|", &rest); part && !a.possible; part = strtok_r(NULL, "|", &rest)) {
		a.possible = true;
		each_name(part, is_possible, &a);
	}
	xfree(text);
	return a.possible;
}

static bool add_missing(void *arg, const char *name)
{
	struct missing *m = arg;
	char **names = is_of_label(name) ? &m->labels : &m->others;

	if (!is_ours(name) || (m->choice ? !is_unknown(m->list, name) : has_node(m->list, name)))
		return true;
	xstrfmtcat(*names, "%s%.400s", *names ? ", " : "", name);
	return ++m->named < max_named;
}

static char *hint_about_missing(sk8_list_t list, const char *constraint)
{
	struct missing m = { .list = list, .choice = leaves_a_choice(list, constraint) };
	char *hint = NULL;

	each_name(constraint, add_missing, &m);
	if (m.labels)
		xstrfmtcat(hint, "slurm-k8s: no node has the label for %s (k8s.KEY.VALUE, each dot of the key twice); " SHOW, m.labels);
	if (m.others)
		xstrfmtcat(hint, "%sslurm-k8s: no node has %s, and no label makes such a feature (k8s.KEY.VALUE does); k8s.exclusive and k8s.shared are those "
			   "of nodes that jobs may have without others' pods; " SHOW, hint ? "\n" : "", m.others);
	xfree(m.labels);
	xfree(m.others);
	return hint;
}

/* ---- those that no node has together ---- */

struct together {
	sk8_list_t list;
	node_feature_t *seen[16];	/* more are not looked at */
	unsigned count;
	char *hint;
};

static bool compare(void *arg, const char *name)
{
	struct together *t = arg;
	node_feature_t *found = list_find_first(t->list, is_named, (void *) name);

	if (!found || !found->node_bitmap || (t->count == sizeof(t->seen) / sizeof(*t->seen)))
		return false;
	for (unsigned k = 0; k < t->count; k++) {
		if ((!is_ours(t->seen[k]->name) && !is_ours(name)) || bit_overlap_any(t->seen[k]->node_bitmap, found->node_bitmap))
			continue;
		t->hint = xstrdup_printf("slurm-k8s: no node has both %.400s and %.400s; " SHOW, t->seen[k]->name, name);
		return false;
	}
	t->seen[t->count++] = found;
	return true;
}

/* Only of a constraint that wants all of them on each node. */
static char *hint_about_pairs(sk8_list_t list, const char *constraint)
{
	struct together t = { .list = list };

	if (!strpbrk(constraint, "|[]()*"))
		each_name(constraint, compare, &t);
	return t.hint;
}

extern char *sk8_feature_hint(const char *constraint)
{
	sk8_list_t list = constraint && strstr(constraint, PREFIX) ? active_features() : NULL;
	char *hint;

	if (!list)
		return NULL;
	hint = hint_about_missing(list, constraint);
	return hint ? hint : hint_about_pairs(list, constraint);
}
