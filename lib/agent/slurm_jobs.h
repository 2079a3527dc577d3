// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What slurmctld knows of a pod's job. What is written on the pod is its owner's word: he may change it.
#ifndef SK8_AGENT_SLURM_JOBS_H
#define SK8_AGENT_SLURM_JOBS_H

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/result.h"

namespace sk8::agent {

struct SlurmJob {
	std::string mark; // its admin_comment, see core::PodKey
	bool running = false;
	std::vector<int> cores; // on this node, sorted; empty: it has none here
	bool exclusive = false; // nobody else gets its nodes
	std::int64_t submit_time = 0; // with its id it names one run of it
};

class SlurmJobs {
public:
	virtual ~SlurmJobs() = default;
	// Nothing: there is no such job. Error: slurmctld did not answer. Blocks for as long as slurmctld does.
	virtual Result<std::optional<SlurmJob>> find(std::uint32_t id) = 0;
	// Those that have steps on this node. Reads a folder.
	virtual std::set<std::uint32_t> here() = 0;
};

} // namespace sk8::agent

#endif
