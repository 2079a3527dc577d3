/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * agent.h - between spank_k8s.so and sk8_slurmd.so.
 *
 * The SPANK plugin is loaded by srun, sbatch and each slurmstepd, too: it must cost them nothing.
 * So all that slurmd does is in sk8_slurmd.so, which the plugin opens only inside slurmd.
 */
#ifndef SK8_SLURMD_AGENT_H
#define SK8_SLURMD_AGENT_H

struct sk8_slurmd_hooks {
	/* spank_init in slurmd: the agent runs from now on, also after slurmd has daemonised. Returns at once. */
	void (*start)(void);
	/* slurmd_exit */
	void (*stop)(void);
};

#define SK8_SLURMD_HOOKS "sk8_slurmd_hooks"

#endif
