/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/*
 * submit_jobs COUNT CPUS MEMORY_MB - what COUNT calls of
 *	sbatch --cpus-per-task=CPUS --mem=MEMORY_MB --wrap=true
 * send to slurmctld, from one process: 10,000 processes would measure themselves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

static int submit(int number, int cpus, int memory_mb)
{
	char name[32], *environment[] = { "PATH=/usr/bin:/bin", NULL };
	submit_response_msg_t *answer = NULL;
	job_desc_msg_t job;
	int rc;

	slurm_init_job_desc_msg(&job);
	snprintf(name, sizeof(name), "job-%d", number);
	job.name = name;
	job.user_id = 1;
	job.group_id = 1;
	job.min_nodes = job.max_nodes = 1;
	job.num_tasks = 1;
	job.min_cpus = job.cpus_per_task = cpus;
	job.pn_min_memory = memory_mb;
	job.script = "#!/bin/sh\ntrue\n";
	job.work_dir = "/";
	job.std_out = job.std_err = "/dev/null";
	job.environment = environment;
	job.env_size = 1;
	rc = slurm_submit_batch_job(&job, &answer);
	if (rc)
		fprintf(stderr, "submit_jobs: job %d: %s\n", number, slurm_strerror(errno));
	else
		slurm_free_submit_response_response_msg(answer);
	return rc;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: submit_jobs COUNT CPUS MEMORY_MB\n");
		return 2;
	}
	slurm_init(NULL);
	for (int i = 1; i <= atoi(argv[1]); i++)
		if (submit(i, atoi(argv[2]), atoi(argv[3])))
			return 1;
	slurm_fini();
	return 0;
}
