// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A pod that somebody else placed, as far as it takes room on a node: there may be
// a hundred times as many of them as of pods for Slurm, so little is kept of each.
#ifndef SK8_CORE_FOREIGN_POD_H
#define SK8_CORE_FOREIGN_POD_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/gres.h"
#include "lib/core/job_container.h"
#include "lib/kube/objects.h"
#include "lib/kube/resize.h"

namespace sk8::core {

// More of one that says by its label that small jobs of Slurm's own share it.
struct SharedPod {
	kube::Resize resize;
	std::string jobs; // its annotation
};

// What of a pod running jobs of Slurm's own have already, so that it is not masked: all (but these devices) or so much.
struct Cover {
	bool whole = false;
	GresList beyond = {};
	std::int64_t milli_cpu = 0;
	std::uint64_t memory_mb = 0;
};

struct ForeignPod {
	kube::Meta meta; // without labels, annotations and finalizers
	std::string node_name;
	// What Kubernetes counts for it there, see kube::Pod::request. 1000 = one hardware thread.
	std::int64_t milli_cpu = 0;
	std::int64_t memory_bytes = 0;
	std::map<std::string, std::int64_t> extended; // those with a domain, as nvidia.com/gpu
	std::vector<kube::PodResourceClaim> resource_claims;
	std::vector<kube::HostPort> host_ports;
	std::int64_t storage_bytes = 0;  // ephemeral-storage
	std::int64_t grace_seconds = 30; // from its deletion to SIGKILL, 0 to kube::max_grace_seconds
	std::string phase;
	std::string reason;              // of the phase: OutOfcpu, Evicted ...
	kube::Disruption disruption = kube::Disruption::none;
	bool admitted = false;           // its kubelet has taken it, and it has not ended
	bool over = false;               // kubelet_reports_over()
	// Its kubelet may have set aside what was requested before, be that more.
	bool unheard = false;
	// Only the image of a static pod in the API (annotation kubernetes.io/config.mirror): the
	// kubelet makes and removes it as it likes, whatever the static pod does.
	bool mirror = false;
	// Belongs to the node, whatever is scheduled: a DaemonSet's or a static pod.
	bool overhead = false;
	bool controlled = false; // somebody makes it anew elsewhere when it is evicted
	std::shared_ptr<const SharedPod> shared; // most have none
	std::shared_ptr<const JobContainerState> container; // of a job's; most have none

	// Nothing of it starts any more. Unlike over, processes of it may be left: the phase is anybody's word.
	bool ended() const { return over || phase == "Failed" || phase == "Succeeded"; }
};
using ForeignPodPtr = std::shared_ptr<const ForeignPod>;

// Only the image of a static pod in the API.
inline bool is_mirror(const kube::Pod &pod)
{
	return pod.meta.annotations.contains("kubernetes.io/config.mirror");
}
// Errors as decode_pod()'s. Pure, any thread.
Result<ForeignPodPtr> decode_foreign_pod(const Json &object);
// What is kept of a pod. Pure, any thread.
ForeignPodPtr foreign_pod_of(const kube::Pod &pod);

} // namespace sk8::core

#endif
