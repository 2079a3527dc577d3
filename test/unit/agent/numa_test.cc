// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/numa.h"

#include "test/unit/agent/machine.h"
#include "test/unit/catch.h"

using namespace sk8::agent;
using sk8::core::NumaCores;

namespace {

// Two nodes of two cores with two threads, as Slurm counts them, and one of memory alone.
const CpuTopology four_cores{{{0, 4}, {2, 6}, {1, 5}, {3, 7}}};

void two_nodes(const Machine &m)
{
	m.file("system/node/node0/cpulist", "0,2,4,6");
	m.file("system/node/node1/cpulist", "1,3,5,7");
	m.file("system/node/node2/cpulist", "");
	m.file("system/node/online", "0-2");
}

} // namespace

TEST_CASE("NUMA: Slurm's cores are told by the node that their threads are of, and the roots of PCI Express with them")
{
	const Machine m;
	two_nodes(m);
	m.file("pci0000:00/0000:00:01.0/numa_node", "0");
	m.file("pci0000:00/uevent", "");
	m.file("pci0000:80/0000:80:01.0/numa_node", "1");
	m.file("pci0000:c0/0000:c0:01.0/numa_node", "-1"); // the firmware does not say
	m.file("pci0000:e0/power/control", "auto");        // nothing is behind it
	CHECK(read_numa(m.folder.path, four_cores) == NumaCores{{{0, {0, 1}}, {1, {2, 3}}}, {{"pci0000:00", 0}, {"pci0000:80", 1}}});
}

TEST_CASE("NUMA: nothing is told where the kernel tells of no nodes, or of a core not just one")
{
	const struct {
		const char *what;
		std::vector<CpuSet> cores;
		bool nodes;
	} rows[] = {
		{"a kernel without NUMA", {{0}, {1}}, false},
		{"the machine's cores are not known", {}, true},
		{"threads of one core in two nodes", {{0, 1}}, true},
		{"a core that is in none", {{0}, {8}}, true},
	};
	for (const auto &row : rows) {
		INFO(row.what);
		const Machine m;
		if (row.nodes)
			two_nodes(m);
		CHECK(read_numa(m.folder.path, {row.cores}).cores.empty());
	}
}
