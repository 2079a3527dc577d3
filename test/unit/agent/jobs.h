// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A slurmctld and a slurmd, as far as the agent asks them.
#ifndef SK8_TEST_UNIT_AGENT_JOBS_H
#define SK8_TEST_UNIT_AGENT_JOBS_H

#include <map>

#include "lib/agent/slurm_jobs.h"

struct Jobs final : sk8::agent::SlurmJobs {
	std::map<std::uint32_t, sk8::agent::SlurmJob> known;
	bool answers = true;
	int asked = 0;
	std::set<std::uint32_t> with_steps;

	sk8::Result<std::optional<sk8::agent::SlurmJob>> find(std::uint32_t id) override
	{
		asked++;
		if (!answers)
			return sk8::Error{"slurmctld is away"};
		auto it = known.find(id);
		return it == known.end() ? std::nullopt : std::optional(it->second);
	}
	std::set<std::uint32_t> here() override { return with_steps; }
};

#endif
