/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * gres.h - what tasks are told of GRES that no plugin of Slurm's tells them of: of the tokens k8scpu and k8smemory their number,
 * of devices that only Kubernetes knows (k8s) what their device plugins say.
 */
#ifndef SK8_SPANK_GRES_H
#define SK8_SPANK_GRES_H

#include <slurm/spank.h>

/*
 * In slurmstepd, once for all tasks, on the node and as root. Waits, 10 s at most, for the agent's word if the job has
 * such devices; else it reads no file.
 */
extern void sk8_tell_gres(spank_t spank);

#endif
