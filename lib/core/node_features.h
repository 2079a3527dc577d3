// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Labels of a node in Kubernetes as features in Slurm: `k8s.<key>.<value>`. Pure.
//
// A dot in the key is written twice, all else stands for itself, so the first single dot ends the key: no two
// labels make one feature, and each feature tells its label. What no label may have makes no feature: it would be a
// comma, a space or an operator of --constraint.
#ifndef SK8_CORE_NODE_FEATURES_H
#define SK8_CORE_NODE_FEATURES_H

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/slurm_node.h"

namespace sk8::core {

inline constexpr std::size_t max_features = 64;        // of ours on a node: the first by name
inline constexpr std::size_t max_feature_length = 400; // longer ones are left out
inline constexpr std::string_view feature_prefix = "k8s.";

// Nothing: no label of Kubernetes is like this, or it is too long.
std::optional<std::string> feature_of(std::string_view key, std::string_view value);
// (key, value). Nothing: no label makes this feature.
std::optional<std::pair<std::string, std::string>> label_of(std::string_view feature);

struct LabelFeatures {
	std::vector<std::string> features; // sorted
	std::size_t left_out = 0;          // too many, too long, or no labels
	std::string first_left_out;        // "KEY: why", fit for a terminal
};
// keys: patterns with * and ?, as settings have them.
LabelFeatures features_of(const std::map<std::string, std::string> &labels, const std::vector<std::string> &keys);

// k8s.shared and k8s.exclusive, which no label makes: in them the first single dot is missing. Both at once, whatever the
// node is just now: a job that asks for k8s.exclusive starts there, and waits in the gate until it is (exclusive_nodes.h).
void add_pool_features(std::vector<std::string> &features); // stays sorted

// What Slurm should be told; nothing: it has them. Features that no label with one of these keys could make are an
// administrator's: they stay where they are. pools: those two are ours as well.
std::optional<FeatureChange> feature_change(const SlurmNode &node, const std::vector<std::string> &wanted,
					    const std::vector<std::string> &keys, bool pools = false);

// ... as far as it was saved: what settings do not name any more stays away.
std::optional<FeatureChange> restored_features(const SlurmNode &node, const std::vector<std::string> &saved,
					       const std::vector<std::string> &keys, bool pools);

} // namespace sk8::core

#endif
