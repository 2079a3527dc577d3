// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/hold_table.h"
#include "lib/core/hold_journal.h"
#include "lib/sk8_abi.h"
#include "test/unit/catch.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace sk8;
using namespace sk8::core;

namespace {

PodKey key(int n)
{
	return {"c", "ns", "p" + std::to_string(n), "uid-" + std::to_string(n)};
}

Job job(std::uint32_t id, std::vector<std::uint16_t> cores, const std::string &node = "n1")
{
	Job j;
	j.ref = {id, 1000};
	j.state = SK8_JOB_RUNNING;
	j.node = node;
	j.cores = std::move(cores);
	j.memory_mb = 10;
	return j;
}

} // namespace

TEST_CASE("of two running jobs of a pod the end of one leaves what the other one covers")
{
	HoldTable t;
	const Job first = job(1, {0}), second = job(2, {1}), elsewhere = job(3, {2}, "n2");
	const PodKey pod = key(1);
	t.job_started(pod, first);
	SECTION("before anything is held")
	{
		t.job_started(pod, second);
		t.job_ended(pod, second.ref);
		CHECK(t.place(pod, first.ref));
		CHECK_FALSE(t.masks());
	}
	SECTION("the other one is on the same node")
	{
		REQUIRE(t.place(pod, first.ref));
		t.job_started(pod, second);
		CHECK_FALSE(t.masks());
		const bool of_second = GENERATE(false, true);
		t.job_ended(pod, of_second ? second.ref : first.ref);
		CHECK_FALSE(t.masks());
		t.job_ended(pod, of_second ? first.ref : second.ref);
		REQUIRE(t.masks());
		CHECK(t.masks()->masks[0]->cores.size() == 1);
	}
	SECTION("the other one is on another node")
	{
		REQUIRE(t.place(pod, first.ref));
		t.job_started(pod, elsewhere);
		CHECK_FALSE(t.masks());
		t.job_ended(pod, elsewhere.ref);
		CHECK_FALSE(t.masks());
		t.job_started(pod, elsewhere);
		t.job_ended(pod, first.ref);
		REQUIRE(t.masks());
		CHECK(t.masks()->masks[0]->cores == std::vector<std::uint16_t>{0});
	}
	SECTION("both are found at a start")
	{
		REQUIRE(t.place(pod, first.ref));
		const bool this_first = GENERATE(false, true);
		if (this_first)
			t.jobs_running({{pod, share(first)}, {pod, share(elsewhere)}});
		else
			t.jobs_running({{pod, share(elsewhere)}, {pod, share(first)}});
		CHECK_FALSE(t.masks());
		t.job_ended(pod, elsewhere.ref);
		CHECK_FALSE(t.masks());
	}
}

TEST_CASE("a suspended job's cores are masked, but not its memory, which stays its own")
{
	HoldTable t;
	const PodKey key{"c", "ns", "p", "u"};
	Job job = ::job(7, {2, 3});
	job.memory_mb = 100;
	const auto masks_of_suspended = [&] {
		const auto snapshot = t.masks();
		REQUIRE(snapshot);
		REQUIRE(snapshot->masks.size() == 1);
		CHECK(snapshot->masks[0]->cores == std::vector<std::uint16_t>{2, 3});
		CHECK(snapshot->masks[0]->memory_mb == 0);
		CHECK(snapshot->masks[0]->more_cores == 0);
	};
	SECTION("it is bound by us")
	{
		t.job_started(key, job);
		REQUIRE(t.place(key, job.ref));
	}
	SECTION("it was found running")
	{
		t.adopt({key, "n1", {}, 2, 100});
		t.job_started(key, job);
	}
	REQUIRE_FALSE(t.masks());
	job.state = SK8_JOB_SUSPENDED;
	t.job_started(key, job);
	masks_of_suspended();
	t.jobs_running({{key, share(job)}}); // slurmctld started anew
	masks_of_suspended();
	job.state = SK8_JOB_RUNNING;
	t.job_started(key, job);
	CHECK_FALSE(t.masks());
	job.state = SK8_JOB_SUSPENDED;
	t.job_started(key, job);
	t.job_ended(key, job.ref); // Slurm gives its memory back now
	REQUIRE(t.masks());
	CHECK(t.masks()->masks[0]->memory_mb == 100);
}

