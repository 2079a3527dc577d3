/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* complete.c - see there */
#include "plugins/job_submit/complete.h"
#include <dlfcn.h>
#include <string.h>
#include "lib/sk8_abi.h"
#include "lib/slurm/sizes.h"
#include "lib/slurm/tokens.h"

/* A libsk8core that is older than this plugin lacks it, and slurmctld must start all the same. */
extern __typeof__(sk8_completes_tokens) sk8_completes_tokens __attribute__((weak));

/* ---- where ---------------------------------------------------------------------- */

/* Other programs than slurmctld, which load plugins to look at them, have no partitions. */
static const part_record_t *default_partition(void)
{
	part_record_t *const *found = dlsym(RTLD_DEFAULT, "default_part_loc");

	return found ? *found : NULL;
}

static const part_record_t *find_partition(const char *name)
{
	const part_record_t *part_ptr = name ? find_part_record((char *) name) : default_partition();

	return (part_ptr && sk8_is_sized(part_ptr, sizeof(*part_ptr))) ? part_ptr : NULL;
}

/* What a job gets that says nothing of memory: as pn_min_memory, 0 for all that a node has */
static uint64_t default_memory(const part_record_t *part_ptr)
{
	return part_ptr->def_mem_per_cpu ? part_ptr->def_mem_per_cpu : slurm_conf.def_mem_per_cpu;
}

/* The most MB for a CPU; 0: any */
static uint64_t memory_limit(const part_record_t *part_ptr)
{
	const uint64_t limit = part_ptr->max_mem_per_cpu ? part_ptr->max_mem_per_cpu : slurm_conf.max_mem_per_cpu;

	return (limit & MEM_PER_CPU) ? limit & ~MEM_PER_CPU : 0;
}

static uint64_t lower_limit(uint64_t a, uint64_t b)
{
	return (a && b) ? MIN(a, b) : MAX(a, b);
}

/* What its partitions make of what a job asks for */
struct rules {
	uint64_t memory;	/* the default of all, else 0 */
	uint64_t limit;		/* the lowest memory_limit() */
	bool exclusive;		/* OverSubscribe=EXCLUSIVE: it has whole nodes in each, whatever it says */
};

/*
 * Is it so for each of these partitions (NULL: the default one)? A job that may run in several
 * of them runs on nodes without tokens if one has none.
 */
static bool completes(const char *names, struct rules *rules)
{
	char *list = xstrdup(names), *name, *rest = NULL;
	bool first = true, all = true;

	*rules = (struct rules) { 0 };
	name = list ? strtok_r(list, ",", &rest) : NULL;
	do {
		const part_record_t *part_ptr = find_partition(name);
		uint64_t its;

		if (!part_ptr || !sk8_completes_tokens || !sk8_completes_tokens(part_ptr->name)) {
			all = false;
			break;
		}
		its = default_memory(part_ptr);
		rules->memory = (first || (rules->memory == its)) ? its : 0;
		rules->limit = lower_limit(rules->limit, memory_limit(part_ptr));
		rules->exclusive = (first || rules->exclusive) && !part_ptr->max_share;
		first = false;
	} while (name && (name = strtok_r(NULL, ",", &rest)));
	xfree(list);
	return all;
}

static bool has_token(const char *gres)
{
	uint64_t count;

	return sk8_names_gres(slurm_conf.gres_plugins, gres, &count);
}

/* ---- what is asked for -------------------------------------------------------------- */

static void read_memory(struct sk8_ask *ask, uint64_t memory)
{
	ask->memory = (memory & MEM_PER_CPU) ? SK8_MEMORY_PER_CPU : SK8_MEMORY_PER_NODE;
	ask->memory_mb = memory & ~MEM_PER_CPU;
}

/* Each of these has a number that says nothing, and an update says only what changes. */
static void read_desc(struct sk8_ask *ask, const job_desc_msg_t *desc)
{
	if (desc->num_tasks != NO_VAL)
		ask->tasks = desc->num_tasks;
	if (desc->cpus_per_task != NO_VAL16)
		ask->cpus_per_task = desc->cpus_per_task;
	if (desc->ntasks_per_node != NO_VAL16)
		ask->tasks_per_node = desc->ntasks_per_node;
	if (desc->min_nodes != NO_VAL)
		ask->min_nodes = desc->min_nodes;
	if (desc->max_nodes != NO_VAL)
		ask->max_nodes = desc->max_nodes;
	if (desc->min_cpus != NO_VAL)
		ask->min_cpus = desc->min_cpus;
	if (desc->pn_min_cpus != NO_VAL16)
		ask->cpus_per_node = desc->pn_min_cpus;
	if (desc->overcommit != NO_VAL8)
		ask->overcommit = desc->overcommit;
	if (desc->shared != NO_VAL16)
		ask->exclusive = (desc->shared == JOB_SHARED_NONE);
	if (desc->pn_min_memory != NO_VAL64)
		read_memory(ask, desc->pn_min_memory);
	if (desc->cpus_per_tres)
		ask->cpus_by_gres = desc->cpus_per_tres[0];
	if (desc->mem_per_tres)
		ask->memory_by_gres = desc->mem_per_tres[0];
	if (desc->tres_per_node)
		ask->per_node = desc->tres_per_node;
	if (desc->tres_per_task)
		ask->per_task = desc->tres_per_task;
	if (desc->tres_per_job)
		ask->per_job = desc->tres_per_job;
	if (desc->tres_per_socket)
		ask->per_socket = desc->tres_per_socket;
}

