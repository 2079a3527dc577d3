/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * container.h - --k8s-image: the tasks of a job's steps run in a container that a kubelet has made for the job.
 *
 * srun, sbatch and salloc tell slurmctld by the job's SPANK environment which image is wanted; its engine makes the
 * container and launches the job when it runs; the agent in slurmd writes down where it is (lib/sk8_container.h); in
 * slurmstepd each task enters its namespaces (namespaces.h) before it becomes its user. Batch scripts and the shells of
 * salloc stay on the node: they call srun. Stdio, signals, cgroups, environment and exit code stay Slurm's.
 */
#ifndef SK8_SPANK_CONTAINER_H
#define SK8_SPANK_CONTAINER_H

#include <sys/types.h>
#include <slurm/spank.h>

/* In slurmstepd, which is in the folder where tasks begin: plugins that come before this one may lead them elsewhere
 * (job_container/tmpfs does). */
extern void sk8_remember_folder(void);
/* What a file begins with that only root may write: so many bytes at most. As read(): -1 also if it is none. */
extern ssize_t sk8_read_of_root(const char *path, char *text, size_t size);
/* Waits until the agent has put this file into its folder: so many ms at most, and not without that folder. */
extern void sk8_await_file(const char *folder, const char *file, int longest);
/* In slurmstepd, once for all tasks: waits, 15 s at most, for the agent's word; nothing if none is wanted. */
extern void sk8_await_container(spank_t spank);
/*
 * In the task's process, as root; nothing without the option. A task that cannot have its container does not run: its
 * process ends here, after an error that tells why. Slurm would let it run on the node, for it takes no errors from plugins that
 * are "optional" (plugstack.c, _do_call_stack()).
 */
extern void sk8_enter_container(spank_t spank);
/*
 * In the task's process, as its user, when Slurm has chosen its folder and knows its variables; nothing without the option. First what is
 * to be run on the node before the task (task_prolog.h), then --k8s-workdir; or an error and its end.
 */
extern void sk8_begin_task(spank_t spank);

#endif
