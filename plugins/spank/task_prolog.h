/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * task_prolog.h - TaskProlog of slurm.conf and srun's --task-prolog, for tasks in containers.
 *
 * Slurm runs both in the task's process behind the last hook of plugins, that is in the container. The script is not there, nor is the
 * shell that it names, nor, from 24.11 on, the slurmstepd that would start it (run_command.c). So this plugin takes them from
 * Slurm and runs them on the node, at the same moment as Slurm would. TaskEpilog and --task-epilog are run by slurmstepd, which is on the
 * node anyhow.
 */
#ifndef SK8_SPANK_TASK_PROLOG_H
#define SK8_SPANK_TASK_PROLOG_H

#include <stdbool.h>
#include <slurm/spank.h>

/* In the process of a task that is about to enter a container, as root. false: an error has told why it cannot */
extern bool sk8_take_task_prologs(spank_t spank);
/*
 * In the same process, as its user, in the container; folder: of the node, where tasks begin. What scripts say is done as Slurm does it:
 * "export NAME=value", "unset NAME", "print text". If one fails the task's process ends here, as Slurm would end it.
 */
extern void sk8_run_task_prologs(spank_t spank, const char *folder);

#endif
