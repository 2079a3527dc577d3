/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * select_cons_tres.c - a select plugin that passes everything through to Slurm's
 * own select_cons_tres.so, and hosts our engine in slurmctld.
 *
 * It has the stock plugin's type, id and file name and stands in a directory that
 * comes before the stock one in PluginDir: Slurm compares strings with
 * "cons_tres" in many places, so a name of our own would lose features.
 *
 * Everywhere but in slurmctld it only forwards. It refers to no data of slurmctld,
 * so it loads there (RTLD_LAZY: functions are looked up when called).
 */
#include "lib/slurm/hooks.h"
#include "lib/slurm/module_path.h"
#include "lib/slurm/sizes.h"
#include "lib/sk8_abi.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "plugins/select/forward.h"

const char plugin_name[] = "Kubernetes-aware consumable trackable resources (TRES) selection plugin";
const char plugin_type[] = "select/cons_tres";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
const uint32_t plugin_id = SELECT_PLUGIN_CONS_TRES;
static const char stamp[] __attribute__((used)) = SK8_STAMP " " SK8_SLURM_VERSION;	/* for slurm-k8s check */

static void *stock;				/* handle of the stock plugin */
static const struct sk8_select_hooks *hooks;	/* NULL: pass everything through */

#define STOCK(r, name, params, args) static r (*stock_##name) params;
SEL_ALL(STOCK)

/* ---- forwarded ---------------------------------------------------------------- */

#define FORWARD(r, name, params, args) \
extern r name params \
{ \
	return stock_##name args; \
}
SEL_PLAIN(FORWARD)

#define FORWARD_USAGE(r, name, params, args) \
extern r name params \
{ \
	r rc; \
\
	if (hooks) \
		hooks->before(); \
	rc = stock_##name args; \
	if (hooks) \
		hooks->usage_changed(NULL); \
	return rc; \
}
SEL_USAGE(FORWARD_USAGE)

/* ---- with a hook --------------------------------------------------------------- */

extern int select_p_job_test(SK8_JOB_TEST_PARAMS)
{
	return hooks ? hooks->job_test(SK8_JOB_TEST_ARGS) :
		stock_select_p_job_test(SK8_JOB_TEST_ARGS);
}

/* The hook comes first: what the job's pod still uses is masked before it is free. */
extern int select_p_job_fini(job_record_t *job_ptr)
{
	int rc;

	if (hooks) {
		hooks->before();
		hooks->job_fini(job_ptr);
	}
	rc = stock_select_p_job_fini(job_ptr);
	if (hooks)
		hooks->usage_changed(job_ptr);
	return rc;
}

/* What its pod goes on using is masked before others may have it, and until it is the job's again. */
extern int select_p_job_suspend(job_record_t *job_ptr, bool indf_susp)
{
	int rc;

	if (hooks) {
		hooks->before();
		hooks->job_suspend(job_ptr, true);
	}
	rc = stock_select_p_job_suspend(job_ptr, indf_susp);
	if (hooks && rc)
		hooks->job_suspend(job_ptr, false);
	if (hooks)
		hooks->usage_changed(job_ptr);
	return rc;
}

extern int select_p_job_resume(job_record_t *job_ptr, bool indf_susp)
{
	int rc;

	if (hooks)
		hooks->before();
	rc = stock_select_p_job_resume(job_ptr, indf_susp);
	if (hooks && !rc)
		hooks->job_suspend(job_ptr, false);
	if (hooks)
		hooks->usage_changed(job_ptr);
	return rc;
}

extern int select_p_job_resized(job_record_t *job_ptr, node_record_t *node_ptr)
{
	int rc;

	if (hooks)
		hooks->before();
	rc = stock_select_p_job_resized(job_ptr, node_ptr);
	if (hooks) {
		hooks->usage_changed(NULL);
		hooks->job_resized(job_ptr);
	}
	return rc;
}

/* Slurm commits cores, memory and GRES of a starting job in here. */
extern int select_p_select_nodeinfo_set(job_record_t *job_ptr)
{
	int rc;

	if (hooks) {
		hooks->before();
		hooks->before_start(job_ptr);
	}
	rc = stock_select_p_select_nodeinfo_set(job_ptr);
	if (hooks) {
		hooks->after_start();
		hooks->usage_changed(job_ptr);
		hooks->nodeinfo_set(job_ptr);
	}
	return rc;
}

extern int select_p_select_nodeinfo_set_all(void)
{
	int rc;

	if (hooks)
		hooks->before_nodeinfo_set_all();
	rc = stock_select_p_select_nodeinfo_set_all();
	/* with an error it kept its old numbers, with what we had added */
	if (hooks)
		hooks->nodeinfo_set_all(!rc);
	return rc;
}

extern int select_p_node_init(void)
{
	int rc;

	if (hooks)
		hooks->before();
	rc = stock_select_p_node_init();
	if (hooks)
		hooks->node_init();
	return rc;
}

