/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * tokens.h - k8scpu and k8smemory: GRES that stand for CPUs and MB of a node. Which of them a
 * request for CPUs and memory makes. Calls nothing of Slurm.
 *
 * A job's tokens are what it asks for. Slurm may give it more, as whole cores; never less.
 */
#ifndef SK8_SLURM_TOKENS_H
#define SK8_SLURM_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SK8_TOKEN_CPU "k8scpu"
#define SK8_TOKEN_MEMORY "k8smemory"
#define SK8_DEVICES "k8s"	/* not one of them: devices that only Kubernetes knows; k8s_gres of lib/core/settings.h */

/* Is this GRES one of them? The engine never hears of those: it knows CPUs and memory. */
extern bool sk8_is_token(const char *gres);

enum sk8_per { SK8_PER_NONE, SK8_PER_NODE, SK8_PER_TASK };
enum sk8_memory { SK8_MEMORY_UNKNOWN, SK8_MEMORY_PER_NODE, SK8_MEMORY_PER_CPU };

/* What a job asks for. 0: it says nothing. */
struct sk8_ask {
	uint32_t tasks, cpus_per_task;
	uint32_t tasks_per_node;	/* with tasks: at most */
	uint32_t min_nodes, max_nodes;
	uint32_t min_cpus;		/* of the whole job */
	uint32_t cpus_per_node;		/* at least */
	bool overcommit;		/* a CPU on each node is for all of its tasks */
	bool exclusive;			/* Slurm gives it all GRES of its nodes */
	bool cpus_by_gres, memory_by_gres;	/* --cpus-per-gpu, --mem-per-gpu */
	enum sk8_memory memory;
	uint64_t memory_mb;		/* of that */
	const char *per_node, *per_task;	/* GRES as Slurm has them, "gres:gpu:2,gres/k8scpu=3"; may be NULL */
	const char *per_job, *per_socket;
};

/* That many of one, on each node or for each task; SK8_PER_NONE: it cannot be known before the job starts */
struct sk8_tokens {
	enum sk8_per per;
	uint64_t count;
};
extern struct sk8_tokens sk8_cpu_tokens(const struct sk8_ask *ask);
extern struct sk8_tokens sk8_memory_tokens(const struct sk8_ask *ask);

/* Does this list name the GRES? *count: how many of it, of all its types. tres may be NULL. */
extern bool sk8_names_gres(const char *tres, const char *gres, uint64_t *count);
/* Does this list name some of the GRES and no type of it? tres may be NULL. */
extern bool sk8_names_untyped(const char *tres, const char *gres);
/* Does the request name it anywhere, with a number that is not 0, or say --gres=none? */
extern bool sk8_asks_for(const struct sk8_ask *ask, const char *gres);

/* False: the tokens that it names are fewer than what it asks for, or it gets all of them anyhow. Then text says so. */
extern bool sk8_tokens_agree(const struct sk8_ask *ask, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
