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

/* How much of room, which has twice as much, does the function that clears it clear? */
static size_t cleared(unsigned char *room, size_t size, void (*clear)(void *p))
{
	const unsigned char untouched = 0xa5;

	memset(room, untouched, size);
	clear(room);
	while (size && (room[size - 1] == untouched))
		size--;
	return size;
}

static void clear_desc(void *p)
{
	slurm_init_job_desc_msg(p);
}

static void clear_node_update(void *p)
{
	slurm_init_update_node_msg(p);
}

static bool is_cleared(size_t size, void (*clear)(void *p))
{
	unsigned char *room = xmalloc(2 * size);
	const size_t found = cleared(room, 2 * size, clear);

	xfree(room);
	return found == size;
}

extern bool sk8_desc_fits(void)
{
	return is_cleared(sizeof(job_desc_msg_t), clear_desc);
}

extern bool sk8_node_update_fits(void)
{
	return is_cleared(sizeof(update_node_msg_t), clear_node_update);
}
