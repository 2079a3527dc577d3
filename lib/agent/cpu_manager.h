// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the kubelet's CPU manager does, of the file that it keeps (pkg/kubelet/cm/cpumanager/state/checkpoint.go,
// cpu_manager_state): with its policy static, pods that ask for whole CPUs and get what they ask for have them alone.
#ifndef SK8_AGENT_CPU_MANAGER_H
#define SK8_AGENT_CPU_MANAGER_H

#include <map>
#include <string>
#include <string_view>

#include "lib/agent/cpus.h"
#include "lib/core/pinned_cores.h"

namespace sk8::agent {

struct CpuManager {
	std::string policy;                // "none", "static"; empty: nothing tells
	std::map<std::string, CpuSet> own; // by uid of the pod: CPUs that are its alone

	bool pins() const { return policy == "static"; }
};

// What makes no sense counts as nothing. Pure.
CpuManager parse_cpu_manager(std::string_view text);

// The same as Slurm's cores; a core of which a pod has one thread is told, too. Pure.
core::PinnedPods pinned_pods(const CpuManager &manager, const CpuTopology &topology);

} // namespace sk8::agent

#endif
