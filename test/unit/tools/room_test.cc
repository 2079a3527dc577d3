// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s check: what slurm.conf has to set aside on nodes.
#include <algorithm>

#include "test/unit/catch.h"
#include "tools/check.h"

using namespace sk8::tools;

namespace {

// 8 cores of two threads, 16000 MiB, as much in Kubernetes.
NodeRoom node(const std::string &name = "n1")
{
	return {name, {.cores = 8, .threads_per_core = 2, .memory_mb = 16000}, 16000, 16000};
}

std::string told(const std::vector<NodeRoom> &nodes)
{
	Findings out;
	check_room(nodes, "nodes", out);
	std::string text;
	for (const Finding &f : out.all())
		if (f.level != Finding::Level::ok)
			text += f.text + "\n";
	return text;
}

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("room: a node of which slurm.conf says what is left has no finding")
{
	CHECK(told({node()}).empty());
	NodeRoom n = node();
	n.own_milli_cpu = 500, n.own_mb = 100;
	n.slurm.spec_cores = 1, n.slurm.spec_mb = 128;
	CHECK(told({n}).empty());
	// what is not known is nobody's mistake
	n.allocatable_milli_cpu = n.allocatable_mb = 0;
	n.slurm.spec_cores = 0;
	CHECK(told({n}).empty());
	CHECK(told({}).empty());
}

TEST_CASE("room: what is missing in slurm.conf is told as the line that is right, and right it is")
{
	struct {
		std::int64_t own_milli_cpu, own_mb, allocatable_milli_cpu, allocatable_mb;
		std::uint64_t spec_cores, spec_mb;
		const char *settings, *why;
	} rows[] = {
		{500, 0, 16000, 16000, 0, 0, "set CoreSpecCount=1 there", "so jobs with --exclusive never start beside them;"},
		{2001, 0, 16000, 16000, 0, 0, "set CoreSpecCount=2 there", "--exclusive never"},
		{2001, 0, 16000, 16000, 1, 0, "set CoreSpecCount=2 there", "--exclusive never"},
		{0, 65, 16000, 16000, 0, 0, "set MemSpecLimit=128 there", "so jobs with --mem=0 never start beside them;"},
		{0, 65, 16000, 16000, 0, 64, "set MemSpecLimit=128 there", "--mem=0 never"},
		{500, 65, 16000, 16000, 0, 0, "set CoreSpecCount=1 MemSpecLimit=128 there",
		 "--exclusive never start beside them, jobs with --mem=0 never"},
		{0, 0, 15900, 16000, 0, 0, "set CoreSpecCount=1 there", "so pods that get the last CPUs fail with OutOfcpu;"},
		{0, 0, 16000, 15900, 0, 0, "set MemSpecLimit=128 there", "so pods that get the last of the memory fail with OutOfmemory;"},
		{200, 0, 13900, 16000, 1, 0, "set CoreSpecCount=2 there", "OutOfcpu, jobs with --exclusive"},
		// the kubelet's own reservation is not charged twice
		{1000, 0, 15000, 16000, 0, 0, "set CoreSpecCount=1 there", "OutOfcpu, jobs with --exclusive"},
	};
	for (const auto &row : rows) {
		NodeRoom n = node();
		n.own_milli_cpu = row.own_milli_cpu, n.own_mb = row.own_mb;
		n.allocatable_milli_cpu = row.allocatable_milli_cpu, n.allocatable_mb = row.allocatable_mb;
		n.slurm.spec_cores = row.spec_cores, n.slurm.spec_mb = row.spec_mb;
		const std::string text = told({n});
		INFO(text);
		CHECK(contains(text, row.settings));
		CHECK(contains(text, row.why));
		// who follows it is told nothing more
		if (const auto at = text.find("CoreSpecCount="); at != text.npos)
			n.slurm.spec_cores = std::stoul(text.substr(at + 14));
		if (const auto at = text.find("MemSpecLimit="); at != text.npos)
			n.slurm.spec_mb = std::stoul(text.substr(at + 13));
		CHECK(told({n}).empty());
	}
}

TEST_CASE("room: nodes with the same advice are one sentence, with the numbers of one of them")
{
	std::vector<NodeRoom> nodes;
	for (int i = 0; i < 30; i++) {
		nodes.push_back(node("n" + std::to_string(10 + i)));
		nodes.back().own_milli_cpu = 250;
		nodes.back().own_mb = 60 + i % 4; // nodes of one kind differ by a little
	}
	const std::string text = told(nodes);
	CHECK(contains(text, "nodes n10, n11, n12, n13, n14, n15, n16, n17, n18, n19 and 20 more: "));
	CHECK(contains(text, "set CoreSpecCount=1 MemSpecLimit=64 there (of n10 Slurm offers 16 CPUs and 16000 MiB, the kubelet lets pods "
			     "have 16 and 16000, its own pods request 0.25 and 60)"));
	CHECK(std::ranges::count(text, '\n') == 1);
}

TEST_CASE("room: a thousand nodes that all differ are not a thousand sentences")
{
	std::vector<NodeRoom> nodes;
	for (int i = 0; i < 1000; i++) {
		nodes.push_back(node("n" + std::to_string(i)));
		nodes.back().own_mb = i * 15;
	}
	const std::string text = told(nodes);
	CHECK(std::ranges::count(text, '\n') == 21);
	CHECK(contains(text, " more nodes\n"));
}

TEST_CASE("room: a node on which nothing is left for jobs is told as that")
{
	NodeRoom n = node();
	n.own_milli_cpu = 15000;
	CHECK(contains(told({n}), "node n1: nothing is left there for jobs beside the node's own pods"));
	n = node();
	n.own_mb = 20000;
	CHECK(contains(told({n}), "nothing is left there"));
	CHECK_FALSE(contains(told({n}), "MemSpecLimit"));
}
