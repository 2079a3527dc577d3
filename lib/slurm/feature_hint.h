/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* feature_hint.h - for job_submit: which labels a job waits for in vain. */
#ifndef SK8_SLURM_FEATURE_HINT_H
#define SK8_SLURM_FEATURE_HINT_H

/*
 * A sentence about those features of --constraint that stand for labels of Kubernetes' nodes
 * (or k8s.exclusive and the like) and that no node has, or none together with another one that
 * is asked for: Slurm refuses or holds the job, and does not say for which. NULL: there are
 * none, or others may do in their stead. xfree() it. Node read lock.
 */
extern char *sk8_feature_hint(const char *constraint);

#endif
