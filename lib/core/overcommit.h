// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Where pods and Slurm's jobs together have more than a node has. Slurm gives away nothing that pods have; but where no
// kubelet is asked (nodes.sharing: none, dedicated) a pod may come second, onto what jobs have already. Pure.
#ifndef SK8_CORE_OVERCOMMIT_H
#define SK8_CORE_OVERCOMMIT_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/core/gres.h"
#include "lib/core/mask_index.h"

namespace sk8::core {

// What Slurm's jobs have of a node, and what there is for them.
struct JobsOnNode {
	std::string node;
	std::uint32_t cores = 0, used_cores = 0, threads_per_core = 1;
	std::uint64_t memory_mb = 0, used_memory_mb = 0;
	GresList gres, used_gres; // by name, without devices
};

// So much more than there is.
struct Overcommit {
	std::int64_t milli_cpu = 0; // 1000: one hardware thread
	std::uint64_t memory_mb = 0;
	std::map<std::string, std::uint64_t> gres; // by name

	bool any() const { return milli_cpu > 0 || memory_mb > 0 || !gres.empty(); }
	bool operator==(const Overcommit &) const = default;
};
using Overcommits = std::map<std::string, Overcommit>; // by node, those with any

// Both as they are at one moment: a job's end turns what its pod has into a mask.
Overcommit overcommit(const JobsOnNode &use, const NodeMask &mask);
Overcommits overcommits(const std::vector<JobsOnNode> &nodes, const MaskSnapshot &masks);

// "1.5 CPUs, 512 MiB, gpu:1"
std::string overcommit_text(const Overcommit &over);

} // namespace sk8::core

#endif
