// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Keeps pods that Slurm has not placed off the cores of jobs that have the node to themselves.
//
//	Which pods: all that have a cgroup here and are not pinned.
//	What is undone: what this agent did, or one before it. It is written down before it is done.
//	Nothing is left for the pods: they stay where they are, and that is told.
//
// One thread, which may block: on files, and on slurmctld.
#ifndef SK8_AGENT_CONFINEMENT_H
#define SK8_AGENT_CONFINEMENT_H

#include <map>
#include <optional>
#include <set>
#include <string>

#include "lib/agent/exclusive_cpus.h"
#include "lib/agent/pod_cgroups.h"

namespace sk8::agent {

class Confinement {
public:
	// exclusive: none: nothing is confined, and what was is undone. state_file: the uids of confined pods; in a
	// folder of ours.
	Confinement(std::optional<ExclusiveCpus> exclusive, PodCgroups cgroups, std::string state_file);

	// folders, pinned: by uid. Returns after how long it is to be called again if nothing changes.
	Millis round(const std::map<std::string, std::string> &folders, const std::map<std::string, CpuSet> &pinned);
	// There is nothing to do and will be nothing.
	bool idle() const { return !exclusive_ && confined_.empty(); }

private:
	struct Place {
		std::string folder;
		CpuSet cpus;
	};
	Result<void> save(std::set<std::string> confined);
	bool put(const std::string &uid, const Place &where) const;
	void tell(const std::string &trouble);

	std::optional<ExclusiveCpus> exclusive_;
	const PodCgroups cgroups_;
	const std::string state_file_;
	std::set<std::string> confined_; // uids; as in the file
	std::string trouble_;
};

} // namespace sk8::agent

#endif
