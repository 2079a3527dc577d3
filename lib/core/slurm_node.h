// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A node as Slurm has it, and what may be changed of it.
#ifndef SK8_CORE_SLURM_NODE_H
#define SK8_CORE_SLURM_NODE_H

#include <cstdint>
#include <string>

#include "lib/core/gres.h"
#include "lib/sk8_abi.h"

namespace sk8::core {

struct SlurmNode {
	std::string name;
	std::uint32_t threads_per_core = 1;
	// Why Slurm gives it no job; see struct sk8_node.
	bool drain = false, down = false, fail = false, maint = false;
	bool asleep = false; // power saving
	std::string reason;
	std::uint32_t reason_uid = SK8_NO_UID;
	std::uint32_t jobs = 0; // that run or end there
	std::string features, active_features; // comma lists
	GresList gres{}; // by name and type, without devices; in Slurm's order, by which it counts devices
	std::uint32_t sockets = 0, cores_per_socket = 0; // 0: not known

	bool operator==(const SlurmNode &) const = default;
};

// See struct sk8_node_change.
struct NodeChange {
	std::string node;
	sk8_node_action action = SK8_NODE_DRAIN;
	std::string reason, expected;
};

// See struct sk8_feature_change.
struct FeatureChange {
	std::string node;
	std::string expected, expected_active;
	std::string features, active;

	bool operator==(const FeatureChange &) const = default;
};

} // namespace sk8::core

#endif