TEST_CASE("a hold is masked exactly while no running job covers it")
{
	HoldTable t;
	CHECK(t.masks() == nullptr);
	CHECK_FALSE(t.place(key(1), {7, 1000})); // no such running job
	t.job_started(key(1), job(7, {2, 3}));
	CHECK_FALSE(t.place(key(1), {8, 1000})); // another job
	REQUIRE(t.place(key(1), {7, 1000}));
	CHECK(t.masks() == nullptr);

	t.job_ended(key(1), {6, 1000}); // late news of another job
	CHECK(t.masks() == nullptr);
	t.job_ended(key(1), {7, 1000});
	auto m = t.masks();
	REQUIRE(m);
	REQUIRE(m->masks.size() == 1);
	CHECK(m->masks[0]->node == "n1");
	CHECK(m->masks[0]->cores == std::vector<std::uint16_t>{2, 3});
	CHECK(m->masks[0]->memory_mb == 10);

	CHECK(t.release(key(1)) == HoldTable::Cover::masked);
	t.let_masks_go();
	CHECK(t.masks() == nullptr);
	CHECK(t.release(key(1)) == HoldTable::Cover::none);
}

TEST_CASE("a pod that was never bound leaves no mask")
{
	HoldTable t;
	t.job_started(key(1), job(7, {2}));
	t.job_ended(key(1), {7, 1000});
	CHECK(t.masks() == nullptr);
}

TEST_CASE("saved holds are masks until their jobs are seen running")
{
	HoldTable t;
	t.restore({.holds = {{key(1), "n1", {0}, 0, 5}, {key(2), "n1", {1}, 0, 5}}, .released = {}});
	CHECK(t.masks()->masks[0]->cores.size() == 2);
	t.job_started(key(1), job(7, {0}));
	CHECK(t.masks()->masks[0]->cores == std::vector<std::uint16_t>{1});
	t.jobs_running({{key(2), share(job(8, {1}))}}); // the truth: 7 does not run
	CHECK(t.masks()->masks[0]->cores == std::vector<std::uint16_t>{0});
}

TEST_CASE("cores that two saved holds name are those of one of them, and the other has as many others")
{
	HoldTable t;
	t.restore({.holds = {{key(1), "n1", {0, 2}, 0, 5}, {key(2), "n1", {0}, 0, 5}, {key(3), "n1", {2, 4}, 1, 5}}, .released = {}});
	CHECK(t.masks()->masks[0]->cores == std::vector<std::uint16_t>{0, 2, 4});
	CHECK(t.masks()->masks[0]->more_cores == 3);
	Hold foreign{key(4), "n1", {4, 5}, 0, 5};
	foreign.foreign = true;
	t.hold_foreign(foreign);
	foreign.key = key(5); // its kubelet gave it the other threads of these cores
	t.hold_foreign(foreign);
	CHECK(t.masks()->masks[0]->cores == std::vector<std::uint16_t>{0, 2, 4, 5});
	CHECK(t.masks()->masks[0]->more_cores == 4);
	t.release(key(2)); // free, and masked until Slurm knows
	CHECK(t.masks()->masks[0]->more_cores == 4);
	t.let_masks_go();
	CHECK(t.masks()->masks[0]->more_cores == 3);
}

TEST_CASE("an adopted pod holds amounts until its job gave it cores")
{
	HoldTable t;
	t.adopt({key(1), "n1", {}, 2, 10});
	CHECK(t.masks()->masks[0]->more_cores == 2);
	t.lift(key(1), true);
	CHECK(t.masks() == nullptr);
	t.job_started(key(1), job(9, {4, 5}));
	t.lift(key(1), false);
	CHECK(t.masks() == nullptr);
	t.job_ended(key(1), {9, 1000});
	CHECK(t.masks()->masks[0]->more_cores == 0);
	CHECK(t.masks()->masks[0]->cores == std::vector<std::uint16_t>{4, 5});
}

TEST_CASE("an adopted pod's hold is settled by the job that runs where it is, and by no other")
{
	HoldTable t;
	t.adopt({key(1), "n1", {}, 2, 10});
	CHECK_FALSE(t.settle(key(1), {9, 1000})); // it does not run
	t.job_started(key(1), job(9, {4, 5}));
	CHECK_FALSE(t.settle(key(1), {8, 1000}));
	const auto hold = t.settle(key(1), {9, 1000});
	REQUIRE(hold);
	CHECK(hold->cores == std::vector<std::uint16_t>{4, 5});
	CHECK(hold->more_cores == 0);
	CHECK(hold->memory_mb == 10);
	CHECK(t.ledger("c").holds == std::vector{*hold});
	CHECK_FALSE(t.settle(key(1), {9, 1000})); // it is
	CHECK(t.masks() == nullptr);
	t.adopt({key(2), "n2", {}, 2, 10});
	t.job_started(key(2), job(10, {1}));
	CHECK_FALSE(t.settle(key(2), {10, 1000})); // its job runs elsewhere
}

