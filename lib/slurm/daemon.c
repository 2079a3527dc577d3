/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* daemon.c - see there */
#include <stdlib.h>
#include <unistd.h>
#include "lib/slurm/daemon.h"

extern void sk8_write_log(enum sk8_log_level level, const char *text)
{
	switch (level) {
	case SK8_LOG_ERROR:
		error("slurm-k8s: %s", text);
		break;
	case SK8_LOG_WARNING:	/* 22.05 has no such level */
		error("slurm-k8s: warning: %s", text);
		break;
	case SK8_LOG_INFO:
		info("slurm-k8s: %s", text);
		break;
	case SK8_LOG_VERBOSE:
		verbose("slurm-k8s: %s", text);
		break;
	case SK8_LOG_DEBUG:
		debug("slurm-k8s: %s", text);
		break;
	}
}

/* "scontrol setdebug" and a reconfigure change it at any time */
extern enum sk8_log_level sk8_log_level_now(void)
{
	int level = get_log_level();

	if (level >= LOG_LEVEL_DEBUG)
		return SK8_LOG_DEBUG;
	return (level >= LOG_LEVEL_VERBOSE) ? SK8_LOG_VERBOSE : SK8_LOG_INFO;
}

extern char *sk8_config_path(const char *variable, const char *file)
{
	const char *conf = getenv(variable), *slash;
	char *path, *other;

	if (conf && conf[0])
		return xstrdup(conf);
	conf = slurm_conf.slurm_conf ? slurm_conf.slurm_conf : "/etc/slurm/slurm.conf";
	slash = strrchr(conf, '/');
	path = xstrdup_printf("%.*s%s", slash ? (int) (slash - conf) + 1 : 0, conf, file);
	other = xstrdup_printf("/etc/slurm/%s", file);	/* a slurmd without slurm.conf keeps what it got in its spool */
	if (access(path, F_OK) && !access(other, F_OK)) {
		xfree(path);
		return other;
	}
	xfree(other);
	return path;
}