extern int select_p_reconfigure(void)
{
	int rc;

	if (hooks)
		hooks->before();
	rc = stock_select_p_reconfigure();
	if (hooks)
		hooks->reconfigure();
	return rc;
}

#ifdef SEL_HAS_STATE_SAVE
extern int select_p_state_save(char *dir_name)
{
	if (hooks)
		hooks->state_save();
	return stock_select_p_state_save(dir_name);
}
#endif

/* ---- loading ----------------------------------------------------------------------- */

/*
 * PluginDir; or, if our headers do not describe slurm_conf, where Slurm's plugins
 * are beside the library that all of its programs have. To be freed by xfree().
 */
static char *plugin_dirs(void)
{
	if (sk8_conf_fits())
		return xstrdup(slurm_conf.plugindir);
	return sk8_folder_of((void *) xsize);
}

/* The next select_cons_tres.so in PluginDir that is not this file. */
static void *open_stock(void)
{
	struct stat self, other;
	char *dirs = plugin_dirs(), *left, *dir, *rest = NULL;
	void *handle = NULL;
	Dl_info me;

	if (!dirs || !dladdr(plugin_type, &me) || stat(me.dli_fname, &self)) {
		xfree(dirs);
		return NULL;
	}
	left = xstrdup(dirs);
	for (dir = strtok_r(left, ":", &rest); dir && !handle;
	     dir = strtok_r(NULL, ":", &rest)) {
		char *path = xstrdup_printf("%s/select_cons_tres.so", dir);

		if (!stat(path, &other) &&
		    ((other.st_dev != self.st_dev) || (other.st_ino != self.st_ino))) {
			/* LOCAL: its select_p_* must not be taken for ours */
			handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
			if (!handle)
				error("slurm-k8s: cannot load %s: %s", path, dlerror());
		}
		xfree(path);
	}
	xfree(left);
	if (!handle)
		error("slurm-k8s: no other select_cons_tres.so in PluginDir=%s: add the directory of Slurm's own plugins after ours",
		      dirs);
	xfree(dirs);
	return handle;
}

static void *open_module(void)
{
	char *dir = sk8_folder_of(plugin_type);
	void *handle = NULL;

	if (!dir)
		return NULL;
	for (size_t i = 0; !handle && (i < SK8_MODULE_PLACES); i++) {
		char *path = xstrdup_printf("%s/%s", dir, sk8_module_places[i]);
		struct stat st;

		/* NOW: what this slurmctld lacks shows here, not when it is called */
		if (!stat(path, &st) && !(handle = dlopen(path, RTLD_NOW | RTLD_LOCAL))) {
			error("slurm-k8s: cannot load %s: %s; jobs are scheduled as if slurm-k8s were not there; install slurm-k8s again, all of it in one version",
			      path, dlerror());
			xfree(path);
			xfree(dir);
			return NULL;
		}
		xfree(path);
	}
	if (!handle)
		error("slurm-k8s: no sk8_slurmctld.so in or above %s; jobs are scheduled as if slurm-k8s were not there",
		      dir);
	xfree(dir);
	return handle;
}

static void start_engine(void)
{
	const struct sk8_select_hooks *found;
	void *module = open_module();

	if (!module)
		return;
	found = dlsym(module, SK8_SELECT_HOOKS);
	if (!found || (found->slurm_version != plugin_version)) {
		error("slurm-k8s: sk8_slurmctld.so is of another build than %s; jobs are scheduled as if slurm-k8s were not there",
		      plugin_type);
		return;
	}
	if (found->start(stock))
		hooks = found;
}

static bool bind_stock(void)
{
	bool complete = true;

#define BIND(r, name, params, args) \
	if (!(stock_##name = (r (*) params) dlsym(stock, #name))) { \
		error("slurm-k8s: Slurm's own select_cons_tres.so lacks " #name); \
		complete = false; \
	}
	SEL_ALL(BIND)
	return complete;
}

/* An error here keeps the daemon from starting: only without a stock plugin. */
extern int init(void)
{
	const uint32_t *version;
	int (*stock_init)(void);

	if (stock)
		return SLURM_SUCCESS;
	if (!(stock = open_stock()) || !bind_stock())
		return SLURM_ERROR;
	version = dlsym(stock, "plugin_version");
	if (!version || (*version != plugin_version)) {
		error("slurm-k8s: Slurm's own select_cons_tres.so has version 0x%x, this plugin is for 0x%x",
		      version ? *version : 0, plugin_version);
		return SLURM_ERROR;
	}
	stock_init = (int (*)(void)) dlsym(stock, "init");
	if (stock_init && stock_init())
		return SLURM_ERROR;
	if (running_in_slurmctld())
		start_engine();
	return SLURM_SUCCESS;
}

/* Not called at shutdown by daemons as distributions build them. */
extern int fini(void)
{
	int (*stock_fini)(void);

	if (hooks)
		hooks->stop();
	hooks = NULL;
	stock_fini = stock ? (int (*)(void)) dlsym(stock, "fini") : NULL;
	return stock_fini ? stock_fini() : SLURM_SUCCESS;
}