/*
 * What a record has that its request did not say was filled in by slurmctld. CPUs and memory are as
 * they were requested: it raises the ones and lowers the other anew for each partition and each change.
 */
static void read_job(struct sk8_ask *ask, const job_record_t *job_ptr)
{
	const job_details_t *details = job_ptr->details;
	const uint16_t of_task = (details->orig_cpus_per_task == NO_VAL16) ? 1 : details->orig_cpus_per_task;
	const uint32_t of_tasks = of_task * MAX(details->ntasks_per_node, 1), of_node = details->orig_pn_min_cpus;

	*ask = (struct sk8_ask) {
		.tasks = (job_ptr->bit_flags & JOB_NTASKS_SET) ? details->num_tasks : 0,
		.cpus_per_task = of_task,
		.tasks_per_node = details->ntasks_per_node,
		.min_nodes = details->min_nodes, .max_nodes = details->max_nodes,
		.min_cpus = details->orig_min_cpus,
		.cpus_per_node = ((of_node == of_tasks) || (of_node == of_task)) ? 0 : of_node,
		.overcommit = details->overcommit,
		.exclusive = sk8_asks_for_whole_nodes(details),
		.cpus_by_gres = job_ptr->cpus_per_tres, .memory_by_gres = job_ptr->mem_per_tres,
		.per_node = job_ptr->tres_per_node, .per_task = job_ptr->tres_per_task,
		.per_job = job_ptr->tres_per_job, .per_socket = job_ptr->tres_per_socket,
	};
	read_memory(ask, details->orig_pn_min_memory);
}

/*
 * More memory for a CPU than the partition allows: Slurm gives the job more CPUs instead, after
 * job_submit, and not by its request (_valid_pn_min_mem() in job_mgr.c).
 */
static void heed_limit(struct sk8_ask *ask, uint64_t limit)
{
	uint64_t ratio;

	if (!limit || (ask->memory == SK8_MEMORY_UNKNOWN) || (ask->memory_mb <= limit))
		return;
	ratio = (ask->memory_mb + limit - 1) / limit;
	if (ratio > UINT16_MAX)
		return;		/* more than any node has */
	if (ask->memory == SK8_MEMORY_PER_CPU) {
		ask->cpus_per_task = MAX(ask->cpus_per_task, 1) * ratio;
		ask->memory_mb = (ask->memory_mb + ratio - 1) / ratio;
		if (ask->tasks)
			ask->min_cpus = ask->tasks * ask->cpus_per_task;
		else
			ask->cpus_per_node = MAX(ask->cpus_per_node, ask->cpus_per_task);
	} else if (ask->cpus_per_node < ratio) {
		ask->cpus_per_node = ratio;
		if (ask->tasks_per_node)
			ask->cpus_per_task = (ratio + ask->tasks_per_node - 1) / ask->tasks_per_node;
	}
}

static struct sk8_ask read_request(const job_desc_msg_t *desc, const struct rules *rules)
{
	struct sk8_ask ask = { .memory = SK8_MEMORY_UNKNOWN };

	if (rules->memory)
		read_memory(&ask, rules->memory);
	read_desc(&ask, desc);
	heed_limit(&ask, rules->limit);
	ask.exclusive |= rules->exclusive;
	return ask;
}

/* ---- lists of GRES, as Slurm has them ---------------------------------------------------- */

/* xmalloc()ed: the list with so many of this GRES instead of what it has of it */
static char *list_with(const char *tres, const char *gres, uint64_t count)
{
	char *made = NULL, *list = xstrdup(tres), *word, *rest = NULL;

	for (word = list ? strtok_r(list, ",", &rest) : NULL; word; word = strtok_r(NULL, ",", &rest)) {
		uint64_t old;

		if (!sk8_names_gres(word, gres, &old))
			xstrfmtcat(made, "%s%s", made ? "," : "", word);
	}
	xfree(list);
	xstrfmtcat(made, "%s%s%s:%" PRIu64, made ? "," : "", SK8_TRES_PREFIX, gres, count);
	return made;
}

