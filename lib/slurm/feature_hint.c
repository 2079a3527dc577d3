/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
#include "lib/slurm/release.h"
#include <dlfcn.h>
#include "lib/slurm/feature_hint.h"
#include "lib/slurm/sizes.h"

#define PREFIX "k8s."		/* lib/core/node_features.h */
#define OPERATORS "&|,[]()*"	/* of --constraint */

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

/*
 * Slurm refuses a constraint with a name that it has never heard, even among others to
 * choose from. Of those that it knows one that no node has is no obstacle if there is a
 * choice.
 */
static bool is_missing(sk8_list_t list, const char *name, bool choice)
{
	const node_feature_t *found = list_find_first(list, is_named, (void *) name);

	return !found || (!choice && found->node_bitmap && (bit_ffs(found->node_bitmap) < 0));
}

extern char *sk8_feature_hint(const char *constraint)
{
	sk8_list_t list = constraint && strstr(constraint, PREFIX) ? active_features() : NULL;
	char *rest = NULL, *names = NULL, *hint = NULL, *text;
	const bool choice = list && strchr(constraint, '|');
	unsigned named = 0;

	if (!list)
		return NULL;
	text = xstrdup(constraint);
	for (char *name = strtok_r(text, OPERATORS, &rest); name && (named < max_named); name = strtok_r(NULL, OPERATORS, &rest))
		if (!xstrncmp(name, PREFIX, strlen(PREFIX)) && is_missing(list, name, choice)) {
			xstrfmtcat(names, "%s%.400s", names ? ", " : "", name);
			named++;
		}
	xfree(text);
	if (names)
		hint = xstrdup_printf("slurm-k8s: no node has the label for %s (k8s.KEY.VALUE, each dot of the key twice); sinfo -o \"%%N %%f\" shows what nodes have",
				      names);
	xfree(names);
	return hint;
}
