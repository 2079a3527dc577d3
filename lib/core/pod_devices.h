// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which devices a node's kubelet has given to pods, where a device plugin hands them out. The agent there says it in an
// annotation of the node, and the engine masks exactly these for such a pod instead of as many as it requests.
//
//	slurm-k8s.io/devices: {"ids":{"nvidia.com/gpu":["GPU-1f..","GPU-8d.."]},
//	                       "pods":{"<uid of the pod>":{"nvidia.com/gpu":[1]}},
//	                       "ill":{"nvidia.com/gpu":[0]}}
//
// ids are all that the plugin has, in the order in which the agent believes that Slurm has them; a pod's devices are positions
// there, and so are those that are not well. Settings (resources[].devices) may know better which of Slurm's indices an ID is.
// No ids of a resource: the agent does not know all of them yet, so that nobody knows which ones a pod has.
#ifndef SK8_CORE_POD_DEVICES_H
#define SK8_CORE_POD_DEVICES_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/base/result.h"
#include "lib/core/agent_word.h"
#include "lib/core/gres.h"
#include "lib/kube/objects.h"

namespace sk8::core {

using DevicesByResource = std::map<std::string, std::vector<std::uint16_t>>; // sorted, each once

struct NodeDevices {
	std::map<std::string, std::vector<std::string>> ids; // by resource
	std::map<std::string, DevicesByResource> pods;       // by uid
	DevicesByResource ill{};                             // that their plugin calls unhealthy, or says nothing of any more

	bool operator==(const NodeDevices &) const = default;
};

inline constexpr std::size_t max_device_resources = 32;
inline constexpr std::size_t max_devices = 512; // of one resource: eight GPUs with 64 shares each
inline constexpr std::size_t max_device_id = 128;

// The annotation's text; empty: there is nothing to tell. Pure.
std::string devices_text(const NodeDevices &devices);
// Error: it is none of ours; whoever may write annotations of nodes may write anything. Pure.
Result<NodeDevices> parse_devices(std::string_view text);

// What nodes say, in Slurm's indices. One thread.
class PodDevices {
public:
	explicit PodDevices(std::vector<ResourceSettings> resources); // ClusterSettings::resources

	// What this node says is another thing now, or means another. Of a text that is none of ours nothing counts, and it is
	// told once.
	bool read(const kube::Node &node);
	// What two devices of this node seem to be in Slurm, one sentence each, fit for a terminal: which one is which is known of none of them.
	const std::vector<std::string> &problems(const std::string &node) const;
	// Does this node say which pods have devices of this resource?
	bool tells(const std::string &node, const std::string &resource) const;
	// Slurm's indices of those that this pod has, as far as they are known; sorted.
	std::vector<std::uint16_t> find(const std::string &node, const std::string &uid, const std::string &resource) const;
	// The uid of a pod but this one that has this device of a GRES (Slurm's name and index) there; empty: none, as far as is known.
	std::string find_holder(const std::string &node, const std::string &gres, std::uint16_t device, const std::string &but) const;
	// What these extended resources of a pod there are in Slurm, as core::gres_of(), and which devices as far as they are known.
	GresList gres_of(const std::string &node, const std::string &uid, const std::map<std::string, std::int64_t> &extended) const;
	// The same of a pod of which only this is known: its devices are those that the node says, if they are as many.
	GresList with_devices(const std::string &node, const std::string &uid, GresList gres) const;
	// What a node's kubelet has less than Slurm (missing_gres()): which ones that is, as far as the node says.
	GresList name_ill(const std::string &node, GresList missing) const;

private:
	using SlurmIndices = std::map<std::string, std::vector<std::optional<std::uint16_t>>>; // by resource and position
	struct OfNode {
		AgentWord word;
		std::map<std::string, std::string> labels;
		SlurmIndices indices;
		std::map<std::string, DevicesByResource> pods;
		DevicesByResource ill;
		std::vector<std::string> problems;
	};
	std::vector<std::string> leave_out_twins(SlurmIndices &indices, const NodeDevices &devices) const;
	std::vector<std::uint16_t> in_slurm(const OfNode &of, const DevicesByResource &devices, const std::string &resource) const;
	std::vector<std::optional<std::uint16_t>> indices_of(const kube::Node &node, const std::string &resource,
							     const std::vector<std::string> &ids) const;

	const std::vector<ResourceSettings> resources_;
	std::unordered_map<std::string, OfNode> nodes_; // those that say something
};

} // namespace sk8::core

#endif
