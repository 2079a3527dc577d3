// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Tells spank_k8s.so, in slurmstepd, where the containers of Slurm's jobs on this node are: a file for each
// (lib/sk8_container.h), the job's own last. slurmctld's engine lets nobody but itself make pods in their namespace, so the name of a
// pod says whose job it is.
//
// One thread, which may block on files.
#ifndef SK8_AGENT_JOB_CONTAINERS_H
#define SK8_AGENT_JOB_CONTAINERS_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "lib/agent/pod_cgroups.h"
#include "lib/base/clock.h"
#include "lib/core/job.h"
#include "lib/kube/objects.h"

namespace sk8::agent {

struct JobContainer {
	std::string pod_uid, id; // id: by the runtime

	bool operator==(const JobContainer &) const = default;
};
// Of which job; name: empty for the one in which its tasks run, else one that its template has besides.
using ContainerKey = std::pair<std::uint32_t, std::string>;
using ContainersByKey = std::map<ContainerKey, JobContainer>;

// The job of Slurm's own that has a container in this pod of this node; nothing: none. Pure.
std::optional<core::JobRef> job_with_container(const kube::Pod &pod, const std::string &ns, const std::string &node);

// Those that run, of pods of this node (by uid) in the namespace ns. Of two runs with one id, which a slurmctld that
// has lost its state may give, the later one. Pure.
ContainersByKey job_containers(const std::unordered_map<std::string, kube::PodPtr> &pods, const std::string &ns,
			       const std::string &node);

class JobContainers {
public:
	// folder: made, and what a former agent has left in it removed.
	JobContainers(PodCgroups cgroups, std::string folder);

	// All that there are.
	void set(ContainersByKey containers);
	// For the tasks of jobs that have a ServiceAccount (job_kubeconfig.h). It is there before their containers are told of.
	void set_kubeconfig(const std::string &text);
	// Does what can be done now. Returns after how long it is to be called again if nothing changes.
	Millis round();

private:
	struct Entry {
		JobContainer container;
		bool told = false;
		int failures = 0;
	};
	std::string file_of(const ContainerKey &key) const;
	bool tell(const ContainerKey &key, const JobContainer &container, const std::map<std::string, std::string> &pods) const;
	static Millis failed(const ContainerKey &key, Entry &e);

	const PodCgroups cgroups_;
	const std::string folder_;
	std::map<ContainerKey, Entry> entries_;
	std::string kubeconfig_; // the last one that was written
};

} // namespace sk8::agent

#endif