TEST_CASE("blocked nodes are masked as a whole until their cluster is known")
{
	HoldTable t;
	t.block_nodes("c", {"n1", "n2"});
	REQUIRE(t.masks());
	CHECK(t.masks()->masks[1]->whole);
	t.unblock_nodes("c");
	CHECK(t.let_masks_go());
	CHECK(t.masks() == nullptr);
	CHECK_FALSE(t.let_masks_go());
}

TEST_CASE("blocked nodes are open after a while only where nothing said that they had pods, and their cluster stays untold")
{
	HoldTable t;
	t.block_nodes("c", {"n1", "n2"}, Wait::a_while);
	t.block_nodes("d", {"n2"});
	CHECK(t.masks()->masks[0]->for_a_while);
	CHECK_FALSE(t.masks()->masks[1]->for_a_while);
	CHECK(t.closed() == std::map<std::string, Wait>{{"c", Wait::a_while}, {"d", Wait::until_it_has}});
	CHECK(t.stop_waiting("c"));
	CHECK_FALSE(t.stop_waiting("c"));
	CHECK_FALSE(t.stop_waiting("d"));
	CHECK(t.closed() == std::map<std::string, Wait>{{"d", Wait::until_it_has}});
	CHECK(t.masks()->masks[0]->whole); // until slurmctld's locks are held
	CHECK(t.let_masks_go());
	REQUIRE(t.masks());
	CHECK(t.masks()->masks.size() == 1);
	CHECK(t.masks()->masks[0]->node == "n2");
	CHECK(t.ledger("c").partial);
	CHECK(t.ledger("c").first);
	CHECK(t.ledger("d").partial);
	CHECK_FALSE(t.ledger("d").first);
	CHECK(t.unblock_nodes("c"));
	CHECK_FALSE(t.unblock_nodes("c"));
	CHECK_FALSE(t.ledger("c").partial);
	t.block_nodes("d", {});
	CHECK(t.masks() == nullptr);
	CHECK_FALSE(t.ledger("d").partial);
}

TEST_CASE("nodes that are closed for a moment leave the ledger whole that they were closed with")
{
	HoldTable t;
	t.block_nodes("c", {"n1", "n2"}, Wait::a_moment);
	t.block_nodes("d", {"n2"}, Wait::a_while);
	CHECK(t.masks()->masks[0]->for_a_while);
	CHECK(t.masks()->masks[0]->for_a_moment);
	CHECK(t.masks()->masks[1]->for_a_while);
	CHECK_FALSE(t.masks()->masks[1]->for_a_moment);
	CHECK_FALSE(t.ledger("c").partial);
	CHECK_FALSE(t.ledger("c").first);
	CHECK(t.stop_waiting("c"));
	CHECK(t.let_masks_go());
	CHECK(t.masks()->masks.size() == 1);
	CHECK_FALSE(t.ledger("c").partial);
}

TEST_CASE("a node that settings name twice is blocked and known as any other")
{
	HoldTable t;
	t.block_nodes("c", {"n1", "n1", "n2"});
	t.unblock_nodes("c");
	CHECK(t.let_masks_go());
	CHECK(t.masks() == nullptr);
}

TEST_CASE("a mask goes under slurmctld's locks only, however its hold came to an end")
{
	HoldTable t;
	t.adopt({key(1), "n1", {1}, 0, 5});
	SECTION("released")
	{
		CHECK(t.release(key(1)) == HoldTable::Cover::masked);
	}
	SECTION("found on another node")
	{
		t.adopt({key(1), "n2", {1}, 0, 5});
	}
	SECTION("placed on another node")
	{
		t.job_started(key(1), job(7, {3}, "n2"));
		t.place(key(1), {7, 1000});
	}
	SECTION("its nodes are known")
	{
		t.release(key(1));
		t.let_masks_go();
		t.block_nodes("c", {"n1"});
		t.unblock_nodes("c");
	}
	REQUIRE(t.masks());
	CHECK(t.masks()->masks[0]->node == "n1");
	CHECK(t.masks_can_go());
	CHECK(t.let_masks_go());
	CHECK_FALSE(t.masks_can_go());
	CHECK((!t.masks() || t.masks()->masks[0]->node == "n2"));
}

