/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* locks.c - slurmctld's locks, as our Slurm thread takes them */
#include "lib/slurm/slurmctld.h"

/* those of the RPC handlers that create and complete jobs */
static const slurmctld_lock_t write_locks = {
	.conf = READ_LOCK, .job = WRITE_LOCK, .node = WRITE_LOCK,
	.part = READ_LOCK, .fed = READ_LOCK,
};

static const slurmctld_lock_t read_locks = {
	.job = READ_LOCK, .node = READ_LOCK, .part = READ_LOCK,
};

extern void sk8_lock(bool write)
{
	lock_slurmctld(write ? write_locks : read_locks);
}

extern void sk8_unlock(bool write, bool changed, bool masks)
{
	const bool nodes = write && sk8_nodes_changed();

	if (write)
		sk8_features_done();
	/* else clients are told that nothing changed and keep old numbers, and backfill has no turn */
	if (write && masks)
		last_node_update = time(NULL);
	unlock_slurmctld(write ? write_locks : read_locks);

	if (nodes)
		sk8_save_nodes();
	/*
	 * A job's end wakes the scheduler when its last epilog is done, but a
	 * mask that went away wakes nobody, and what the mask held is free now.
	 */
	if (changed) {
		schedule_job_save();
		queue_job_scheduler();
	}
}
