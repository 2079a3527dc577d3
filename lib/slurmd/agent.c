/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * agent.c - sk8_slurmd.so's entry: hosts the agent (lib/agent) in slurmd.
 *
 * slurmd calls SPANK plugins before it daemonises (slurmd.c, main(), 22.05): twice it forks, and only its
 * main thread goes along. So the agent ends before a fork of the main thread,
 * and starts again in the child. Forks of other threads are those that launch steps: they fork once more, as
 * the only thread of their process, and execute slurmstepd. The agent has nothing to do with
 * them, and must not: it waits for its threads, which are not there.
 */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/slurm/daemon.h"
#include "lib/slurm/sizes.h"
#include "lib/slurmd/agent.h"
#include "lib/slurmd/job.h"

/* Without the libsk8core that it was built with, this file cannot be loaded. */
static const char *const border __attribute__((used)) = SK8_BORDER;
static const char stamp[] __attribute__((used)) = SK8_STAMP " " SK8_SLURM_VERSION;

static struct sk8_agent_host host;	/* the agent may look at it at any time */
static pid_t slurmd;			/* where the agent runs */
static __thread bool stopped_for_fork;	/* of the thread that forks, on both sides */

/* slurmd -N NAME, or what slurm.conf calls this host, as slurmd itself finds it (_read_config() in slurmd.c). NULL: neither */
static char *node_name(void)
{
	char hostname[HOST_NAME_MAX + 1] = "", *dot, *name;
	char *given = sk8_node_of_command_line("/proc/self/cmdline");

	if (given)
		return given;
	if (gethostname(hostname, sizeof(hostname) - 1))
		return NULL;
	if ((dot = strchr(hostname, '.')))
		*dot = '\0';
	if ((name = slurm_conf_get_nodename(hostname)) || (name = slurm_conf_get_aliased_nodename()))
		return name;
	return slurm_conf_get_nodename("localhost");
}

static bool is_main_thread_of_slurmd(void)
{
	return (getpid() == slurmd) && (syscall(SYS_gettid) == slurmd);
}

static void before_fork(void)
{
	stopped_for_fork = is_main_thread_of_slurmd() && sk8_agent_stop();
}

static void after_fork_in_parent(void)
{
	if (stopped_for_fork)
		sk8_agent_start(&host);
}

static void after_fork_in_child(void)
{
	if (!stopped_for_fork)
		return;
	slurmd = getpid();
	sk8_agent_start(&host);
}

static void start(void)
{
	if (host.node)
		return;	/* a reconfigure */
	if (!sk8_conf_fits()) {
		error("slurm-k8s: no agent on this node: slurm_conf_t of this slurmd is not that of the Slurm %s which slurm-k8s was built with; build it with the source of the installed Slurm",
		      SK8_SLURM_VERSION);
		return;
	}
	if (!(host.node = node_name())) {
		error("slurm-k8s: no agent on this node: slurm.conf does not name it");
		return;
	}
	host.log = sk8_write_log;
	host.log_level = sk8_log_level_now;
	host.config_path = sk8_config_path("SLURM_K8S_NODE_CONF", "slurm-k8s-node.yaml");
	host.uid = slurm_conf.slurmd_user_id;
	host.find_job = sk8_find_job;
	host.steps_here = sk8_steps_here;
	sk8_find_jobs_on(host.node);
	slurmd = getpid();
	(void) pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	sk8_agent_start(&host);
}

static void stop(void)
{
	(void) sk8_agent_stop();
}

extern SK8_API const struct sk8_slurmd_hooks sk8_slurmd_hooks;
const struct sk8_slurmd_hooks sk8_slurmd_hooks = { .start = start, .stop = stop };