TEST_CASE("a mask that may be less by what Kubernetes says of its node is told to Slurm's scheduler")
{
	HoldTable t;
	CHECK_FALSE(t.set_allocatable("n1", {8000, 100}));
	CHECK_FALSE(t.masks_can_go());
	Hold agent{key(1), "n1", {}, 0, 5};
	agent.foreign = agent.overhead = true;
	agent.milli_cpu = 600;
	t.hold_foreign(agent);
	CHECK_FALSE(t.set_allocatable("n1", {8000, 100}));
	CHECK_FALSE(t.masks_can_go());
	CHECK(t.set_allocatable("n1", {7000, 100}));
	CHECK(t.masks_can_go());
	CHECK(t.let_masks_go());
	CHECK_FALSE(t.let_masks_go());
	CHECK(t.masks());
}

TEST_CASE("what is free and still masked belongs to nobody")
{
	HoldTable t;
	t.adopt({key(1), "n1", {1}, 0, 5});
	t.release(key(1));
	CHECK_FALSE(t.held(key(1)));
	CHECK_FALSE(t.masked_by_other(key(2), "n1", {1}, {})); // no reason to end a job
	CHECK(t.ledger("c").holds.empty());
	t.restore({});
	CHECK_FALSE(t.masks());
}

TEST_CASE("a change on one node leaves the masks of all others as they are")
{
	HoldTable t;
	for (int n = 1; n <= 3; n++)
		t.adopt({key(n), "n" + std::to_string(n), {0}, 0, 5});
	const auto before = t.masks();
	t.adopt({key(4), "n2", {1}, 0, 5});
	const auto after = t.masks();
	CHECK(after->generation != before->generation);
	CHECK(after->masks[0] == before->masks[0]); // the very same
	CHECK(after->masks[1]->version != before->masks[1]->version);
	CHECK(after->masks[2] == before->masks[2]);
	t.release(key(2));
	CHECK(t.masks()->masks[1]->cores.size() == 2); // until let_masks_go()
	t.let_masks_go();
	CHECK(t.masks()->masks[1]->cores == std::vector<std::uint16_t>{1});
	CHECK(before->masks[1]->cores == std::vector<std::uint16_t>{0});
}

// Against a plain set: random events, masks compared after each.
TEST_CASE("masks are holds minus running jobs, whatever the order of events")
{
	for (unsigned seed = 1; seed <= 200; seed++) {
		std::mt19937 random(seed);
		HoldTable t;
		std::set<int> held, running;
		for (int step = 0; step < 100; step++) {
			const int n = static_cast<int>(random() % 6);
			const auto core = static_cast<std::uint16_t>(n);
			switch (random() % 5) {
			case 0:
				t.job_started(key(n), job(100 + n, {core}));
				running.insert(n);
				break;
			case 1:
				t.job_ended(key(n), {static_cast<std::uint32_t>(100 + n), 1000});
				running.erase(n);
				break;
			case 2:
				if (t.place(key(n), {static_cast<std::uint32_t>(100 + n), 1000}))
					held.insert(n);
				break;
			case 3:
				t.release(key(n));
				held.erase(n);
				break;
			case 4:
				t.adopt({key(n), "n1", {core}, 0, 1});
				held.insert(n);
				break;
			}
			t.let_masks_go();
			std::set<int> masked;
			if (auto m = t.masks())
				for (auto c : m->masks.at(0)->cores)
					masked.insert(c);
			std::set<int> expected;
			for (int h : held)
				if (!running.contains(h))
					expected.insert(h);
			CAPTURE(seed, step);
			REQUIRE(masked == expected);
		}
	}
}

static GresList gpus(std::vector<std::uint16_t> devices)
{
	GresList out;
	for (const std::uint16_t d : devices)
		out.push_back({"gpu", "", 1, {d}});
	return out;
}

static std::vector<std::uint16_t> masked_gpus(HoldTable &t)
{
	const auto masks = t.masks();
	auto out = masks ? devices_named(masks->masks.at(0)->gres, "gpu") : std::vector<std::uint16_t>{};
	return out;
}

