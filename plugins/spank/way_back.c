/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* way_back.c - see there */
#ifndef _GNU_SOURCE
# define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <slurm/spank.h>
#include "plugins/spank/namespaces.h"
#include "plugins/spank/way_back.h"

static struct sk8_namespaces of_node = { { -1, -1, -1 } };

static bool set_capabilities(const struct __user_cap_data_struct *data)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return !syscall(SYS_capset, &header, data);
}

/* Namespaces are entered with these two. */
static bool raise_capabilities(void)
{
	const __u32 needed = (1U << CAP_SYS_ADMIN) | (1U << CAP_SYS_CHROOT);	/* both below 32 */
	const struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { .effective = needed, .permitted = needed } };

	return set_capabilities(data);
}

static bool drop_capabilities(void)
{
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	/* a job of root's has what root has; of all others no program would get any, but what is gone need not be trusted */
	return !geteuid() || set_capabilities(none);
}

extern bool sk8_keep_way_back(void)
{
	if (sk8_open_namespaces(getpid(), true, true, &of_node) && !prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) &&
	    !prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
		return true;
	slurm_error("slurm-k8s: no way back from the job's container for TaskProlog: %s", strerror(errno));
	return false;
}

extern bool sk8_go_back(void)
{
	return (!geteuid() || raise_capabilities()) && sk8_join_namespaces(&of_node) && drop_capabilities();
}

extern bool sk8_close_way_back(void)
{
	sk8_close_namespaces(&of_node);
	return !prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) && drop_capabilities();
}
