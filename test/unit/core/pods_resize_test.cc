// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods for Slurm whose requests change in place (KEP-1287): their jobs have what they asked for before.
#include <random>

#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

static Job running_job(std::vector<std::uint16_t> cores)
{
	Job job;
	job.ref = {7, 1};
	job.state = SK8_JOB_RUNNING;
	job.node = "n1";
	job.cores = std::move(cores);
	job.memory_mb = 100;
	return job;
}

// Beyond what the pod's job has: cores, MiB.
static std::pair<std::uint32_t, std::uint64_t> beyond(World &w)
{
	const NodeMask *mask = w.mask("n1");
	if (!mask)
		return {0, 0};
	CHECK(mask->cores.empty());
	return {mask->more_cores, mask->memory_mb};
}

TEST_CASE("what a pod requests beyond its job is masked beside it")
{
	World w;
	w.create_running("p");
	REQUIRE_FALSE(w.masked("n1"));
	w.resize("p", 2'500, 300);
	w.run();
	CHECK(beyond(w) == std::pair(2u, std::uint64_t{200}));

	SECTION("and is free again when its kubelet has taken it back")
	{
		w.resize("p", 1'500, 100);
		w.run();
		CHECK(beyond(w) == std::pair(1u, std::uint64_t{0}));
		const int woken = w.woken;
		w.resize("p", 500, 50); // its job keeps what it has
		w.run();
		CHECK_FALSE(w.masked("n1"));
		CHECK(w.woken > woken);
	}
	SECTION("and stays so while slurmctld starts anew, from before the first list on")
	{
		w.restart();
		CHECK(beyond(w) == std::pair(2u, std::uint64_t{200}));
		w.run(Millis(1'000));
		CHECK(beyond(w) == std::pair(2u, std::uint64_t{200}));
	}
	SECTION("and is found again where the saved ledger was lost")
	{
		w.journal.text.clear();
		w.restart();
		w.run(Millis(1'000));
		CHECK(beyond(w) == std::pair(2u, std::uint64_t{200}));
		CHECK(w.journal.saved().holds.at(0).more_cores == 2);
	}
	SECTION("and stays masked with the rest of it from the end of its job until the pod is gone")
	{
		w.slurm_ends("p", SK8_JOB_CANCELLED);
		CHECK(w.mask("n1")->cores == std::vector<std::uint16_t>{0});
		CHECK(w.mask("n1")->more_cores == 2);
		CHECK(w.mask("n1")->memory_mb == 300);
		w.run(Millis(1'000));
		w.kubelet_ends("p", 143, "Error");
		w.run();
		CHECK_FALSE(w.masked("n1"));
	}
}

TEST_CASE("where the cores of a node have fewer threads than before a pod there holds more of them")
{
	World w;
	w.run();
	const auto nodes_have = [&](std::uint32_t threads) {
		w.controller->slurm_nodes({{"n1", threads}, {"n2", threads}, {"slurm-only", threads}});
	};
	nodes_have(2);
	w.create_pod("p", [](kube::Pod &p) { p.request.milli_cpu = 3'500; });
	w.run();
	w.slurm_starts("p", "n1", {0, 1});
	w.run();
	w.kubelet_starts("p");
	w.run();
	REQUIRE_FALSE(w.masked("n1"));
	CHECK(w.journal.saved().holds.at(0).cpus == 4);
	nodes_have(1);
	w.run();
	CHECK(beyond(w) == std::pair(2u, std::uint64_t{0}));
	nodes_have(2); // its job has them
	w.run();
	CHECK(beyond(w) == std::pair(0u, std::uint64_t{0}));
}

TEST_CASE("a pod that was resized while its job waited is not bound by it, but gets one that is large enough")
{
	World w;
	w.create_pod("p");
	w.run();
	bool known = true;
	SECTION("and that is seen at once")
	{
		w.resize("p", 2'000, 100);
		w.run();
		CHECK(w.jobs.at(0).job.ended());
	}
	SECTION("and that is seen when the job starts, by a slurmctld that has not made it")
	{
		known = false;
		w.restart();
		w.resize("p", 2'000, 100);
		w.run();
		CHECK_FALSE(w.jobs.at(0).job.ended());
		w.slurm_starts("p", "n1", {0});
	}
	w.run(Millis(2'000));
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[0].end.comment == "its pod requests more than before");
	CHECK(w.jobs[1].request.cpus == 2);
	CHECK(w.count("bind") == 0);
	if (known)
		CHECK_FALSE(w.masked("n1"));

	w.slurm_starts("p", "n1", {0, 1});
	w.run();
	w.kubelet_starts("p");
	w.run();
	CHECK(w.pod("p").node_name == "n1");
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("the job that a resized pod gets has the age of the one before")
{
	World w;
	w.create_pod("p");
	w.run();
	w.job_of("p")->age = {1'000, 77};
	w.slurm_says("p", "Priority");
	w.resize("p", 2'000, 100);
	w.run(Millis(2'000));
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[1].request.age == Age{1'000, 77});
}

TEST_CASE("a job that is held stays so when its pod is resized, and goes when it would start")
{
	World w;
	w.create_pod("p");
	w.run();
	w.job_of("p")->held = true;
	w.slurm_says("p", "JobHeldAdmin");
	w.resize("p", 2'000, 100);
	w.run(Millis(60'000));
	REQUIRE(w.jobs.size() == 1);
	CHECK_FALSE(w.jobs[0].job.ended());
	w.job_of("p")->held = false;
	w.slurm_says("p", "Priority");
	w.run(Millis(2'000));
	CHECK(w.jobs.size() == 2);
}

TEST_CASE("a pod that is resized after its Binding was refused is tied to no node")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = {429};
	w.slurm_starts("p");
	w.run();
	w.resize("p", 2'000, 100);
	w.run(Millis(60'000));
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[1].request.required_node.empty());
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("what a pod requests beyond its job is masked while nobody can tell whether it is bound already")
{
	World w;
	w.create_pod("p");
	w.run();
	w.at_bind = [&w] { w.resize("p", 3'000, 300); };
	w.fail["bind"] = {0}; // the Binding may have taken effect
	w.fail["get"] = {0, 0, 0, 0, 0};
	w.slurm_starts("p");
	w.run();
	CHECK(beyond(w) == std::pair(2u, std::uint64_t{200}));
}

TEST_CASE("what a pod requests beyond the job that it gets where it runs is masked all the time")
{
	const PodKey key{"c", "ns", "p", "u"};
	HoldTable t;
	t.adopt({key, "n1", {}, 4, 400});
	const Job job = running_job({0});
	t.job_started(key, job);
	const auto hold = t.place(key, job.ref);
	REQUIRE(hold);
	CHECK(hold->more_cores == 3);
	REQUIRE(t.masks());
	CHECK(t.masks()->masks.at(0)->more_cores == 3);
	CHECK(t.masks()->masks.at(0)->memory_mb == 300);
}

TEST_CASE("a job that somebody else makes smaller than it was asked for is not made again and again")
{
	World w;
	w.create_pod("p", [](kube::Pod &p) { p.request.milli_cpu = 2'000; });
	w.run();
	w.slurm_starts("p", "n1", {0});
	w.run();
	w.kubelet_starts("p");
	w.run(Millis(60'000));
	CHECK(w.jobs.size() == 1);
	CHECK(beyond(w) == std::pair(1u, std::uint64_t{0})); // the pod may use it all the same
}

// hold minus job, whoever comes and goes first; masks become less by let_masks_go() alone.
TEST_CASE("of a resized pod all that it requests is either its job's or masked, whatever the order of events")
{
	const PodKey key{"c", "ns", "p", "u"};
	for (unsigned seed = 1; seed <= 300; seed++) {
		std::mt19937 random(seed);
		HoldTable t;
		const Job job = running_job({4, 5});
		bool runs = false;
		std::uint32_t requested = 0; // 0: it holds nothing
		for (int step = 0; step < 60; step++) {
			switch (random() % 5) {
			case 0:
				t.job_started(key, job);
				runs = true;
				break;
			case 1:
				t.job_ended(key, job.ref);
				runs = false;
				break;
			case 2:
				if (t.place(key, job.ref))
					requested = std::max(requested, 2u);
				break;
			case 3:
				t.release(key);
				requested = 0;
				break;
			case 4:
				if (const auto more = static_cast<std::uint32_t>(1 + random() % 6); t.held(key)) {
					t.set_request(key, more, more * 50);
					requested = runs ? std::max(more, 2u) : std::max(more, requested);
				}
				break;
			}
			if (random() % 2) { // in between there may be more
				t.let_masks_go();
				const auto masks = t.masks();
				const std::uint32_t masked =
					masks ? static_cast<std::uint32_t>(masks->masks.at(0)->cores.size()) + masks->masks.at(0)->more_cores : 0;
				const std::uint64_t masked_mb = masks ? masks->masks.at(0)->memory_mb : 0;
				CAPTURE(seed, step, runs, requested);
				REQUIRE(masked == (requested ? requested - (runs ? 2 : 0) : 0));
				REQUIRE(masked_mb == (requested ? requested * 50 - (runs ? 100 : 0) : 0));
			} else if (const auto masks = t.masks(); requested && !runs) {
				REQUIRE(masks);
				REQUIRE(masks->masks.at(0)->cores.size() + masks->masks.at(0)->more_cores >= requested);
			}
		}
	}
}