TEST_CASE("a device that pods share stays hidden until the last of them is gone, whoever's job had it")
{
	HoldTable t;
	Job first = job(1, {0});
	first.gres = gpus({3});
	t.job_started(key(1), first);
	REQUIRE(t.place(key(1), first.ref));
	CHECK_FALSE(t.share(key(2), gpus({3}))); // holds nothing yet
	t.job_started(key(2), job(2, {1}));
	REQUIRE(t.place(key(2), {2, 1000}));
	CHECK_FALSE(t.share(key(2), gpus({2}))); // nobody's
	CHECK_FALSE(t.share(key(1), gpus({3}))); // only its own
	CHECK(t.held_by_others(key(2), "n1", gpus({3})));
	CHECK_FALSE(t.held_by_others(key(2), "n2", gpus({3})));
	REQUIRE(t.share(key(2), gpus({3})));
	CHECK(t.share(key(2), gpus({3}))->shared == gpus({3}));
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	CHECK(t.masks()->masks[0]->cores.empty());
	CHECK(t.masks()->masks[0]->memory_mb == 0);
	CHECK(t.cover(key(2)) == HoldTable::Cover::covered);
	t.job_started(key(3), job(3, {2}));
	REQUIRE(t.place(key(3), {3, 1000}));
	REQUIRE(t.share(key(3), gpus({3})));
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3}); // once
	t.job_ended(key(1), first.ref);
	CHECK(t.release(key(1)) == HoldTable::Cover::masked);
	t.let_masks_go();
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	CHECK(t.masked_by_other({}, "n1", {}, gpus({3})));
	// its job starts anew where it is
	t.job_ended(key(2), {2, 1000});
	t.lift(key(2), true);
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	t.job_started(key(2), job(2, {1}));
	CHECK(t.place(key(2), {2, 1000})->shared == gpus({3}));
	CHECK(t.release(key(2)) == HoldTable::Cover::masked);
	t.job_ended(key(3), {3, 1000});
	t.let_masks_go();
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	t.release(key(3));
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	t.let_masks_go();
	CHECK_FALSE(t.masks());
}

TEST_CASE("what a pod has shared with others that are gone becomes its own, and is hidden as before from all but its job")
{
	HoldTable t;
	Hold first, second;
	first.key = key(1);
	second.key = key(2);
	first.node = second.node = "n1";
	first.gres = gpus({1});
	second.shared = gpus({1, 2, 3});
	t.adopt(first);
	t.adopt(second);
	const auto own = t.keep_alone(key(2), gpus({3}));
	REQUIRE(own);
	CHECK(own->shared == gpus({1, 3})); // somebody else's, and what its claims still have
	CHECK(own->gres == gpus({2}));
	CHECK_FALSE(t.keep_alone(key(2), gpus({3})));
	CHECK_FALSE(t.keep_alone(key(1), {}));
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{1, 2, 3});
	t.lift(key(2), true);
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{1, 3});
	t.lift(key(2), false);
	t.release(key(1));
	t.let_masks_go();
	CHECK(t.keep_alone(key(2), {})->shared.empty());
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{1, 2, 3});
}

static void adopt_with(HoldTable &t, GresList gres)
{
	Hold hold;
	hold.key = key(1);
	hold.node = "n1";
	hold.cores = {0};
	hold.gres = std::move(gres);
	t.adopt(std::move(hold));
}

TEST_CASE("a device that a pod holds, and of which its job knows nothing, is masked beside that job until the pod is gone")
{
	HoldTable t;
	adopt_with(t, gpus({3}));
	Job of = job(1, {0});
	of.gres = GENERATE(GresList{}, GresList{{"gpu", "", 1, {2}}}); // ... or has another one, until they are exchanged
	t.job_started(key(1), of);
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	CHECK(t.masks()->masks[0]->cores.empty());
	SECTION("also when the job has ended before the pod")
	{
		auto all = of.gres.empty() ? std::vector<std::uint16_t>{3} : std::vector<std::uint16_t>{2, 3};
		t.job_ended(key(1), of.ref);
		CHECK(masked_gpus(t) == all);
	}
	CHECK(t.release(key(1)) == HoldTable::Cover::masked);
	t.let_masks_go();
	CHECK_FALSE(t.masks());
}

TEST_CASE("a device that a pod's job has not stays the pod's as long as it is not known whether it has it")
{
	HoldTable t;
	adopt_with(t, gpus({2, 3}));
	Job of = job(1, {0});
	of.gres = gpus({2});
	t.job_started(key(1), of);
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	(void) t.settle(key(1), of.ref, true);
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	CHECK_FALSE(t.settle(key(1), of.ref, true)); // it is
	REQUIRE(t.settle(key(1), of.ref));
	t.let_masks_go();
	CHECK(masked_gpus(t).empty());
}

TEST_CASE("what a pod holds no more when its job is what it has goes under slurmctld's locks")
{
	HoldTable t;
	adopt_with(t, gpus({2, 3}));
	Job of = job(1, {0});
	of.gres = gpus({2});
	t.job_started(key(1), of);
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	REQUIRE(t.settle(key(1), of.ref));
	CHECK(masked_gpus(t) == std::vector<std::uint16_t>{3});
	t.let_masks_go();
	CHECK_FALSE(t.masks());
}

