// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which GRES a node should have in Slurm, by what its kubelet says that pods can have (status.allocatable) and by its
// labels. Pure.
//
// What is in clusters[].resources is what is said there; else these are known by themselves:
//   nvidia.com/gpu            gpu, its type the label nvidia.com/gpu.product in small letters
//   nvidia.com/mig-1g.5gb     gpu:1g.5gb
//   amd.com/gpu               gpu, its type the label amd.com/gpu.product-name, or none
//   gpu.intel.com/i915, xe    gpu:i915, gpu:xe (what else is there are no devices)
//   rdma/hca                  rdma:hca
//   hugepages-2Mi             hugepages:2Mi, in pages
#ifndef SK8_CORE_GRES_IDENTIFICATION_H
#define SK8_CORE_GRES_IDENTIFICATION_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/core/dra_inventory.h"
#include "lib/core/gres.h"
#include "lib/core/numa_cores.h"
#include "lib/core/settings.h"
#include "lib/kube/objects.h"

namespace sk8::core {

// One that a DRA driver tells of. What it does not say is empty.
struct IdentifiedDevice {
	std::uint16_t index = 0; // Slurm's
	std::string name;        // its driver's
	std::string uuid, pci, numa;
	bool well = true;        // not tainted
	std::string root{};      // of PCI Express: "pci0000:80"
	// Of its NUMA node, empty: not known; and all of the sockets that these are of, empty: gres.conf can have none.
	std::vector<std::uint16_t> cores{}, socket_cores{};

	bool operator==(const IdentifiedDevice &) const = default;
};

struct IdentifiedGres {
	std::string kubernetes; // the resources, several with ", " between them: nvidia.com/gpu
	std::string name, type; // type: empty: none
	std::uint64_t count = 0; // 0: the kubelet knows such devices, and none is well
	ResourceSettings::Missing missing = ResourceSettings::Missing::mask; // what Slurm has more
	bool by_driver = false;  // a DRA driver tells which they are, in devices; count is of those that are well
	std::vector<IdentifiedDevice> devices{}; // by index
	std::string file{};      // of these: "/dev/nvidia%d", %d is the index; empty: not known

	bool operator==(const IdentifiedGres &) const = default;
};

struct NodeGres {
	std::vector<IdentifiedGres> gres;  // by name and type, each once
	std::map<std::string, std::set<std::uint16_t>> twins; // by name: indices that several devices have, which nobody gets
	std::vector<std::string> odd_indices; // of these, and of devices of plugins; they are problems, too
	std::vector<std::string> problems; // what is left out or odd, one sentence each, fit for a terminal
};

// What the kubelet says of a node; of what it has no device (any more) 0.
std::map<std::string, std::int64_t> node_devices(const kube::Node &node);

NodeGres identify_gres(const std::map<std::string, std::int64_t> &allocatable, const std::map<std::string, std::string> &labels,
		       const std::vector<ResourceSettings> &settings);

// Adds what DRA drivers tell of this node, as the settings' entries with a deviceClass say.
void add_driver_gres(NodeGres &out, const std::string &node, const DraInventory &inventory, const std::vector<ResourceSettings> &settings);

// What several devices are at once: NodeGres::odd_indices.
void add_odd_indices(NodeGres &out, const std::vector<std::string> &sentences);

// Which cores these devices are near, if the node's agent and Slurm (sockets, cores_per_socket; 0: not known) count as many.
void add_cores(NodeGres &out, const NumaCores &numa, std::uint32_t sockets, std::uint32_t cores_per_socket);

// "/dev/nvidia%d" of this class's devices; empty: which files they are is not known.
std::string device_file_of(const ResourceSettings &device_class);

// How the two sides differ: by type where Slurm has a type of this name, else all that is left of this GRES together.
struct GresDifference {
	std::string kubernetes, name, type; // type: empty: of any
	std::uint64_t wanted = 0;           // by Kubernetes
	std::uint64_t has = 0;              // in Slurm
	ResourceSettings::Missing missing = ResourceSettings::Missing::mask;

	bool operator==(const GresDifference &) const = default;
};
// slurm: the node's GRES. What Kubernetes does not know is no difference.
std::vector<GresDifference> gres_differences(const NodeGres &node, const GresList &slurm);
// What of it Slurm must not give to jobs: devices that are gone, or not well. Those with missing: ignore are none.
GresList missing_gres(const NodeGres &node, const GresList &slurm);
// The same, but of GRES with a deviceClass what was missing before: until drivers are listed nobody knows what they have.
GresList missing_as_before(GresList missing, const GresList &before, const std::vector<ResourceSettings> &settings);

} // namespace sk8::core

#endif
