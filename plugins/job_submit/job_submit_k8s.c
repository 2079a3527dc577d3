/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * job_submit_k8s.c - keeps the mark of placeholder jobs ours: what stands in
 * admin_comment says which pod a job belongs to, so nobody else may write it. Nor may
 * the job's owner make it smaller than its pod (owner.h).
 *
 * Only privileged users can set admin_comment at all; this stops their mistakes
 * and other job_submit plugins. slurm.conf: JobSubmitPlugins=...,k8s (the last).
 * It also says for which label Slurm finds no node; whether the job is refused is Slurm's
 * decision. And it completes requests for CPUs and memory by tokens (complete.h), so it comes
 * after what else changes them.
 *
 * From 23.11 on several threads run both functions at once: they keep nothing but
 * whether our headers describe this slurmctld. If not all is let through.
 * It works without our select plugin: then no mark is ever accepted.
 */
#include "lib/slurm/feature_hint.h"
#include "lib/slurm/sizes.h"
#include "lib/slurm/tokens.h"
#include "plugins/job_submit/complete.h"
#include "plugins/job_submit/owner.h"
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/sk8_abi.h"

const char plugin_name[] = "Guard of the jobs that stand for Kubernetes pods";
const char plugin_type[] = "job_submit/k8s";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
static const char stamp[] __attribute__((used)) = SK8_STAMP " " SK8_SLURM_VERSION;	/* for slurm-k8s check */

static bool broken;

static void refuse_to_act(const char *what)
{
	if (!__atomic_exchange_n(&broken, true, __ATOMIC_RELAXED))
		error("slurm-k8s: %s of this slurmctld is not that of the Slurm %s which job_submit/k8s was built with: it checks no job; build it with the source of the installed Slurm",
		      what, SK8_SLURM_VERSION);
}

/* The select plugin cannot tell that it is not loaded. This one stands in the same directory. */
static void check_plugin_dir(void)
{
	char *dirs, *dir, *rest = NULL;
	struct stat first, ours;
	bool found = false;
	Dl_info me;

	if (!sk8_conf_fits() || !slurm_conf.plugindir || !dladdr(plugin_type, &me) || stat(me.dli_fname, &ours))
		return;
	dirs = xstrdup(slurm_conf.plugindir);
	for (dir = strtok_r(dirs, ":", &rest); dir && !found; dir = strtok_r(NULL, ":", &rest)) {
		char *select = xstrdup_printf("%s/select_cons_tres.so", dir);
		char *submit = xstrdup_printf("%s/job_submit_k8s.so", dir);

		found = !stat(select, &first);
		if (found && (stat(submit, &first) || (first.st_ino != ours.st_ino) || (first.st_dev != ours.st_dev)))
			error("slurm-k8s: Slurm loads %s, which is not of slurm-k8s: pods get no jobs; put the directory of %s first in PluginDir=%s",
			      select, me.dli_fname, slurm_conf.plugindir);
		xfree(select);
		xfree(submit);
	}
	xfree(dirs);
}

extern int init(void)
{
	if (!sk8_desc_fits())
		refuse_to_act("job_desc_msg_t");
	if (!sk8_conf_fits())
		refuse_to_act("slurm_conf_t");
	check_plugin_dir();
	return SLURM_SUCCESS;
}

extern int fini(void)
{
	return SLURM_SUCCESS;
}

/* What another plugin has said stays. */
static void say(char **err_msg, uint32_t uid, const char *what)
{
	if (err_msg)
		xstrfmtcat(*err_msg, "%s%s", *err_msg ? "\n" : "", what);
	else
		info("%s (request of uid %u)", what, uid);
}

static int refuse(int rc, char **err_msg, uint32_t uid, const char *why)
{
	if (err_msg)
		info("%s (request of uid %u)", why, uid);
	say(err_msg, uid, why);
	return rc;
}

/* why: xmalloc()ed */
static int refuse_tokens(char **err_msg, uint32_t uid, char *why)
{
	const int rc = refuse(ESLURM_INVALID_GRES, err_msg, uid, why);

	xfree(why);
	return rc;
}

/*
 * Of a job that leaves out the type of such a device nobody knows which one it wants: no pod would be there for it, and
 * Kubernetes would give to others what Slurm has given to the job.
 */
