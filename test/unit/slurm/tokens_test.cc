// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// One row for each way to ask for CPUs and memory: what clients put into a request, and what it makes.
#include <string>

#include "lib/slurm/tokens.h"
#include "test/unit/catch.h"

namespace {

std::string text(const sk8_tokens &tokens)
{
	static const char *const per[] = {"unknown", " a node", " a task"};
	return tokens.per == SK8_PER_NONE ? per[0] : std::to_string(tokens.count) + per[tokens.per];
}

std::uint64_t count(const char *tres, const char *gres)
{
	std::uint64_t n = 0;
	return sk8_names_gres(tres, gres, &n) ? n : 1'000'000'000;
}
constexpr std::uint64_t not_named = 1'000'000'000;

std::string objection(const sk8_ask &ask)
{
	char why[256] = "";
	return sk8_tokens_agree(&ask, why, sizeof(why)) ? "" : why;
}

} // namespace

TEST_CASE("a list of GRES names one with a type or without")
{
	for (const char *without : {"gres:k8s", "gres/k8s=2", "gres:k8s:2", "k8s:1k", "gres:gpu:1,gres:k8s:1", "gres:k8s:fpga:1,gres:k8s"}) {
		CAPTURE(without);
		CHECK(sk8_names_untyped(without, "k8s"));
	}
	for (const char *with : {"gres:k8s:fpga", "gres:k8s:fpga:2", "gres/k8s:fpga=2", "gres:k8s:0", "gres:k8scpu:2", "gres:gpu:1", "", "gres:k8s:2x"}) {
		CAPTURE(with);
		CHECK_FALSE(sk8_names_untyped(with, "k8s"));
	}
	CHECK_FALSE(sk8_names_untyped(nullptr, "k8s"));
}

TEST_CASE("tokens of a job are the CPUs that it asks for")
{
	struct Row {
		const char *options;
		sk8_ask ask;
		const char *cpus;
	};
	const Row rows[] = {
		{"", {.min_cpus = 1}, "1 a node"},
		{"-c3", {.cpus_per_task = 3, .min_cpus = 3}, "3 a node"},
		{"-n1 -c3", {.tasks = 1, .cpus_per_task = 3, .min_cpus = 3}, "3 a node"},
		{"-n4", {.tasks = 4, .min_cpus = 4}, "1 a task"},
		{"-n4 -c2", {.tasks = 4, .cpus_per_task = 2, .min_cpus = 8}, "2 a task"},
		{"-N1 -n4", {.tasks = 4, .min_nodes = 1, .max_nodes = 1, .min_cpus = 4}, "4 a node"},
		{"-N1 -n4 -c2", {.tasks = 4, .cpus_per_task = 2, .min_nodes = 1, .max_nodes = 1, .min_cpus = 8}, "8 a node"},
		{"-N2", {.min_nodes = 2, .max_nodes = 2, .min_cpus = 2}, "1 a node"},
		{"-N2-4", {.min_nodes = 2, .max_nodes = 4, .min_cpus = 2}, "1 a node"},
		{"-N2 -c3", {.cpus_per_task = 3, .min_nodes = 2, .max_nodes = 2, .min_cpus = 6}, "3 a node"},
		{"-N2 -n2 -c3", {.tasks = 2, .cpus_per_task = 3, .min_nodes = 2, .max_nodes = 2, .min_cpus = 6}, "3 a node"},
		{"-N2 -n5 -c3", {.tasks = 5, .cpus_per_task = 3, .min_nodes = 2, .max_nodes = 2, .min_cpus = 15}, "3 a task"},
		{"--ntasks-per-node=4", {.tasks_per_node = 4, .min_cpus = 1}, "4 a node"},
		{"-N2 --ntasks-per-node=4", {.tasks_per_node = 4, .min_nodes = 2, .max_nodes = 2, .min_cpus = 2}, "4 a node"},
		{"-N2 --ntasks-per-node=4 -c2", {.cpus_per_task = 2, .tasks_per_node = 4, .min_nodes = 2, .max_nodes = 2, .min_cpus = 16}, "8 a node"},
		{"-N2 -n8 --ntasks-per-node=4", {.tasks = 8, .tasks_per_node = 4, .min_nodes = 2, .max_nodes = 2, .min_cpus = 8}, "4 a node"},
		{"-n5 --ntasks-per-node=4", {.tasks = 5, .tasks_per_node = 4, .min_cpus = 5}, "4 a node"},
		{"-n2 --ntasks-per-node=4", {.tasks = 2, .tasks_per_node = 4, .min_cpus = 2}, "4 a node"},
		{"-n1 --ntasks-per-node=4", {.tasks = 1, .tasks_per_node = 4, .min_cpus = 1}, "1 a node"},
		{"--mincpus=4", {.min_cpus = 1, .cpus_per_node = 4}, "4 a node"},
		{"-c6 --mincpus=4", {.cpus_per_task = 6, .min_cpus = 6, .cpus_per_node = 4}, "6 a node"},
		{"-n4 --mincpus=2", {.tasks = 4, .min_cpus = 4, .cpus_per_node = 2}, "unknown"},
		{"-n4 -c2 --mincpus=2", {.tasks = 4, .cpus_per_task = 2, .min_cpus = 8, .cpus_per_node = 2}, "2 a task"},
		{"-O -n8", {.tasks = 8, .min_cpus = 1, .overcommit = true}, "1 a node"},
		{"-O -n8 -c2", {.tasks = 8, .cpus_per_task = 2, .min_cpus = 1, .overcommit = true}, "unknown"},
		{"NumCPUs=4", {.tasks = 1, .min_cpus = 4}, "unknown"},
		{"NumCPUs=4 NumNodes=1", {.tasks = 1, .min_nodes = 1, .max_nodes = 1, .min_cpus = 4}, "4 a node"},
		{"CPUsPerTask=2, was -c3", {.cpus_per_task = 2, .min_cpus = 3, .cpus_per_node = 3}, "3 a node"},
		{"--exclusive -c3", {.cpus_per_task = 3, .min_cpus = 3, .exclusive = true}, "unknown"},
		{"--gpus=2 --cpus-per-gpu=3", {.min_cpus = 1, .cpus_by_gres = true}, "unknown"},
	};
	for (const auto &row : rows) {
		CAPTURE(row.options);
		CHECK(text(sk8_cpu_tokens(&row.ask)) == row.cpus);
	}
}

