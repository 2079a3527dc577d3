// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/overcommit.h"

#include "test/unit/catch.h"
#include "test/unit/core/node_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

// 4 cores with two threads each, 1000 MB, 4 GPUs and 8 shares of them.
JobsOnNode node(std::uint32_t used_cores, std::uint64_t used_mb = 0, std::uint64_t gpus = 0)
{
	return {"n1", 4, used_cores, 2, 1000, used_mb, {{"gpu", "a100", 3, {}}, {"gpu", "", 1, {}}, {"shard", "", 8, {}}}, {{"gpu", "", gpus, {}}}};
}

NodeMask mask()
{
	NodeMask m;
	m.node = "n1";
	return m;
}

} // namespace

TEST_CASE("overcommit: what masks hide and what jobs have, beyond what there is")
{
	NodeMask m = mask();
	m.milli_cpu = 1500;
	m.memory_mb = 300;
	m.gres = {{"gpu", "a100", 2, {0, 1}}, {"other", "", 5, {}}};
	CHECK_FALSE(overcommit(node(3, 700, 2), m).any());
	CHECK(overcommit(node(4, 700, 2), m) == Overcommit{1500, 0, {}});
	CHECK(overcommit(node(3, 800, 3), m) == Overcommit{0, 100, {{"gpu", 1}}});
	CHECK(overcommit_text(overcommit(node(4, 800, 4), m)) == "1.5 CPUs, 100 MiB, gpu:2");
}

TEST_CASE("overcommit: cores that pods had from Slurm count as whole ones")
{
	NodeMask m = mask();
	m.cores = {0};
	m.more_cores = 1;
	CHECK_FALSE(overcommit(node(2), m).any());
	CHECK(overcommit(node(3), m).milli_cpu == 2000);
}

TEST_CASE("overcommit: what the node's own pods have beside what Slurm offers is nobody's")
{
	NodeMask m = mask();
	m.overhead_milli_cpu = 2500;
	m.overhead_mb = 150;
	m.allocatable = {10'000, 1'100};
	CHECK(overcommit(node(4, 1000), m) == Overcommit{500, 50, {}});
	m.allocatable = {11'000, 1'200};
	CHECK_FALSE(overcommit(node(4, 1000), m).any());
}

TEST_CASE("overcommit: a wholly masked node, shares of devices, and what Slurm gave twice are none")
{
	NodeMask m = mask();
	m.whole = true;
	CHECK_FALSE(overcommit(node(4, 1000, 4), m).any());
	m = mask();
	m.gres = {{"shard", "", 8, {}}};
	JobsOnNode use = node(9, 5000); // OverSubscribe=FORCE
	use.used_gres = {{"shard", "", 8, {}}};
	CHECK_FALSE(overcommit(use, m).any());
	m.milli_cpu = 500;
	CHECK(overcommit(use, m).milli_cpu == 500);
}

TEST_CASE("overcommit: only masks of nodes that Slurm has count")
{
	MaskSnapshot masks;
	for (const char *name : {"gone", "n1"}) {
		auto m = std::make_shared<NodeMask>(mask());
		m->node = name;
		m->milli_cpu = 100;
		masks.masks.push_back(m);
	}
	CHECK(overcommits({node(4)}, masks) == Overcommits{{"n1", {100, 0, {}}}});
	CHECK(overcommits({node(3)}, masks).empty());
}

TEST_CASE("overcommit: status and metrics say it of shared nodes, without devices that are only missing")
{
	NodeWorld w;
	w.set_slurm_gres({{"gpu", "", 4, {}}});
	w.set_devices({{"nvidia.com/gpu", 4}}, {{"nvidia.com/gpu", 3}});
	w.run();
	REQUIRE_FALSE(w.missing.empty());
	auto tell = [&w](const Overcommit &over) { w.controller->overcommits({{"n1", over}, {"other", over}}); };
	tell({0, 0, {{"gpu", 1}}});
	CHECK(w.controller->overcommitted() == 0);
	tell({500, 0, {{"gpu", 2}}});
	CHECK(w.controller->overcommitted() == 1);
	CHECK(w.controller->status("n1")["overcommitted"].str() == "0.5 CPUs, gpu:1");
	w.controller->overcommits({});
	CHECK(w.controller->overcommitted() == 0);
	CHECK(w.controller->status("n1")["overcommitted"].str().empty());
}
