/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
#include "lib/slurm/error_table.h"
#include <errno.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>

enum { RETRY, FATAL };

static const struct {
	int rc;
	int kind;
	const char *text;	/* NULL: Slurm's is good */
} errors[] = {
	/* limits and states that pass by themselves */
	{ EAGAIN, RETRY, "Slurm has as many jobs as MaxJobCount allows" },
	{ ESLURM_ACCOUNTING_POLICY, RETRY, NULL },
	{ ESLURM_CAN_NOT_START_IMMEDIATELY, RETRY, NULL },
	{ ESLURM_DB_CONNECTION, RETRY, NULL },
	{ ESLURM_DB_CONNECTION_INVALID, RETRY, NULL },
	{ ESLURM_DEFER, RETRY, "SchedulerParameters has defer: no job starts at once" },
	{ ESLURM_DEPENDENCY, RETRY, NULL },
	{ ESLURM_FRAGMENTATION, RETRY, "other jobs are completing" },
	{ ESLURM_IN_STANDBY_MODE, RETRY, NULL },
	{ ESLURM_JOB_HELD, RETRY, NULL },
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23,2,0)
	{ ESLURM_JOB_SETTING_DB_INX, RETRY, NULL },
#endif
	{ ESLURM_NODES_BUSY, RETRY, NULL },
	{ ESLURM_NODE_NOT_AVAIL, RETRY, NULL },
	{ ESLURM_NOT_TOP_PRIORITY, RETRY, NULL },
	{ ESLURM_PARTITION_DOWN, RETRY, NULL },
	{ ESLURM_PARTITION_NOT_AVAIL, RETRY, "the partition takes no jobs now" },
	{ ESLURM_QOS_THRES, RETRY, NULL },
	{ ESLURM_RESERVATION_BUSY, RETRY, NULL },
	{ ESLURM_RESERVATION_NOT_USABLE, RETRY, NULL },
	{ ESLURM_SUBMISSIONS_DISABLED, RETRY, NULL },
	/* nobody will ever run it as it is */
	{ ESLURM_ACCESS_DENIED, FATAL, "access denied: the partition takes no jobs of this user, account or QOS, wants a reservation, or has AllocNodes without k8s" },
	{ ESLURM_ALREADY_DONE, FATAL, NULL },
	{ ESLURM_BAD_TASK_COUNT, FATAL, NULL },
	{ ESLURM_BAD_THREAD_PER_CORE, FATAL, NULL },
	{ ESLURM_DEFAULT_PARTITION_NOT_SET, FATAL, "no partition was named and Slurm has no default partition" },
	{ ESLURM_DUPLICATE_GRES, FATAL, NULL },
	{ ESLURM_GROUP_ID_MISSING, FATAL, NULL },
	{ ESLURM_INSUFFICIENT_GRES, FATAL, NULL },
	{ ESLURM_INVALID_ACCOUNT, FATAL, "invalid account or account/partition combination for this user" },
	{ ESLURM_INVALID_CORE_CNT, FATAL, NULL },
	{ ESLURM_INVALID_CPU_COUNT, FATAL, NULL },
	{ ESLURM_INVALID_FEATURE, FATAL, NULL },
	{ ESLURM_INVALID_GRES, FATAL, NULL },
	{ ESLURM_INVALID_GRES_TYPE, FATAL, NULL },
	{ ESLURM_INVALID_JOB_ID, FATAL, NULL },
	{ ESLURM_INVALID_LICENSES, FATAL, NULL },
	{ ESLURM_INVALID_MCS_LABEL, FATAL, NULL },
	{ ESLURM_INVALID_NICE, FATAL, NULL },
	{ ESLURM_INVALID_NODE_COUNT, FATAL, NULL },
	{ ESLURM_INVALID_NODE_NAME, FATAL, NULL },
	{ ESLURM_INVALID_PARTITION_NAME, FATAL, NULL },
	{ ESLURM_INVALID_PREFER, FATAL, NULL },
	{ ESLURM_INVALID_QOS, FATAL, NULL },
	{ ESLURM_INVALID_TASK_MEMORY, FATAL, NULL },
	{ ESLURM_INVALID_TIME_LIMIT, FATAL, NULL },
	{ ESLURM_INVALID_TIME_MIN_LIMIT, FATAL, NULL },
	{ ESLURM_INVALID_TIME_VALUE, FATAL, NULL },
	{ ESLURM_INVALID_TRES, FATAL, NULL },
	{ ESLURM_INVALID_WCKEY, FATAL, NULL },
	{ ESLURM_JOB_FINISHED, FATAL, NULL },
	{ ESLURM_JOB_MISSING_REQUIRED_PARTITION_GROUP, FATAL, NULL },
	{ ESLURM_JOB_MISSING_SIZE_SPECIFICATION, FATAL, NULL },
	{ ESLURM_JOB_NOT_PENDING, FATAL, NULL },
	{ ESLURM_NOT_SUPPORTED, FATAL, NULL },
	{ ESLURM_PARTITION_ASSOC, FATAL, NULL },
	{ ESLURM_REQUESTED_NODES_NOT_IN_PARTITION, FATAL, NULL },
	{ ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, FATAL, "no node of the partition could ever run this: too many CPUs, too much memory, or features or GRES that none has" },
	{ ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE, FATAL, "the partition's limits do not allow this (nodes, time or CPUs)" },
	{ ESLURM_RESERVATION_ACCESS, FATAL, NULL },
	{ ESLURM_RESERVATION_INVALID, FATAL, NULL },
	{ ESLURM_TOO_MANY_REQUESTED_CPUS, FATAL, NULL },
	{ ESLURM_UNSUPPORTED_GRES, FATAL, NULL },
	{ ESLURM_USER_ID_MISSING, FATAL, NULL },
};

static int find(int rc)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].rc == rc)
			return (int) i;
	return -1;
}

bool sk8_error_is_fatal(int rc)
{
	int i = find(rc);

	return (i >= 0) && (errors[i].kind == FATAL);
}

const char *sk8_error_text(int rc)
{
	int i = find(rc);

	return (i >= 0) ? errors[i].text : NULL;
}

void sk8_one_line(char *to, size_t size, const char *from)
{
	size_t n = 0;

	if (!size)
		return;
	for (; *from && (n + 1 < size); from++) {
		unsigned char c = *from;

		if ((c <= ' ') || (c == 0x7f)) {
			if (n && (to[n - 1] != ' '))
				to[n++] = ' ';
		} else
			to[n++] = c;
	}
	/* no half character of UTF-8 where it was cut */
	if ((*from & 0xc0) == 0x80) {
		while (n && ((to[n - 1] & 0xc0) == 0x80))
			n--;
		if (n)
			n--;
	}
	while (n && ((to[n - 1] == ' ') || (to[n - 1] == '.')))
		n--;
	to[n] = '\0';
}
