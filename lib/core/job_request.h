// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A pod as a request for a placeholder job, or the sentence that says why there
// can be none. Pure.
#ifndef SK8_CORE_JOB_REQUEST_H
#define SK8_CORE_JOB_REQUEST_H

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/gres.h"
#include "lib/core/identity.h"
#include "lib/core/job.h"
#include "lib/core/pod_key.h"

namespace sk8::core {

struct JobRequest {
	PodKey key;
	std::string job_name;
	Identity identity;
	std::string wckey, comment, features;
	std::uint32_t cpus = 1;      // hardware threads; Slurm rounds up to whole cores
	std::uint64_t memory_mb = 0; // 0: the partition's default
	GresList gres;
	// Of an adopted pod, each named: what it has by its claims. Its job gets just these as it starts, if no other one has them.
	GresList devices;
	std::uint32_t time_limit_minutes = 0;
	std::optional<std::int64_t> nice;
	Age age; // of the job in whose place it is made
	std::string excluded_nodes; // see our_excluded_nodes()
	std::string required_node;  // adoption: there and now, or not at all
};

// MiB, and hardware threads, rounded up: Slurm counts no less. Anything; what is not positive is 0.
std::uint64_t whole_mib(std::int64_t bytes);
std::uint32_t whole_cpus(std::int64_t milli);

// Nothing of the cluster's state decides here, only the pod and the settings, so a
// refusal stands until one of the two changes.
Result<JobRequest> make_request(const PodKey &key, const kube::Pod &pod,
				const ClusterSettings &settings, const UserLookup &lookup);

} // namespace sk8::core

#endif