TEST_CASE("devices are masked while a pod without a running job holds them or any pod shares them, whatever the order of events")
{
	for (unsigned seed = 1; seed <= 300; seed++) {
		std::mt19937 random(seed);
		HoldTable t;
		std::map<int, std::set<std::uint16_t>> held; // pod -> what it shares; its job has the device of its own number
		std::set<int> running;
		for (int step = 0; step < 150; step++) {
			const int n = static_cast<int>(random() % 5);
			const auto d = static_cast<std::uint16_t>(random() % 5);
			const JobRef ref{static_cast<std::uint32_t>(100 + n), 1000};
			Job of = job(ref.id, {static_cast<std::uint16_t>(n)});
			of.gres = gpus({static_cast<std::uint16_t>(n)});
			switch (random() % 6) {
			case 0:
				of.state = random() % 3 ? SK8_JOB_RUNNING : SK8_JOB_SUSPENDED; // its devices stay its own
				t.job_started(key(n), of);
				running.insert(n);
				break;
			case 1:
				t.job_ended(key(n), ref);
				running.erase(n);
				break;
			case 2:
				if (t.place(key(n), ref))
					held.try_emplace(n);
				break;
			case 3:
				t.release(key(n));
				held.erase(n);
				break;
			case 4: {
				const bool others = std::ranges::any_of(held, [&](const auto &h) { return h.first != n && (h.first == d || h.second.contains(d)); });
				const bool shared = t.share(key(n), gpus({d})).has_value();
				CAPTURE(seed, step);
				REQUIRE(shared == (held.contains(n) && others));
				if (shared)
					held.at(n).insert(d);
				break;
			}
			case 5: {
				const Ledger saved = t.ledger("c"); // slurmctld starts anew
				t.restore(saved);
				running.clear();
				break;
			}
			}
			t.let_masks_go();
			std::set<std::uint16_t> expected;
			for (const auto &[pod, shares] : held) {
				expected.insert(shares.begin(), shares.end());
				if (!running.contains(pod))
					expected.insert(static_cast<std::uint16_t>(pod));
			}
			const auto masked = masked_gpus(t);
			CAPTURE(seed, step);
			REQUIRE(std::set(masked.begin(), masked.end()) == expected);
		}
	}
}

TEST_CASE("the saved ledger survives being cut anywhere")
{
	const Hold a{key(1), "n1", {0, 7}, 0, 100};
	Hold b{key(2), "n2", {}, 3, 5, true};
	b.shared = gpus({1, 2});
	const Released r{key(3), "root (uid 0)"};
	const std::string text = "{\"v\":1}\n" + journal_line(a) + journal_line(b) + journal_line(r) + journal_line(key(1));
	auto all = parse_journal(text);
	REQUIRE(all);
	CHECK(all->holds == std::vector<Hold>{b});
	CHECK(all->released == std::vector<Released>{r});
	for (std::size_t cut = 0; cut < text.size(); cut++) {
		CAPTURE(cut);
		CHECK(parse_journal(text.substr(0, cut)).ok()); // a torn last line was never acknowledged
	}
}

TEST_CASE("the saved ledger says how many CPUs a pod requests, and one of a former version does not")
{
	Hold h{key(1), "n1", {0, 7}, 1, 100};
	h.cpus = 6;
	const auto read = parse_journal("{\"v\":1}\n" + journal_line(h));
	REQUIRE(read);
	CHECK(read->holds == std::vector<Hold>{h});
	const auto former = parse_journal("{\"v\":1}\n{\"hold\":\"" + key(1).mark() +
					  "\",\"node\":\"n1\",\"cores\":[0,7],\"more\":1,\"mb\":100}\n");
	REQUIRE(former);
	h.cpus = 0;
	CHECK(former->holds == std::vector<Hold>{h});
}

TEST_CASE("a hold has as many cores as its CPUs need where a core has fewer threads than before, and never fewer than it had")
{
	struct Row {
		std::uint32_t cpus, threads, more; // of a hold of two cores and another one
	};
	for (const Row &row : {Row{6, 2, 1}, Row{6, 1, 4}, Row{5, 2, 1}, Row{5, 1, 3}, Row{6, 8, 1}, Row{6, 0, 4}, Row{0, 1, 1}}) {
		CAPTURE(row.cpus, row.threads);
		Hold h{key(1), "n1", {0, 7}, 1, 100};
		h.cpus = row.cpus;
		fit_cores(h, row.threads);
		CHECK(h.cores == std::vector<std::uint16_t>{0, 7});
		CHECK(h.more_cores == row.more);
	}
}

