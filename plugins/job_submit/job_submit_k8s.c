/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * job_submit_k8s.c - keeps the mark of placeholder jobs ours: what stands in
 * admin_comment says which pod a job belongs to, so nobody else may write it.
 *
 * Only privileged users can set admin_comment at all; this stops their mistakes
 * and other job_submit plugins. slurm.conf: JobSubmitPlugins=...,k8s (the last).
 *
 * Both functions keep no state: from 23.11 on several threads run them at once.
 * It works without our select plugin: then no mark is ever accepted.
 */
#include "lib/slurm/release.h"
#include "lib/sk8_abi.h"

const char plugin_name[] = "Guard of the jobs that stand for Kubernetes pods";
const char plugin_type[] = "job_submit/k8s";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

extern int init(void)
{
	return SLURM_SUCCESS;
}

extern int fini(void)
{
	return SLURM_SUCCESS;
}

static int refuse(char **err_msg, uint32_t uid, const char *why)
{
	info("%s (request of uid %u)", why, uid);
	if (err_msg) {
		xfree(*err_msg);
		*err_msg = xstrdup(why);
	}
	return ESLURM_ACCESS_DENIED;
}

extern int job_submit(job_desc_msg_t *job_desc, uint32_t submit_uid, char **err_msg)
{
	if (!sk8_is_mark(job_desc->admin_comment) || sk8_submitting())
		return SLURM_SUCCESS;
	return refuse(err_msg, submit_uid,
		      "slurm-k8s: an admin comment that begins with \"" SK8_MARK_PREFIX
		      "\" marks the job of a Kubernetes pod and cannot be given by hand; use another text, or --comment");
}

extern int job_modify(SK8_JOB_MODIFY_PARAMS)
{
	const char *old, *new = job_desc->admin_comment;

	if (!new || sk8_submitting())
		return SLURM_SUCCESS;
	old = job_ptr->admin_comment;
	if (sk8_is_mark(old) && xstrcmp(old, new))
		return refuse(SK8_JOB_MODIFY_ERR_MSG, submit_uid,
			      "slurm-k8s: the admin comment of this job names its Kubernetes pod and cannot be changed; use the comment");
	if (sk8_is_mark(new) && xstrcmp(old, new))
		return refuse(SK8_JOB_MODIFY_ERR_MSG, submit_uid,
			      "slurm-k8s: an admin comment that begins with \"" SK8_MARK_PREFIX
			      "\" marks the job of a Kubernetes pod and cannot be given by hand; use another text, or the comment");
	return SLURM_SUCCESS;
}
