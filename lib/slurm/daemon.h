/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* daemon.h - what slurmctld and slurmd are to us alike: a log, and the folder of slurm.conf. */
#ifndef SK8_SLURM_DAEMON_H
#define SK8_SLURM_DAEMON_H

#include "lib/slurm/release.h"
#include "lib/sk8_abi.h"

/* Any thread. */
extern void sk8_write_log(enum sk8_log_level level, const char *text);
extern enum sk8_log_level sk8_log_level_now(void);

/* What the variable names, or the file beside slurm.conf. To be freed by xfree(). */
extern char *sk8_config_path(const char *variable, const char *file);

#endif
