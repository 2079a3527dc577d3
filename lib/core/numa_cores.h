// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which of a node's cores are near which of its devices: those of the same NUMA node. The agent there knows which of the kernel's
// CPUs Slurm's cores are, and says it in an annotation of the node.
//
//	slurm-k8s.io/numa: {"cores":{"0":[0,1,2,3],"1":[4,5,6,7]},"pci":{"pci0000:00":0,"pci0000:80":1}}
//
// cores: by NUMA node, in Slurm's abstract indices; each of the machine's once. pci: the NUMA nodes of the roots of PCI Express,
// for drivers that tell a device's root and not its NUMA node. Pure.
#ifndef SK8_CORE_NUMA_CORES_H
#define SK8_CORE_NUMA_CORES_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace sk8::core {

struct NumaCores {
	std::map<std::uint16_t, std::vector<std::uint16_t>> cores; // by NUMA node; sorted, each once
	std::map<std::string, std::uint16_t> roots{};              // "pci0000:80": its NUMA node

	std::size_t core_count() const;

	bool operator==(const NumaCores &) const = default;
};

inline constexpr std::size_t max_numa_nodes = 1024; // MAX_NUMNODES of the kernel
inline constexpr std::size_t max_pci_roots = 512;
inline constexpr std::size_t max_pci_root = 16; // bytes of a name

// The annotation's text; empty: nothing is known.
std::string numa_text(const NumaCores &numa);
// Error: it is none of ours; whoever may write annotations of nodes may write anything.
Result<NumaCores> parse_numa(std::string_view text);

// All cores of the sockets that have one of these, sorted. cores_per_socket: at least 1.
std::vector<std::uint16_t> whole_sockets(const std::vector<std::uint16_t> &cores, std::uint32_t cores_per_socket);

} // namespace sk8::core

#endif
