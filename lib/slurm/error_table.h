/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * error_table.h - what Slurm's error numbers mean for a job that could not be made.
 * Nothing here calls Slurm: it is tested alone.
 */
#ifndef SK8_SLURM_ERROR_TABLE_H
#define SK8_SLURM_ERROR_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No point in trying the same again: the request or the configuration must change.
 * Numbers that nobody knows (site plugins have their own) are worth another try. */
extern bool sk8_error_is_fatal(int rc);

/* Our words where Slurm's own (slurm_strerror) do not help, else NULL. */
extern const char *sk8_error_text(int rc);

/* One line of at most size - 1 bytes: line breaks and control characters become
 * single blanks, blanks and full stops at the end go. */
extern void sk8_one_line(char *to, size_t size, const char *from);

#ifdef __cplusplus
}
#endif

#endif
