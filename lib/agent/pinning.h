// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Keeps the pods of this node that Slurm has placed on the cores that Slurm gave them.
//
//	Which pods: those that name a job which slurmctld says runs here, for this very pod, and those of Slurm's own jobs in
//	which something runs besides its tasks (--k8s-template). A pod that
//	only claims to have one, or whose job is another's, is left as it is.
//	When: as soon as the kubelet has made the pod's cgroup, and again whenever somebody else has
//	changed it. Nothing is undone while slurmctld cannot be asked, or is, or is not, this agent:
//	what a pod had stays its own.
//
// One thread, which may block: on files, and on slurmctld.
#ifndef SK8_AGENT_PINNING_H
#define SK8_AGENT_PINNING_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/agent/confinement.h"
#include "lib/agent/cpus.h"
#include "lib/agent/kubelet_files.h"
#include "lib/agent/pod_cgroups.h"
#include "lib/agent/slurm_jobs.h"
#include "lib/base/clock.h"

namespace sk8::agent {

// A pod of this node whose object names a job.
struct PlacedPod {
	std::string ns, name, uid;
	std::uint32_t job_id = 0;
	// What else its object says of that job. It is slurmctld that is believed, but asked again when this
	// changes: the job of an adopted pod may have other cores.
	std::string job_run{};
	// Of one of Slurm's own jobs, which is not for a pod: when that was submitted.
	std::optional<std::int64_t> own_job{};

	bool operator==(const PlacedPod &) const = default;
};

class Pinning {
public:
	// clock and jobs must outlive this. kubelet_root_dir: where the kubelet says which policy its CPU manager
	// has. pin: false: what a former agent has pinned gets the CPUs of all pods back.
	Pinning(const Clock &clock, SlurmJobs &jobs, CpuTopology topology, PodCgroups cgroups, std::string kubelet_root_dir,
		bool pin, Confinement confinement);

	// All that there are.
	void set_pods(std::vector<PlacedPod> pods);
	// Does what can be done now. Returns after how long it is to be called again if nothing changes.
	Millis round();

	// By uid, of those whose cpuset is ours: the CPUs on which the pod is, fewer or others than its job's where the kernel does
	// not give it those. Empty: they cannot be told.
	std::map<std::string, CpuSet> pinned() const;

private:
	struct Entry {
		PlacedPod pod;
		CpuSet cpus;         // of its job; empty: not known
		CpuSet has;          // as the kernel gave them last
		bool has_job = false; // slurmctld has said so
		bool done = false;    // they are written into its cgroup
		Millis ask_at{0};
		int failures = 0;
		std::string trouble; // told
	};
	void ask(Entry &e);
	void pin(Entry &e, const std::string &folder);
	void tell(Entry &e, const std::string &trouble);
	void again_later(Entry &e);
	// True: no pod is pinned now.
	bool in_trouble(const std::string &why);

	const Clock &clock_;
	SlurmJobs &jobs_;
	const CpuTopology topology_;
	const PodCgroups cgroups_;
	ReplacedFile cpu_manager_state_;
	const bool pin_;
	Confinement confinement_;
	std::map<std::string, Entry> entries_; // by uid
	std::string trouble_;
	bool kubelet_pins_ = false;
	Millis read_policy_at_{0};
};

} // namespace sk8::agent

#endif