TEST_CASE("tokens of a job are the MB that it asks for")
{
	struct Row {
		const char *options;
		sk8_ask ask;
		const char *memory;
	};
	const auto a_node = SK8_MEMORY_PER_NODE, a_cpu = SK8_MEMORY_PER_CPU;
	const Row rows[] = {
		{"nothing, no default", {.cpus_per_task = 3}, "unknown"},
		{"--mem=4000", {.cpus_per_task = 3, .memory = a_node, .memory_mb = 4000}, "4000 a node"},
		{"--mem=4000 -n4", {.tasks = 4, .memory = a_node, .memory_mb = 4000}, "4000 a node"},
		{"--mem=0: all", {.memory = a_node}, "unknown"},
		{"--mem-per-cpu=100 -c3", {.cpus_per_task = 3, .memory = a_cpu, .memory_mb = 100}, "300 a node"},
		{"--mem-per-cpu=100 -n4 -c2", {.tasks = 4, .cpus_per_task = 2, .min_cpus = 8, .memory = a_cpu, .memory_mb = 100}, "200 a task"},
		{"--mem-per-cpu=100 --exclusive", {.exclusive = true, .memory = a_cpu, .memory_mb = 100}, "unknown"},
		{"--mem=4000 --exclusive", {.exclusive = true, .memory = a_node, .memory_mb = 4000}, "unknown"},
		{"--mem-per-gpu=100", {.memory_by_gres = true}, "unknown"},
		{"--mem-per-cpu=100 --cpus-per-gpu=3", {.cpus_by_gres = true, .memory = a_cpu, .memory_mb = 100}, "unknown"},
		{"more than any node has", {.cpus_per_task = 3, .memory = a_cpu, .memory_mb = UINT64_MAX / 2}, "unknown"},
	};
	for (const auto &row : rows) {
		CAPTURE(row.options);
		CHECK(text(sk8_memory_tokens(&row.ask)) == row.memory);
	}
}

TEST_CASE("GRES are found in what Slurm and users write")
{
	CHECK(count("gres:k8scpu:3", "k8scpu") == 3);
	CHECK(count("gres/k8scpu:3", "k8scpu") == 3);
	CHECK(count("gres/k8scpu=3", "k8scpu") == 3);
	CHECK(count("gpu:2,k8scpu:3", "k8scpu") == 3);
	CHECK(count("gres:gpu:2;gres:k8scpu", "k8scpu") == 1);
	CHECK(count("gres:k8scpu:big", "k8scpu") == 1);
	CHECK(count("gres:k8scpu:big:3,gres:k8scpu:small:2", "k8scpu") == 5);
	CHECK(count("gres:k8smemory:4k", "k8smemory") == 4096);
	CHECK(count("gres:k8smemory:1M", "k8smemory") == 1 << 20);
	CHECK(count("k8scpu,k8smemory,gpu", "k8smemory") == 1);
	CHECK(count("gres:k8scpus:3", "k8scpu") == not_named);
	CHECK(count("gres:k8s:3", "k8scpu") == not_named);
	CHECK(count("cpu=3", "k8scpu") == not_named);
	CHECK(count("", "k8scpu") == not_named);
	CHECK(count(nullptr, "k8scpu") == not_named);
	CHECK(count("gres:k8scpu:18446744073709551615,gres:k8scpu:9", "k8scpu") == UINT64_MAX);
	CHECK(count("gres:k8scpu:99999999999999999999", "k8scpu") == 1); // Slurm refuses it
}

