/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * prep_k8s.c - the gate: a job on a node with sharing: mixed, or one that wants a container, is
 * launched when the node's kubelet has admitted a pod that holds there what the job does.
 *
 * slurm.conf: PrEpPlugins=prep/script,prep/k8s. slurmd and slurmstepd load it, too, and do
 * nothing with it. In slurmctld it hands each job to sk8_slurmctld.so, which the select
 * plugin has loaded; where that is not, all passes.
 */
#include "lib/slurm/hooks.h"
#include "lib/slurm/module_path.h"
#include "lib/sk8_abi.h"

const char plugin_name[] = "Gate of jobs on nodes that Kubernetes uses too";
const char plugin_type[] = "prep/k8s";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
static const char stamp[] __attribute__((used)) = SK8_STAMP " " SK8_SLURM_VERSION;	/* for slurm-k8s check */

static prep_callbacks_t callbacks;

/* Opening a library takes the loader's locks and looks at files. */
static const struct sk8_prep_hooks *look_up(void)
{
	const struct sk8_prep_hooks *found = NULL;
	char *dir = sk8_folder_of(plugin_type);
	void *module = NULL;

	for (size_t i = 0; dir && !module && (i < SK8_MODULE_PLACES); i++) {
		char *path = xstrdup_printf("%s/%s", dir, sk8_module_places[i]);

		module = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
		xfree(path);
	}
	xfree(dir);
	if (module) {
		found = dlsym(module, SK8_PREP_HOOKS);
		dlclose(module);	/* the select plugin keeps it, until the process ends */
	}
	return (found && (found->slurm_version == plugin_version)) ? found : NULL;
}

/*
 * Slurm's threads come here at once. NULL: nobody to ask, yet. What was found stays: slurmctld
 * cannot change its select plugin, and after a reconfigure that loads this one anew it is
 * looked for anew.
 */
static const struct sk8_prep_hooks *hooks(void)
{
	static const struct sk8_prep_hooks *known;
	const struct sk8_prep_hooks *found = __atomic_load_n(&known, __ATOMIC_ACQUIRE);

	if (!found && (found = look_up()))
		__atomic_store_n(&known, found, __ATOMIC_RELEASE);
	return found;
}

extern int init(void)
{
	return SLURM_SUCCESS;
}

extern int fini(void)
{
	return SLURM_SUCCESS;
}

/* From 22.05 on not called again when a reconfigure changes PrEpPlugins. */
extern int prep_p_register_callbacks(prep_callbacks_t *given)
{
	if (given)
		callbacks = *given;
	return SLURM_SUCCESS;
}

extern int prep_p_prolog(job_env_t *job_env, slurm_cred_t *cred)
{
	(void) job_env;
	(void) cred;
	return SLURM_SUCCESS;
}

extern int prep_p_epilog(job_env_t *job_env, slurm_cred_t *cred)
{
	(void) job_env;
	(void) cred;
	return SLURM_SUCCESS;
}

/* In a thread of its own, under job and node write locks. */
extern int prep_p_prolog_slurmctld(job_record_t *job_ptr, bool *async)
{
	const struct sk8_prep_hooks *to = callbacks.prolog_slurmctld ? hooks() : NULL;

	*async = to && to->prolog(job_ptr, callbacks.prolog_slurmctld);
	return SLURM_SUCCESS;
}

extern int prep_p_epilog_slurmctld(job_record_t *job_ptr, bool *async)
{
	(void) job_ptr;
	*async = false;
	return SLURM_SUCCESS;
}

/* Asked once, maybe before the select plugin is loaded. */
extern void prep_p_required(prep_call_type_t type, bool *required)
{
	if (type == PREP_PROLOG_SLURMCTLD)
		*required = running_in_slurmctld();
}
