// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which of Slurm's cores are of which NUMA node of this machine, and which roots of PCI Express are.
#ifndef SK8_AGENT_NUMA_H
#define SK8_AGENT_NUMA_H

#include <string>

#include "lib/agent/cpus.h"
#include "lib/core/numa_cores.h"

namespace sk8::agent {

// folder: /sys/devices. topology: of this machine. Nothing where the kernel tells of no NUMA nodes, or where a core is not wholly
// in one of them. Reads files.
core::NumaCores read_numa(const std::string &folder, const CpuTopology &topology);

} // namespace sk8::agent

#endif
