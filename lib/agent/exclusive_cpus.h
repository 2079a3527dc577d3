// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The CPUs of Slurm's jobs that have this node to themselves, as long as they have steps here.
//
// One thread, which may block: on slurmctld, once for each job.
#ifndef SK8_AGENT_EXCLUSIVE_CPUS_H
#define SK8_AGENT_EXCLUSIVE_CPUS_H

#include <cstdint>
#include <map>

#include "lib/agent/cpus.h"
#include "lib/agent/slurm_jobs.h"
#include "lib/base/clock.h"

namespace sk8::agent {

class ExclusiveCpus {
public:
	// All must outlive this.
	ExclusiveCpus(const Clock &clock, SlurmJobs &jobs, const CpuTopology &topology)
		: clock_(clock), jobs_(jobs), topology_(topology)
	{
	}

	// Those of now. A job that slurmctld has not told of yet has none.
	CpuSet look();

private:
	struct Job {
		bool known = false; // slurmctld has said whether it has them
		CpuSet cpus;
		Millis ask_at{0};
		int failures = 0;
	};
	void ask(std::uint32_t id, Job &job);
	void ask_later(Job &job);

	const Clock &clock_;
	SlurmJobs &jobs_;
	const CpuTopology &topology_;
	std::map<std::uint32_t, Job> here_;
};

} // namespace sk8::agent

#endif