TEST_CASE("a damaged ledger is refused with the line, not half believed")
{
	for (const char *line : {"{}", "[]", "x", "{\"hold\":\"k8s:c/ns/p\",\"node\":\"n\",\"cores\":[],\"more\":0,\"mb\":0}",
				 "{\"hold\":\"k8s:c/ns/p/u\",\"node\":\"\",\"cores\":[],\"more\":0,\"mb\":0}",
				 "{\"hold\":\"k8s:c/ns/p/u\",\"node\":\"n\",\"cores\":[-1],\"more\":0,\"mb\":0}",
				 "{\"hold\":\"k8s:c/ns/p/u\",\"node\":\"n\",\"cores\":[70000],\"more\":0,\"mb\":0}",
				 "{\"hold\":\"k8s:c/ns/p/u\",\"node\":\"n\",\"cores\":[],\"more\":-1,\"mb\":0}",
				 "{\"hold\":\"k8s:c/ns/p/u\",\"node\":\"n\",\"cores\":[],\"more\":0,\"mb\":0,\"shared\":1}",
				 "{\"hold\":\"k8s:c/ns/p/u\",\"node\":\"n\",\"cores\":[],\"more\":0,\"mb\":0,\"cpus\":-1}",
				 "{\"hold\":\"k8s:c/ns/p/u\",\"node\":\"n\",\"cores\":[],\"more\":0,\"mb\":0,\"cpus\":\"4\"}",
				 "{\"free\":\"nonsense\"}", "{\"gone\":\"nonsense\",\"by\":\"root\"}",
				 "{\"gone\":\"k8s:c/ns/p/u\"}", "{\"gone\":\"k8s:c/ns/p/u\",\"by\":\"a\\nb\"}"}) {
		CAPTURE(line);
		auto r = parse_journal(std::string("{\"v\":1}\n") + line + "\n");
		REQUIRE_FALSE(r.ok());
		CHECK(r.error().message.starts_with("line 2 "));
	}
	CHECK_FALSE(parse_journal("{\"v\":2}\n").ok());
}

TEST_CASE("marks are read back exactly, and nothing else is taken for one")
{
	const PodKey k{"prod", "team-a", "web-0", "8f1c"};
	CHECK(k.mark() == "k8s:prod/team-a/web-0/8f1c");
	CHECK(PodKey::from_mark(k.mark()) == k);
	for (const char *bad : {"", "k8s:", "k8s:a/b/c", "k8s:a/b/c/", "k8s:a//c/d", "k8s:a/b/c/d/e", "K8s:a/b/c/d", "x"}) {
		CAPTURE(bad);
		CHECK_FALSE(PodKey::from_mark(bad));
	}
}

TEST_CASE("a node that has all its pods is told at once, and no more when masks go")
{
	HoldTable t;
	const Full both{true, true, 2}, pods{true, false, 0};
	const auto told = [&](const std::string &node) {
		const auto snapshot = t.masks();
		if (snapshot)
			for (const auto &m : snapshot->masks)
				if (m->node == node)
					return m->full;
		return Full{};
	};
	CHECK_FALSE(t.set_full("c", {{"n1", both}}));
	CHECK(told("n1") == both);
	CHECK_FALSE(t.set_full("c", {{"n1", both}, {"n2", pods}}));
	CHECK(told("n2") == pods);
	CHECK_FALSE(t.set_full("other", {{"n3", pods}}));

	SECTION("it is not full any more")
	{
		CHECK(t.set_full("c", {{"n2", pods}}));
		CHECK(told("n1") == both);
		SECTION("and full again before anybody knew")
		{
			CHECK_FALSE(t.set_full("c", {{"n1", both}, {"n2", pods}}));
			CHECK_FALSE(t.let_masks_go());
			CHECK(told("n1") == both);
		}
		SECTION("masks go")
		{
			CHECK(t.let_masks_go());
			CHECK(told("n1") == Full{});
			CHECK(told("n2") == pods);
			CHECK(told("n3") == pods);
			CHECK_FALSE(t.masks_can_go());
		}
	}
	SECTION("what it is full for changes")
	{
		CHECK(t.set_full("c", {{"n1", pods}, {"n2", pods}}));
		CHECK(told("n1") == both);
		CHECK(t.let_masks_go());
		CHECK(told("n1") == pods);
	}
	SECTION("other masks of the node come and go")
	{
		t.adopt({key(1), "n1", {3}});
		CHECK(told("n1") == both);
		(void) t.release(key(1));
		(void) t.let_masks_go();
		CHECK(told("n1") == both);
		(void) t.set_full("c", {});
		(void) t.set_full("other", {});
		CHECK(t.let_masks_go());
		CHECK_FALSE(t.masks());
	}
}

