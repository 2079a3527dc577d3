// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/cpus.h"

#include <set>

#include "test/unit/agent/machine.h"
#include "test/unit/catch.h"

using namespace sk8::agent;

TEST_CASE("CPUs: lists as the kernel writes them")
{
	const struct {
		const char *text;
		CpuSet cpus;
		const char *again;
	} rows[] = {
		{"", {}, ""},
		{"\n", {}, ""},
		{"0", {0}, "0"},
		{"0-3\n", {0, 1, 2, 3}, "0-3"},
		{"8,0-1", {0, 1, 8}, "0-1,8"},
		{"0-2,1-3,3", {0, 1, 2, 3}, "0-3"},
		{"0,1,3,4", {0, 1, 3, 4}, "0-1,3-4"},
		{"8191", {8191}, "8191"},
	};
	for (const auto &row : rows) {
		INFO(row.text);
		const auto cpus = parse_cpu_list(row.text);
		REQUIRE(cpus);
		CHECK(*cpus == row.cpus);
		CHECK(cpu_list(*cpus) == row.again);
	}
}

TEST_CASE("CPUs: what is no list")
{
	for (const char *text : {"a", "-1", "1-", "3-1", "1,,2", "8192", "0-99999999999", "1 2", "0x1", ","}) {
		INFO(text);
		CHECK_FALSE(parse_cpu_list(text));
	}
}

TEST_CASE("CPUs: Slurm's cores are counted by socket and core, whatever numbers their threads have")
{
	const Machine m;
	m.file("present", "0-7");
	// two sockets of two cores with two threads; the kernel counts first threads first, and sockets in turn
	for (int cpu = 0; cpu < 8; cpu++)
		m.cpu(cpu, cpu % 2, cpu / 2 % 2 * 4);
	const auto topology = read_cpu_topology(m.folder.path);
	REQUIRE(topology);
	CHECK(topology->cores == std::vector<CpuSet>{{0, 4}, {2, 6}, {1, 5}, {3, 7}});
	CHECK(*topology->cpus_of({0, 3}) == CpuSet{0, 3, 4, 7});
	CHECK(topology->cpus_of({})->empty());
	CHECK(topology->cpus_of({4}).error().message.find("core 4 is none of the 4") != std::string::npos);
	CHECK_FALSE(topology->cpus_of({-1}));
}

TEST_CASE("CPUs: cores of a NUMA node, and of a cache, come together, as hwloc has them and so slurmd")
{
	const Machine m;
	// a socket of ten cores in two halves (Sub-NUMA Clustering of a Xeon Gold)
	m.file("online", "0-9");
	const std::set<int> first_half{0, 1, 2, 5, 6};
	const bool by_cache = GENERATE(false, true);
	for (int cpu = 0; cpu < 10; cpu++) {
		m.cpu(cpu, 0, cpu);
		const std::string at = "cpu" + std::to_string(cpu);
		const bool first = first_half.contains(cpu);
		if (by_cache)
			m.file(at + "/cache/index3/shared_cpu_list", first ? "0-2,5-6" : "3-4,7-9");
		else
			m.file(at + "/node" + (first ? "0" : "1") + "/cpulist", "");
	}
	CHECK(read_cpu_topology(m.folder.path)->cores == std::vector<CpuSet>{{0}, {1}, {2}, {5}, {6}, {3}, {4}, {7}, {8}, {9}});
}

TEST_CASE("CPUs: names of cores may repeat in a socket, and a CPU that is offline is none")
{
	const Machine m;
	m.file("present", "0-7");
	m.file("online", "0,2-7");
	for (int cpu = 0; cpu < 8; cpu++) {
		m.cpu(cpu, cpu / 4, cpu % 2);
		m.file("cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", std::to_string(cpu));
	}
	CHECK(read_cpu_topology(m.folder.path)->cores == std::vector<CpuSet>{{0}, {2}, {3}, {4}, {5}, {6}, {7}});
}

TEST_CASE("CPUs: one whose topology is not told is a core by itself")
{
	const Machine m;
	m.file("present", "0-2");
	CHECK(read_cpu_topology(m.folder.path)->cores == std::vector<CpuSet>{{0}, {1}, {2}});
	m.cpu(1, 0, 7);
	m.cpu(2, 0, 7);
	CHECK(read_cpu_topology(m.folder.path)->cores == std::vector<CpuSet>{{0}, {1, 2}});
	CHECK_FALSE(read_cpu_topology(m.folder.path + "/nowhere"));
}
