/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* tokens.c - see there */
#include "lib/slurm/tokens.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern bool sk8_is_token(const char *gres)
{
	return gres && (!strcmp(gres, SK8_TOKEN_CPU) || !strcmp(gres, SK8_TOKEN_MEMORY));
}

/* ---- what a request makes ------------------------------------------------------ */

static uint32_t at_least_one(uint32_t n)
{
	return n ? n : 1;
}

static uint64_t more_of(uint64_t a, uint64_t b)
{
	return (a > b) ? a : b;
}

/* Of a job that does not say how many tasks it has, each node has as many, else one. */
static uint64_t tasks_of(const struct sk8_ask *ask)
{
	return ask->tasks ? ask->tasks : (uint64_t) at_least_one(ask->min_nodes) * at_least_one(ask->tasks_per_node);
}

/* For how many tasks has each node CPUs? 0: that is not known, or not the same on each */
static uint64_t tasks_of_each_node(const struct sk8_ask *ask)
{
	/* CPUs for so many are on each node, also where fewer tasks are left for the last one */
	if (ask->tasks_per_node && (ask->tasks != 1))
		return more_of(ask->tasks_per_node, (ask->max_nodes == 1) ? ask->tasks : 0);
	if (!ask->tasks)
		return 1;
	if ((ask->max_nodes == 1) || ((ask->tasks == 1) && (ask->min_nodes <= 1)))
		return ask->tasks;
	/* no node is without one */
	return (ask->min_nodes && (ask->max_nodes == ask->min_nodes) && (ask->tasks == ask->min_nodes)) ? 1 : 0;
}

extern struct sk8_tokens sk8_cpu_tokens(const struct sk8_ask *ask)
{
	const struct sk8_tokens none = { SK8_PER_NONE, 0 };
	const uint64_t of_task = at_least_one(ask->cpus_per_task), tasks = tasks_of_each_node(ask);
	uint64_t of_node = tasks * of_task;

	if (ask->exclusive || ask->cpus_by_gres)
		return none;
	if (ask->overcommit && (of_task > 1))
		return none;
	if (ask->overcommit)
		of_node = 1;
	else if (ask->min_cpus > more_of(tasks_of(ask) * of_task, (uint64_t) at_least_one(ask->min_nodes) * ask->cpus_per_node)) {
		/* more than its tasks need, on whichever of its nodes */
		if (ask->max_nodes != 1)
			return none;
		of_node = ask->min_cpus;
	} else if (!tasks)
		return (ask->cpus_per_node > of_task) ? none : (struct sk8_tokens) { SK8_PER_TASK, of_task };
	return (struct sk8_tokens) { SK8_PER_NODE, more_of(of_node, ask->cpus_per_node) };
}

extern struct sk8_tokens sk8_memory_tokens(const struct sk8_ask *ask)
{
	const struct sk8_tokens none = { SK8_PER_NONE, 0 };
	struct sk8_tokens tokens;

	/* no number: all that the node has */
	if (ask->exclusive || ask->memory_by_gres || (ask->memory == SK8_MEMORY_UNKNOWN) || !ask->memory_mb)
		return none;
	if (ask->memory == SK8_MEMORY_PER_NODE)
		return (struct sk8_tokens) { SK8_PER_NODE, ask->memory_mb };
	tokens = sk8_cpu_tokens(ask);
	if (__builtin_mul_overflow(tokens.count, ask->memory_mb, &tokens.count))
		return none;	/* more than any node has */
	return tokens;
}

/* ---- what it names --------------------------------------------------------------- */

/* "3", "4k": 1024 each, as Slurm reads them */
static bool read_count(const char *text, size_t len, uint64_t *count)
{
	static const char units[] = "kmgtp";
	uint64_t n = 0;
	size_t i = 0;

	for (; (i < len) && (text[i] >= '0') && (text[i] <= '9'); i++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, text[i] - '0', &n))
			return false;
	if (!i || (len > i + 1))
		return false;
	if (i < len) {
		const char *unit = strchr(units, text[i] | 0x20);

		if (!unit || (n >> (64 - 10 * (unit - units + 1))))
			return false;
		n <<= 10 * (unit - units + 1);
	}
	*count = n;
	return true;
}

/* "k8scpu:3", "k8scpu=3", "k8scpu:big:3", "k8scpu": without "gres:" */
static bool is_named(const char *word, size_t len, const char *gres, uint64_t *count)
{
	const size_t name = strlen(gres);
	size_t last = len;

	if ((len < name) || strncmp(word, gres, name) || ((len > name) && !strchr(":=(", word[name])))
		return false;
	while ((last > name) && !strchr(":=", word[last - 1]))
		last--;
	if ((last == name) || !read_count(word + last, len - last, count))
		*count = 1;	/* no number, or a type */
	return true;
}