TEST_CASE("missing devices that turn out to be others stay masked until Slurm's locks are held")
{
	HoldTable t;
	const Gres first{"gpu", "", 1, {0}}, other{"gpu", "", 1, {1}}, unknown{"gpu", "", 1, {}};
	const auto [before, after] = GENERATE_COPY(table<Gres, Gres>({{first, other}, {unknown, first}, {first, unknown}}));
	CHECK_FALSE(t.set_missing("c", "n1", {before}));
	CHECK(t.set_missing("c", "n1", {after}));
	GresList both{before, after};
	CHECK(t.masks()->masks[0]->gres == merged(both));
	CHECK(t.let_masks_go());
	CHECK(t.masks()->masks[0]->gres == GresList{after});
	CHECK_FALSE(t.set_missing("c", "n1", {after, {"hca", "", 1, {}}})); // more: nothing comes back
}

TEST_CASE("missing devices are masked beside what pods hold, and come back only under Slurm's locks")
{
	HoldTable t;
	const GresList one{{"gpu", "", 1, {}}}, three{{"gpu", "", 3, {}}};
	CHECK_FALSE(t.set_missing("c", "n1", one));
	Hold pod;
	pod.key = key(1);
	pod.node = "n1";
	pod.foreign = true;
	pod.gres = {{"gpu", "", 2, {}}};
	t.hold_foreign(pod);
	REQUIRE(t.masks());
	CHECK(t.masks()->masks[0]->gres == three);
	CHECK(t.ledger("c").holds.size() == 1); // no pod: not saved
	t.jobs_running({});
	CHECK(t.masks()->masks[0]->gres == three);
	CHECK_FALSE(t.set_missing("c", "n1", {{"gpu", "", 2, {}}}));
	CHECK(t.masks()->masks[0]->gres == GresList{{"gpu", "", 4, {}}});
	CHECK(t.set_missing("c", "n1", one));
	CHECK(t.masks()->masks[0]->gres[0].count >= 4);
	CHECK(t.let_masks_go());
	CHECK(t.masks()->masks[0]->gres == three);
	t.release(pod.key);
	t.forget_missing("another");
	t.let_masks_go();
	CHECK(t.masks()->masks[0]->gres == one);
	t.forget_missing("c");
	CHECK(t.masks());
	t.let_masks_go();
	CHECK_FALSE(t.masks());
}

TEST_CASE("a job that has its node without others' pods is kept from what stays, and from all of it where one stays that should go")
{
	HoldTable t;
	Hold daemon{key(1), "n1"}, web{key(2), "n1"}, bare{key(3), "n1"};
	for (Hold *hold : {&daemon, &web, &bare}) {
		hold->foreign = true;
		hold->milli_cpu = 1000;
	}
	t.hold_foreign(daemon);
	REQUIRE(t.masks());
	CHECK_FALSE(t.masks()->masks[0]->exclusive); // nothing is to go: one mask for all
	web.in_way = Hold::InWay::evictable;
	t.hold_foreign(web);
	t.set_full("c", {{"n1", {.for_pods = true, .for_jobs = true}}});
	{
		const auto masks = t.masks();
		const NodeMask &mask = *masks->masks[0];
		CHECK(mask.milli_cpu == 2000);
		CHECK(mask.full.for_jobs);
		REQUIRE(mask.exclusive);
		CHECK(mask.exclusive->node == "n1");
		CHECK(mask.exclusive->milli_cpu == 1000);
		CHECK_FALSE(mask.exclusive->full.any());
		CHECK_FALSE(mask.exclusive->whole);
		CHECK_FALSE(mask.exclusive->exclusive);
	}
	bare.in_way = Hold::InWay::stays;
	t.hold_foreign(bare);
	CHECK_FALSE(t.masks()->masks[0]->whole);
	CHECK(t.masks()->masks[0]->exclusive->whole);
	bare.in_way = Hold::InWay::evictable; // it may go now: told to Slurm under its locks
	t.hold_foreign(bare);
	CHECK(t.masks()->masks[0]->exclusive->whole);
	t.let_masks_go();
	CHECK_FALSE(t.masks()->masks[0]->exclusive->whole);
	CHECK(t.beside()(NativeShare{.node = "n1"}));
	CHECK_FALSE(t.beside()(NativeShare{.node = "n2"}));
}
