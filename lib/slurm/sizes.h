/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * sizes.h - is a struct of the running Slurm as long as in our headers? All our
 * plugins ask before they look into one. A field more or less anywhere in it shows,
 * also behind the last one that we know of, and nothing has to be read through a
 * pointer that may be none.
 *
 * No lock, no I/O; from any thread.
 */
#ifndef SK8_SLURM_SIZES_H
#define SK8_SLURM_SIZES_H

#include "lib/slurm/release.h"

/* p: not NULL, from Slurm's xmalloc(), which notes the size of each piece before it */
extern bool sk8_is_sized(const void *p, size_t size);

/* symbol: a variable of libslurmfull or of the program. True also if its size is not known. */
extern bool sk8_symbol_is_sized(const void *symbol, size_t size);

/* slurm_conf: the one struct that each process with Slurm has */
extern bool sk8_conf_fits(void);

/* job_desc_msg_t: asked of the function that clears one */
extern bool sk8_desc_fits(void);

/* update_node_msg_t: the same */
extern bool sk8_node_update_fits(void);

#endif