/* The next one of a list, without "gres:"; false: there is none. *rest: what is left of it, first the list. */
static bool next_word(const char **rest, const char **word, size_t *len)
{
	size_t whole, skip;

	if (!*rest || !**rest)
		return false;
	whole = strcspn(*rest, ",;");
	skip = (!strncmp(*rest, "gres:", 5) || !strncmp(*rest, "gres/", 5)) ? 5 : 0;
	*word = *rest + skip;
	*len = whole - skip;
	*rest += whole + ((*rest)[whole] != '\0');
	return true;
}

extern bool sk8_names_gres(const char *tres, const char *gres, uint64_t *count)
{
	bool found = false;
	const char *word;
	size_t len;
	uint64_t n;

	*count = 0;
	while (next_word(&tres, &word, &len)) {
		if (!is_named(word, len, gres, &n))
			continue;
		found = true;
		if (__builtin_add_overflow(*count, n, count))
			*count = UINT64_MAX;
	}
	return found;
}

/* "k8s", "k8s:2", "k8s=2", as is_named() takes them; not "k8s:big" or "k8s:big:2" */
static bool is_untyped(const char *word, size_t len, const char *gres)
{
	const size_t name = strlen(gres);
	uint64_t n;

	return (len == name) || ((len > name) && read_count(word + name + 1, len - name - 1, &n));
}

extern bool sk8_names_untyped(const char *tres, const char *gres)
{
	const char *word;
	size_t len;
	uint64_t n;

	while (next_word(&tres, &word, &len))
		if (is_named(word, len, gres, &n) && n && is_untyped(word, len, gres))
			return true;
	return false;
}

static bool has_some(const char *tres, const char *gres)
{
	uint64_t n;

	return sk8_names_gres(tres, gres, &n) && n;
}

extern bool sk8_asks_for(const struct sk8_ask *ask, const char *gres)
{
	return has_some(ask->per_node, "none") || has_some(ask->per_node, gres) || has_some(ask->per_task, gres) ||
		has_some(ask->per_job, gres) || has_some(ask->per_socket, gres);
}

/* ---- do they agree? ---------------------------------------------------------------- */

/* What a list names of it may be nothing, else it is no fewer than these. */
static bool suffices(const char *list, const char *gres, struct sk8_tokens least, const char *unit, char *text, size_t size)
{
	uint64_t has;

	if ((least.per == SK8_PER_NONE) || !sk8_names_gres(list, gres, &has) || !has || (has >= least.count))
		return true;
	snprintf(text, size, "slurm-k8s: %s:%llu is less than the %llu %s that the job asks for %s; name %s:%llu, or leave it out",
		 gres, (unsigned long long) has, (unsigned long long) least.count, unit,
		 (least.per == SK8_PER_TASK) ? "in each task" : "on each node", gres, (unsigned long long) least.count);
	return false;
}

/* The same of one task, of which no node of the job has fewer. */
static struct sk8_tokens of_one_task(const struct sk8_ask *ask, uint64_t each_cpu)
{
	struct sk8_tokens tokens = { SK8_PER_TASK, at_least_one(ask->cpus_per_task) };

	if (ask->overcommit || ask->cpus_by_gres || __builtin_mul_overflow(tokens.count, each_cpu, &tokens.count))
		tokens.per = SK8_PER_NONE;
	return tokens;
}

/* Slurm gives it all of each GRES, and of one that it names it must be able to: it would wait while any pod has some of it. */
static bool leaves_out(const struct sk8_ask *ask, const char *gres, char *text, size_t size)
{
	if (!has_some(ask->per_node, gres) && !has_some(ask->per_task, gres) && !has_some(ask->per_job, gres) && !has_some(ask->per_socket, gres))
		return true;
	snprintf(text, size, "slurm-k8s: a job that wants its nodes for itself (--exclusive) has all %s there, however many it names; leave %s out",
		 gres, gres);
	return false;
}

extern bool sk8_tokens_agree(const struct sk8_ask *ask, char *text, size_t size)
{
	struct sk8_tokens memory_of_task = { SK8_PER_NONE, 0 };

	if (ask->exclusive)
		return leaves_out(ask, SK8_TOKEN_CPU, text, size) && leaves_out(ask, SK8_TOKEN_MEMORY, text, size);
	if ((ask->memory == SK8_MEMORY_PER_CPU) && !ask->memory_by_gres)
		memory_of_task = of_one_task(ask, ask->memory_mb);
	return suffices(ask->per_node, SK8_TOKEN_CPU, sk8_cpu_tokens(ask), "CPUs", text, size) &&
		suffices(ask->per_node, SK8_TOKEN_MEMORY, sk8_memory_tokens(ask), "MB", text, size) &&
		suffices(ask->per_task, SK8_TOKEN_CPU, of_one_task(ask, 1), "CPUs", text, size) &&
		suffices(ask->per_task, SK8_TOKEN_MEMORY, memory_of_task, "MB", text, size);
}
