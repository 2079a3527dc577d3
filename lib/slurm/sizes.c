/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* sizes.c - is a struct of the running Slurm as long as in our headers? */
#include "lib/slurm/sizes.h"
#include <dlfcn.h>
#include <link.h>
#include <string.h>

extern bool sk8_is_sized(const void *p, size_t size)
{
	return xsize((void *) p) == size;
}

extern bool sk8_symbol_is_sized(const void *symbol, size_t size)
{
	const ElfW(Sym) *found = NULL;
	Dl_info info;

	if (!dladdr1(symbol, &info, (void **) &found, RTLD_DL_SYMENT) || !found ||
	    (info.dli_saddr != symbol))
		return true;
	return found->st_size == size;
}

extern bool sk8_conf_fits(void)
{
	return sk8_symbol_is_sized(&slurm_conf, sizeof(slurm_conf));
}

extern bool sk8_desc_fits(void)
{
	const unsigned char untouched = 0xa5;
	size_t size = 2 * sizeof(job_desc_msg_t);
	unsigned char *room = xmalloc(size);

	memset(room, untouched, size);
	slurm_init_job_desc_msg((job_desc_msg_t *) room);
	while (size && (room[size - 1] == untouched))
		size--;
	xfree(room);
	return size == sizeof(job_desc_msg_t);
}
