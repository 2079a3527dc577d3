/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * spank_k8s.c - in slurmd: opens sk8_slurmd.so, in which the agent is. In srun, sbatch, salloc and slurmstepd: the
 * options of options.h, and the way into containers.
 *
 * plugstack.conf: "optional /usr/lib/.../spank_k8s.so". It links nothing but libc, and SPANK's interface is
 * all that it knows of Slurm.
 */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include "sk8_config.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <slurm/spank.h>
#include "lib/sk8_abi.h"
#include "lib/slurmd/agent.h"
#include "plugins/spank/container.h"
#include "plugins/spank/gres.h"
#include "plugins/spank/options.h"

SPANK_PLUGIN(k8s, 1);
static const char stamp[] __attribute__((used)) = SK8_STAMP " " SK8_SLURM_VERSION;	/* for slurm-k8s check */

/* as installed, or beside the plugins as in a build tree */
static const char *const places[] = { "../sk8_slurmd.so", "sk8_slurmd.so" };

static const struct sk8_slurmd_hooks *hooks;

static void *open_module(void)
{
	char path[PATH_MAX];
	Dl_info about;
	const char *slash;

	if (!dladdr(places, &about) || !(slash = strrchr(about.dli_fname, '/')))
		return NULL;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		void *module;

		snprintf(path, sizeof(path), "%.*s/%s", (int) (slash - about.dli_fname), about.dli_fname,
			 places[i]);
		if (access(path, F_OK))
			continue;
		/* NOW: what this slurmd lacks shows here, not when it is called */
		if ((module = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
			return module;
		slurm_error("slurm-k8s: cannot load %s: %s; no agent runs on this node; install slurm-k8s again, all of it in one version",
			    path, dlerror());
		return NULL;
	}
	slurm_error("slurm-k8s: no sk8_slurmd.so in or above the folder of %s; no agent runs on this node",
		    about.dli_fname);
	return NULL;
}

/* In slurmd this is what the documentation of SPANK calls slurmd_init (plugstack.c, all releases). */
extern int slurm_spank_init(spank_t spank, int ac, char *argv[])
{
	void *module;

	(void) ac;
	(void) argv;
	if (spank_context() != S_CTX_SLURMD)
		return sk8_register_options(spank);
	if (!hooks && (module = open_module()) && !(hooks = dlsym(module, SK8_SLURMD_HOOKS)))
		slurm_error("slurm-k8s: sk8_slurmd.so is of another build than spank_k8s.so; no agent runs on this node");
	if (hooks)
		hooks->start();
	return ESPANK_SUCCESS;	/* never slurmd's trouble */
}

extern int slurm_spank_init_post_opt(spank_t spank, int ac, char *argv[])
{
	(void) ac;
	(void) argv;
	sk8_options_known(spank);
	if (spank_context() == S_CTX_REMOTE) {
		sk8_tell_gres(spank);
		sk8_await_container(spank);
	}
	return ESPANK_SUCCESS;
}

extern int slurm_spank_user_init(spank_t spank, int ac, char *argv[])
{
	(void) spank;
	(void) ac;
	(void) argv;
	sk8_remember_folder();
	return ESPANK_SUCCESS;
}

extern int slurm_spank_task_init_privileged(spank_t spank, int ac, char *argv[])
{
	(void) ac;
	(void) argv;
	sk8_enter_container(spank);
	return ESPANK_SUCCESS;
}

extern int slurm_spank_task_init(spank_t spank, int ac, char *argv[])
{
	(void) ac;
	(void) argv;
	sk8_begin_task(spank);
	return ESPANK_SUCCESS;
}

extern int slurm_spank_slurmd_exit(spank_t spank, int ac, char *argv[])
{
	(void) spank;
	(void) ac;
	(void) argv;
	if (hooks)
		hooks->stop();
	return ESPANK_SUCCESS;
}
