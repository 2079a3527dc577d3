/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * options.h - what users say of containers: options of srun, sbatch and salloc, or variables in their place, by which
 * sbatch and salloc hand them on to the srun of their jobs.
 */
#ifndef SK8_SPANK_OPTIONS_H
#define SK8_SPANK_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <slurm/spank.h>
#include "lib/sk8_container.h"

enum { SK8_LONGEST_CONTAINER = 63 };

struct sk8_wish {
	char image[SK8_LONGEST_IMAGE + 1];		/* "" = none */
	char template[PATH_MAX];			/* a file's name, where it was submitted; "" = none */
	char container[SK8_LONGEST_CONTAINER + 1];	/* of the step's tasks; "" or "job" = the job's own */
	char workdir[PATH_MAX];				/* in the container; "" = that of the job */
	char service_account[SK8_LONGEST_SERVICE_ACCOUNT + 1];	/* "" = none */
	bool mount_home, env, network, ipc;
	bool unclear;	/* the job's environment says what nobody can mean */
};
extern struct sk8_wish sk8_wish;

extern int sk8_register_options(spank_t spank);	/* any context that has options */
/*
 * After them. srun, sbatch, salloc: tells slurmctld by the job's SPANK environment; what is wrong is told, and ends the
 * program, for Slurm takes no errors of plugins that are "optional" and would make the job without (plugstack.c,
 * _do_call_stack()). slurmstepd: reads the job's environment. No other: nothing.
 */
extern void sk8_options_known(spank_t spank);

#endif
