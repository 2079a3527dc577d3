/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* tres.h - how a release wants tres_per_node written. Calls nothing of Slurm. */
#ifndef SK8_SLURM_TRES_H
#define SK8_SLURM_TRES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "gpu:a100:2,foo:1" and prefix "gres:" give "gres:gpu:a100:2,gres:foo:1". A name
 * that begins with "gres:" or "gres/" already gets this prefix instead. false if
 * it does not fit into size bytes. */
extern bool sk8_tres_text(char *to, size_t size, const char *prefix, const char *tres);

#ifdef __cplusplus
}
#endif

#endif