TEST_CASE("fewer tokens than what the job asks for contradict it, more do not")
{
	CHECK(objection({.cpus_per_task = 3, .per_node = "gres:k8scpu:2"}) ==
	      "slurm-k8s: k8scpu:2 is less than the 3 CPUs that the job asks for on each node; name k8scpu:3, or leave it out");
	CHECK(objection({.memory = SK8_MEMORY_PER_NODE, .memory_mb = 4000, .per_node = "gres:k8smemory:2000"}) ==
	      "slurm-k8s: k8smemory:2000 is less than the 4000 MB that the job asks for on each node; name k8smemory:4000, or leave it out");
	CHECK(objection({.tasks = 4, .cpus_per_task = 3, .per_task = "cpu:3,gres/k8scpu:2"}) ==
	      "slurm-k8s: k8scpu:2 is less than the 3 CPUs that the job asks for in each task; name k8scpu:3, or leave it out");
	CHECK(objection({.per_node = "gres:k8scpu:0"}).empty()); // as if it were not named
	CHECK(objection({.cpus_per_task = 3, .per_node = "gres:k8scpu:3,gres:k8smemory:1"}).empty());
	CHECK(objection({.cpus_per_task = 3, .per_node = "gres:k8scpu:4"}).empty()); // a whole core
	CHECK(objection({.cpus_per_task = 3, .per_node = "gres:gpu:2"}).empty());
	// how many tasks a node has is not known, but that it has one
	CHECK(objection({.tasks = 4, .cpus_per_task = 3, .per_node = "gres:k8scpu:2"}) ==
	      "slurm-k8s: k8scpu:2 is less than the 3 CPUs that the job asks for in each task; name k8scpu:3, or leave it out");
	CHECK(objection({.tasks = 4, .cpus_per_task = 3, .per_node = "gres:k8scpu:3"}).empty());
	CHECK(objection({.tasks = 4, .min_cpus = 4, .memory = SK8_MEMORY_PER_CPU, .memory_mb = 1000, .per_node = "gres:k8smemory:10"}) ==
	      "slurm-k8s: k8smemory:10 is less than the 1000 MB that the job asks for in each task; name k8smemory:1000, or leave it out");
	CHECK(objection({.tasks = 4, .min_cpus = 4, .memory = SK8_MEMORY_PER_CPU, .memory_mb = 1000, .per_node = "gres:k8smemory:1000"}).empty());
	CHECK(objection({.tasks = 4, .min_nodes = 1, .max_nodes = 1, .min_cpus = 4, .memory = SK8_MEMORY_PER_CPU, .memory_mb = 1000,
			 .per_node = "gres:k8smemory:3999"}).find("less than the 4000 MB that the job asks for on each node") != std::string::npos);
	// those of a task, where it is known how many tasks a node has
	CHECK(objection({.tasks = 4, .cpus_per_task = 3, .min_nodes = 1, .max_nodes = 1, .per_task = "gres:k8scpu:2"}).find("3 CPUs that the job asks for in each task") != std::string::npos);
	CHECK(objection({.tasks = 4, .cpus_per_task = 3, .min_nodes = 1, .max_nodes = 1, .per_task = "gres:k8scpu:3"}).empty());
	CHECK(objection({.cpus_per_task = 2, .memory = SK8_MEMORY_PER_CPU, .memory_mb = 100, .per_task = "gres:k8smemory:199"}).find("200 MB that the job asks for in each task") != std::string::npos);
	CHECK(objection({.memory = SK8_MEMORY_PER_NODE, .memory_mb = 100, .per_task = "gres:k8smemory:1"}).empty()); // for how many is not known
	CHECK(objection({.tasks = 8, .cpus_per_task = 2, .overcommit = true, .per_task = "gres:k8scpu:1"}).empty());
	// it would wait for all of a node's
	CHECK(objection({.cpus_per_task = 3, .exclusive = true, .per_node = "gres:k8scpu:2"}) ==
	      "slurm-k8s: a job that wants its nodes for itself (--exclusive) has all k8scpu there, however many it names; leave k8scpu out");
	CHECK(objection({.exclusive = true, .per_job = "gres:k8smemory:9"}).find("has all k8smemory there") != std::string::npos);
	CHECK(objection({.exclusive = true, .per_node = "gres:gpu:2,gres:k8scpu:0"}).empty());
}

TEST_CASE("who names a token, or says that he wants no GRES, gets no other of it")
{
	const sk8_ask asks[] = {{.per_node = "gres:k8scpu:3"}, {.per_task = "gres:k8scpu:3"}, {.per_job = "gres:k8scpu:3"},
				{.per_socket = "gres:k8scpu:3"}, {.per_node = "gres:none"}, {.per_node = "none"}};
	for (const auto &ask : asks)
		CHECK(sk8_asks_for(&ask, "k8scpu"));
	const sk8_ask other = {.per_node = "gres:k8scpu:3"};
	CHECK_FALSE(sk8_asks_for(&other, "k8smemory"));
	const sk8_ask nothing = {.per_node = "gres:k8scpu:0"};
	CHECK_FALSE(sk8_asks_for(&nothing, "k8scpu"));
}
