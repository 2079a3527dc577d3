/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* module_path.h - where a plugin of ours stands, and where sk8_slurmctld.so does as seen from there. */
#ifndef SK8_SLURM_MODULE_PATH_H
#define SK8_SLURM_MODULE_PATH_H

#include "lib/slurm/release.h"
#include <dlfcn.h>
#include <string.h>

/* as installed, or beside the plugins as in a build tree */
static const char *const sk8_module_places[] = { "../sk8_slurmctld.so", "sk8_slurmctld.so" };
#define SK8_MODULE_PLACES (sizeof(sk8_module_places) / sizeof(sk8_module_places[0]))

/* The folder of the file that has this symbol; NULL: no file has it. To be freed by xfree(). */
static inline char *sk8_folder_of(const void *symbol)
{
	char *folder, *slash;
	Dl_info about;

	if (!dladdr(symbol, &about))
		return NULL;
	folder = xstrdup(about.dli_fname);
	if ((slash = strrchr(folder, '/')))
		*slash = '\0';
	return folder;
}

#endif
