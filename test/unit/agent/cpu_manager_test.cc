// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/cpu_manager.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::agent;

TEST_CASE("the kubelet's CPU manager: what its file says of pods with CPUs of their own")
{
	const CpuManager manager = parse_cpu_manager(R"({"policyName":"static","defaultCpuSet":"0,4","entries":{
		"a":{"main":"1","side":"2-3"},"b":{"main":"5"},"c":{"main":"hello"},"d":7},"checksum":1})");
	CHECK(manager.pins());
	CHECK(manager.own == std::map<std::string, CpuSet>{{"a", {1, 2, 3}}, {"b", {5}}});
}

TEST_CASE("the kubelet's CPU manager: a file that says nothing is none")
{
	for (const char *text : {"", "{", "[]", R"({"policyName":1,"entries":[]})", R"({"policyName":{},"entries":{"a":{"main":1}}})"}) {
		const CpuManager manager = parse_cpu_manager(text);
		CHECK(manager.policy.empty());
		CHECK(manager.own.empty());
	}
}

TEST_CASE("CPUs of pods become Slurm's cores")
{
	const CpuTopology two_threads{{{0, 4}, {1, 5}, {2, 6}, {3, 7}}};
	const auto pods = pinned_pods({"static", {{"whole", {1, 5}}, {"half", {2}}, {"elsewhere", {9}}}}, two_threads);
	CHECK(pods == core::PinnedPods{{"whole", {{1}, 2}}, {"half", {{2}, 1}}});
	CHECK(pinned_pods({"none", {{"left", {1}}}}, two_threads).empty());
}
