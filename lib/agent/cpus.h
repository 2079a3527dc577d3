// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// CPUs as the kernel numbers them, and cores as Slurm does.
#ifndef SK8_AGENT_CPUS_H
#define SK8_AGENT_CPUS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace sk8::agent {

// Sorted, each once. At most max_cpu.
using CpuSet = std::vector<int>;
inline constexpr int max_cpu = 8191; // CONFIG_NR_CPUS is at most 8192

// "0-3,8", the kernel's list format (Documentation/admin-guide/cputopology.rst), white space around it
// allowed; empty: none.
Result<CpuSet> parse_cpu_list(std::string_view text);
std::string cpu_list(const CpuSet &cpus);

CpuSet united(const CpuSet &a, const CpuSet &b);
bool covers(const CpuSet &all, const CpuSet &some);
CpuSet without(const CpuSet &all, const CpuSet &some);

// The cores of this machine in the order in which Slurm counts them (its abstract order: by socket,
// then by core; slurmd builds it with hwloc's logical indexes, src/slurmd/common/xcpuinfo.c), each with
// the CPUs that are its hardware threads.
struct CpuTopology {
	std::vector<CpuSet> cores;

	// The CPUs of these cores. Error: the machine has no such core.
	Result<CpuSet> cpus_of(const std::vector<int> &slurm_cores) const;
};

// folder: /sys/devices/system/cpu. A CPU whose topology is not told is a core by itself. Error:
// nothing tells which CPUs there are. Reads files.
Result<CpuTopology> read_cpu_topology(const std::string &folder);

} // namespace sk8::agent

#endif
