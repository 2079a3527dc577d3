// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Tells spank_k8s.so, in slurmstepd, what device plugins answered for the devices of Slurm's own jobs on this node: of those
// that only Kubernetes knows, which slurmctld's engine names on the job's reservation pod (core::names::step_devices).
// It lets nobody but itself make pods in their namespace, so the name of a pod says whose job it is.
//
// One thread, which may block on files.
#ifndef SK8_AGENT_JOB_DEVICES_H
#define SK8_AGENT_JOB_DEVICES_H

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "lib/agent/device_manager.h"
#include "lib/kube/objects.h"

namespace sk8::agent {

// By job: what its file says (SK8_DEVICE_FOLDER of lib/sk8_container.h).
using DevicesByJob = std::map<std::uint32_t, std::string>;

// Of pods of this node (by uid) in the namespace ns that their kubelet has admitted: before it says so it has written what it gave
// them. Of two runs with one id the later one. Pure.
DevicesByJob job_devices(const std::unordered_map<std::string, kube::PodPtr> &pods, const DeviceManager &manager, const std::string &ns,
			 const std::string &node);

class JobDevices {
public:
	// folder: as made_empty() makes it.
	explicit JobDevices(std::string folder);

	// All that there are. What cannot be written is tried again at the next call.
	void set(const DevicesByJob &jobs);

private:
	std::string file_of(std::uint32_t job) const { return folder_ + "/" + std::to_string(job); }

	const std::string folder_;
	DevicesByJob told_;
};

} // namespace sk8::agent

#endif