static bool lacks_type(const job_desc_msg_t *desc)
{
	return sk8_names_untyped(desc->tres_per_node, SK8_DEVICES) || sk8_names_untyped(desc->tres_per_task, SK8_DEVICES) ||
		sk8_names_untyped(desc->tres_per_job, SK8_DEVICES) || sk8_names_untyped(desc->tres_per_socket, SK8_DEVICES);
}

static int refuse_untyped(char **err_msg, uint32_t uid)
{
	return refuse(ESLURM_INVALID_GRES, err_msg, uid,
		      "slurm-k8s: --gres=" SK8_DEVICES " needs the type of the device, as in --gres=" SK8_DEVICES
		      ":rdma_hca:1; sinfo -o '%n %G' shows which there are");
}

static void explain(const job_desc_msg_t *job_desc, char **err_msg, uint32_t uid)
{
	char *hint = sk8_feature_hint(job_desc->features, job_desc->min_nodes);

	if (hint)
		say(err_msg, uid, hint);
	xfree(hint);
}

extern int job_submit(job_desc_msg_t *job_desc, uint32_t submit_uid, char **err_msg)
{
	char *why = NULL;

	if (__atomic_load_n(&broken, __ATOMIC_RELAXED))
		return SLURM_SUCCESS;
	if (!sk8_submitting() && sk8_is_mark(job_desc->admin_comment))
		return refuse(ESLURM_ACCESS_DENIED, err_msg, submit_uid,
			      "slurm-k8s: an admin comment that begins with \"" SK8_MARK_PREFIX
			      "\" marks the job of a Kubernetes pod and cannot be given by hand; use another text, or --comment");
	if (!sk8_submitting() && lacks_type(job_desc))
		return refuse_untyped(err_msg, submit_uid);
	if (!sk8_complete(job_desc, &why))
		return refuse_tokens(err_msg, submit_uid, why);
	if (!sk8_submitting())
		explain(job_desc, err_msg, submit_uid);
	return SLURM_SUCCESS;
}

/* What nobody may write into the admin comment of this job; NULL: this may be. */
static const char *wrong_mark(const char *old, const char *new)
{
	if (!new || !xstrcmp(old, new))
		return NULL;
	if (sk8_is_mark(old))
		return "slurm-k8s: the admin comment of this job names its Kubernetes pod and cannot be changed; use the comment";
	if (sk8_is_mark(new))
		return "slurm-k8s: an admin comment that begins with \"" SK8_MARK_PREFIX
			"\" marks the job of a Kubernetes pod and cannot be given by hand; use another text, or the comment";
	return NULL;
}

extern int job_modify(SK8_JOB_MODIFY_PARAMS)
{
	const char *wrong;
	char *why = NULL;

	if (!sk8_is_sized(job_ptr, sizeof(*job_ptr)))
		refuse_to_act("job_record_t");
	if (__atomic_load_n(&broken, __ATOMIC_RELAXED) || sk8_submitting())
		return SLURM_SUCCESS;
	if ((wrong = wrong_mark(job_ptr->admin_comment, job_desc->admin_comment)))
		return refuse(ESLURM_ACCESS_DENIED, SK8_JOB_MODIFY_ERR_MSG, submit_uid, wrong);
	if (sk8_is_mark(job_ptr->admin_comment) && sk8_changes_request(job_desc) && !validate_operator(submit_uid))
		return refuse(ESLURM_ACCESS_DENIED, SK8_JOB_MODIFY_ERR_MSG, submit_uid,
			      "slurm-k8s: what this job asks for and which nodes it may have come from its Kubernetes pod; only an administrator can change that here");
	if (sk8_is_mark(job_ptr->admin_comment) && sk8_takes_memory(job_desc, job_ptr))
		return refuse(ESLURM_NOT_SUPPORTED, SK8_JOB_MODIFY_ERR_MSG, submit_uid,
			      "slurm-k8s: this job stands for a Kubernetes pod that has its memory, and keeps it; make the pod smaller");
	if (lacks_type(job_desc))
		return refuse_untyped(SK8_JOB_MODIFY_ERR_MSG, submit_uid);
	if (!sk8_complete_change(job_desc, job_ptr, &why))
		return refuse_tokens(SK8_JOB_MODIFY_ERR_MSG, submit_uid, why);
	explain(job_desc, SK8_JOB_MODIFY_ERR_MSG, submit_uid);
	return SLURM_SUCCESS;
}
