// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Tells spank_k8s.so, in slurmstepd, where the containers of Slurm's jobs on this node are: a file for each
// (lib/sk8_container.h). slurmctld's engine lets nobody but itself make pods in their namespace, so the name of a
// pod says whose job it is.
//
// One thread, which may block on files.
#ifndef SK8_AGENT_JOB_CONTAINERS_H
#define SK8_AGENT_JOB_CONTAINERS_H

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "lib/agent/pod_cgroups.h"
#include "lib/base/clock.h"
#include "lib/kube/objects.h"

namespace sk8::agent {

struct JobContainer {
	std::string pod_uid, id; // id: by the runtime
	std::int64_t submit_time = 0; // of the job

	bool operator==(const JobContainer &) const = default;
};

// Those that run, by job id, of pods of this node (by uid) in the namespace ns. Of two runs with one id, which a
// slurmctld that has lost its state may give, the later one. Pure.
std::map<std::uint32_t, JobContainer> job_containers(const std::unordered_map<std::string, kube::PodPtr> &pods,
						     const std::string &ns, const std::string &node);

class JobContainers {
public:
	// folder: made, and what a former agent has left in it removed.
	JobContainers(PodCgroups cgroups, std::string folder);

	// All that there are.
	void set(std::map<std::uint32_t, JobContainer> containers);
	// Does what can be done now. Returns after how long it is to be called again if nothing changes.
	Millis round();

private:
	struct Entry {
		JobContainer container;
		bool told = false;
		int failures = 0;
	};
	std::string file_of(std::uint32_t job) const { return folder_ + "/" + std::to_string(job); }
	bool tell(std::uint32_t job, const JobContainer &container, const std::map<std::string, std::string> &pods) const;
	Millis failed(std::uint32_t job, Entry &e) const;

	const PodCgroups cgroups_;
	const std::string folder_;
	std::map<std::uint32_t, Entry> entries_;
};

} // namespace sk8::agent

#endif