static void complete_one(job_desc_msg_t *desc, const struct sk8_ask *ask, const char *gres, struct sk8_tokens tokens)
{
	char **list = (tokens.per == SK8_PER_NODE) ? &desc->tres_per_node : &desc->tres_per_task;
	char *made;

	if ((tokens.per == SK8_PER_NONE) || !has_token(gres) || sk8_asks_for(ask, gres))
		return;
	made = list_with(*list, gres, tokens.count);
	xfree(*list);
	*list = made;
}

static bool agrees(const struct sk8_ask *ask, char **why)
{
	char text[256];

	if (sk8_tokens_agree(ask, text, sizeof(text)))
		return true;
	*why = xstrdup(text);
	return false;
}

extern bool sk8_complete(job_desc_msg_t *desc, char **why)
{
	struct sk8_ask ask;
	struct rules rules;

	if (!completes(desc->partition, &rules))
		return true;
	ask = read_request(desc, &rules);
	if (!agrees(&ask, why))
		return false;
	complete_one(desc, &ask, SK8_TOKEN_CPU, sk8_cpu_tokens(&ask));
	ask = read_request(desc, &rules);	/* the lists are others now */
	complete_one(desc, &ask, SK8_TOKEN_MEMORY, sk8_memory_tokens(&ask));
	return true;
}

/* ---- a job that waits is changed ------------------------------------------------ */

struct change {
	job_desc_msg_t *desc;
	struct sk8_ask before, after;
	bool names_per_node, names_per_task;	/* the change names GRES itself */
};

/* Puts so many of it into the list, instead of those that are there. */
static void put(struct change *c, enum sk8_per per, const char *gres, uint64_t count)
{
	const bool of_node = per == SK8_PER_NODE;
	char **list = of_node ? &c->desc->tres_per_node : &c->desc->tres_per_task;
	char *made = list_with(of_node ? c->after.per_node : c->after.per_task, gres, count);

	xfree(*list);
	*list = made;
	if (of_node)
		c->after.per_node = made;
	else
		c->after.per_task = made;
}

/* Has the job just what it was given for what it asks for, and does the change not name it? Then it follows. */
static bool follows(const struct change *c, const char *gres, struct sk8_tokens given)
{
	const bool of_node = given.per == SK8_PER_NODE;
	uint64_t count;

	return (given.per != SK8_PER_NONE) && !(of_node ? c->names_per_node : c->names_per_task) &&
		sk8_names_gres(of_node ? c->before.per_node : c->before.per_task, gres, &count) && (count == given.count);
}

static void change_one(struct change *c, const char *gres, struct sk8_tokens old, struct sk8_tokens new)
{
	if (follows(c, gres, old)) {
		if ((new.per == old.per) && (new.count != old.count))
			put(c, new.per, gres, new.count);
	} else if ((new.per != SK8_PER_NONE) && has_token(gres) && !sk8_asks_for(&c->after, gres))
		put(c, new.per, gres, new.count);
}

extern bool sk8_complete_change(job_desc_msg_t *desc, const job_record_t *job_ptr, char **why)
{
	struct change c = {
		.desc = desc, .names_per_node = desc->tres_per_node, .names_per_task = desc->tres_per_task,
	};
	struct rules old, new;
	char text[256];

	if (!IS_JOB_PENDING(job_ptr) || !job_ptr->details || !sk8_is_sized(job_ptr->details, sizeof(*job_ptr->details)))
		return true;
	/* no update takes a GRES from a job in all releases: one that goes elsewhere keeps its tokens */
	if (!completes(desc->partition ? desc->partition : job_ptr->partition, &new))
		return true;
	(void) completes(job_ptr->partition, &old);
	read_job(&c.before, job_ptr);
	c.after = c.before;
	read_desc(&c.after, desc);
	heed_limit(&c.before, old.limit);
	heed_limit(&c.after, new.limit);
	c.before.exclusive |= old.exclusive;
	c.after.exclusive |= new.exclusive;
	change_one(&c, SK8_TOKEN_CPU, sk8_cpu_tokens(&c.before), sk8_cpu_tokens(&c.after));
	change_one(&c, SK8_TOKEN_MEMORY, sk8_memory_tokens(&c.before), sk8_memory_tokens(&c.after));
	/* what was so before is not the fault of this change */
	return !sk8_tokens_agree(&c.before, text, sizeof(text)) || agrees(&c.after, why);
}
