/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* environment.h - the variables of a container, for the tasks in it */
#ifndef SK8_SPANK_ENVIRONMENT_H
#define SK8_SPANK_ENVIRONMENT_H

#include <slurm/spank.h>

/*
 * slurmstepd, before it is in the container: tasks get the variables with which this process began, in place of those of the
 * same name that came with the job; but not Slurm's, Kubernetes', and those that say who and where the user is. What is
 * no variable, or too much, is left out. The process may be its user's own, and may say anything.
 */
extern void sk8_take_environment(spank_t spank, long pid);
/* Of all these only where the API server is, as its kubelet tells each container. */
extern void sk8_take_api_server(spank_t spank, long pid);

/*
 * slurmstepd, too: variables of devices, "NAME=value" with a zero byte behind each, which tasks get if their user has none of that name. So
 * that those of one node, which an sbatch or srun in a task hands on, do not pass for the user's own on the next, a variable more
 * names them; take them back first.
 */
extern void sk8_give_variables(spank_t spank, char *text, size_t size);
extern void sk8_take_variables_back(spank_t spank);

#endif
