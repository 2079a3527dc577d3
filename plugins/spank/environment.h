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

#endif
