// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How a pod's end becomes its job's end: state, exit code, and a comment for
// sacct. Pure.
#ifndef SK8_CORE_POD_END_H
#define SK8_CORE_POD_END_H

#include <cstdint>
#include <string>

#include "lib/core/lifecycle.h"

namespace sk8::core {

struct JobEnd {
	sk8_job_state state = SK8_JOB_CANCELLED;
	std::uint32_t exit_code = 0; // wait status: 7 << 8 is exit 7, 9 is signal 9
	std::string comment;
	std::string node = {}; // where the pod ran: a job that is still pending starts there first, or is not ended
};

// Is somebody deleting it while, as far as the kubelet has told, its containers run?
bool deleted_alive(const kube::Pod &pod);

// When somebody asked for that, seconds since 1970.
std::int64_t deletion_asked_at(const kube::Pod &pod);

// Did a container of it end without a kubelet or a runtime that saw how? That is what they say after
// their host has started again.
bool ended_with_its_node(const kube::Pod &pod);

// refusal: why the pod is refused, if it is. deleted_alive_at: deletion_asked_at() of a
// former version of it that was deleted_alive(), or 0. It decides what times of one
// second cannot tell, and is there when the kubelet's last delete overwrote the time.
JobEnd end_of_pod(const kube::Pod *pod, PodState state, const std::string &refusal,
		  std::int64_t deleted_alive_at);
// The same while Slurm preempts the job: that is why its pod was deleted, or is never bound.
JobEnd end_of_preempted(JobEnd end, PodState state);

} // namespace sk8::core

#endif
