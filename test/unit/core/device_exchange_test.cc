// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods of jobs that run, made anew, to which the kubelet has given other devices than the jobs go on using.
#include <random>

#include "lib/core/device_exchange.h"
#include "test/unit/catch.h"
#include "test/unit/core/reservation_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

using Indices = std::vector<std::uint16_t>;

// A node with four devices, of which an agent tells.
struct Exchanges : ReservationWorld {
	Exchanges()
		: ReservationWorld([](ClusterSettings &s) { s.resources = {{"example.com/card", "gpu", ""}}; })
	{
		allocatable = {{"example.com/card", 4}};
		again();
		tell_all();
	}
	void again(const std::vector<NativeJobPtr> &running = {})
	{
		restart();
		controller = std::make_unique<Reservations>(
			settings,
			ReservationPorts{.slurm = *this,
					 .kube = *this,
					 .timer = timer,
					 .user = [](std::uint32_t) { return "alice"; },
					 .cover_changed = [this](const std::string &uid) { changed.push_back(uid); },
					 .tell_devices = [this](const PodKey &pod, const std::string &what) { events.push_back(pod.uid + " " + what); }},
			*nodes);
		list();
		controller->jobs_replaced(running);
	}
	static std::string name_of(std::uint32_t id) { return reservation_name({id, 1000 + id}, "n1"); }
	std::string uid_of(std::uint32_t id) const { return pods.contains(name_of(id)) ? pods.at(name_of(id)).meta.uid : ""; }
	// One that has these in Slurm, and whose pod has them, too.
	void launch(std::uint32_t id, Indices devices, const std::string &image = "")
	{
		auto with = std::make_shared<NativeJob>(*job(id, 1));
		with->image = image;
		with->shares[0].gres = {{"gpu", "", devices.size(), devices}};
		controller->arrived(with);
		run();
		if (!image.empty()) {
			change_pod(name_of(id), [](ForeignPod &p) { p.container = std::make_shared<JobContainerState>(JobContainerState{.runs = true}); });
			run();
		}
		give(id, devices);
		run();
		in_slurm[id] = std::move(devices);
	}
	void job_ends(std::uint32_t id)
	{
		controller->ended({id, 1000 + id});
		controller->left({id, 1000 + id}, {});
		in_slurm.erase(id);
		run();
	}
	void give(std::uint32_t id, Indices devices)
	{
		given[uid_of(id)] = std::move(devices);
		tell_all();
	}
	// What kubelet and agent say of all pods that there are.
	void tell_all()
	{
		std::set<std::string> there;
		for (const auto &[name, p] : pods)
			there.insert(p.meta.uid);
		std::erase_if(given, [&](const auto &of) { return !there.contains(of.first); });
		NodeDevices said{{{"example.com/card", {"a", "b", "c", "d"}}}, {}};
		for (const auto &[uid, devices] : given)
			said.pods[uid]["example.com/card"] = devices;
		auto n = std::make_shared<kube::Node>(*nodes->find("n1"));
		n->meta.annotations["slurm-k8s.io/devices"] = devices_text(said);
		nodes->change(n);
		controller->node_changed("n1");
	}
	Indices masked(const std::string &uid) const { return devices_named(controller->covered(uid).beyond, "gpu"); }
	Indices masked(std::uint32_t id) const { return masked(uid_of(id)); }
	std::vector<std::string> said() const { return controller->other_devices("n1"); }

	std::map<std::string, Indices> given;        // by uid
	std::map<std::uint32_t, Indices> in_slurm;   // by job
	std::vector<std::string> changed, events;
};

} // namespace

TEST_CASE("device exchange: what becomes of a pod with other devices than its job")
{
	using enum ExchangeStep;
	CHECK(next_step(ExchangeFacts{}) == none);
	CHECK(next_step(ExchangeFacts{.container = true, .held = true, .paused = true}) == none);
	CHECK(next_step(ExchangeFacts{.other = true}) == give_back);
	CHECK(next_step(ExchangeFacts{.other = true, .held = true}) == waits);
	CHECK(next_step(ExchangeFacts{.other = true, .paused = true}) == waits);
	CHECK(next_step(ExchangeFacts{.other = true, .container = true}) == stays);
	CHECK(next_step(ExchangeFacts{.other = true, .container = true, .held = true}) == stays);
}

TEST_CASE("device exchange: tries get rarer, and there is no last one")
{
	CHECK(exchange_pause(0) == Millis(5'000));
	for (int tries = 1; tries < 100; tries++)
		CHECK(exchange_pause(tries) == std::min(Millis(600'000), exchange_pause(tries - 1) * 2));
}

TEST_CASE("device exchange: devices of one that are not among others")
{
	const GresList two{{"gpu", "a100", 2, {0, 3}}, {"fpga", "", 1, {0}}, {"token", "", 7, {}}};
	CHECK(devices_without(two, two).empty());
	CHECK(devices_without(two, {}) == GresList{{"gpu", "a100", 2, {0, 3}}, {"fpga", "", 1, {0}}});
	CHECK(devices_without(two, {{"gpu", "h100", 1, {3}}, {"gpu", "", 1, {1}}}) == GresList{{"gpu", "a100", 1, {0}}, {"fpga", "", 1, {0}}});
	CHECK(devices_without({}, two).empty());
}

TEST_CASE("device exchange: a pod that was made anew is exchanged until it has the devices that its job goes on using")
{
	Exchanges w;
	w.launch(7, {0, 1});
	REQUIRE(w.fate(7) == "launched");
	const std::string first = w.uid_of(7);
	w.end_pod(w.name_of(7)); // somebody deletes it
	w.run();
	const std::string second = w.uid_of(7);
	REQUIRE(second != first);
	w.changed.clear();
	w.given[second] = {1, 2};
	w.tell_all();
	CHECK(w.masked(second) == Indices{2}); // and 1 is the job's in Slurm
	CHECK(w.changed == std::vector<std::string>{second});
	CHECK(w.controller->covers(second));
	CHECK(w.said().size() == 1);
	CHECK(w.said().at(0).find("of job 7, made anew, gpu:2(1-2), and the job goes on using gpu:2(0-1)") != std::string::npos);
	CHECK(w.events == std::vector<std::string>{second + " " + w.said().at(0)});
	w.run();
	const std::string third = w.uid_of(7);
	REQUIRE(third != second);
	REQUIRE(!third.empty()); // without a pause
	w.give(7, {2, 3});
	w.run(Millis(4'000));
	CHECK(w.uid_of(7) == third); // the next try is not due
	CHECK(w.masked(7) == Indices{2, 3});
	CHECK(w.events.size() == 2);
	w.run(Millis(1'100));
	const std::string fourth = w.uid_of(7);
	REQUIRE(fourth != third);
	w.give(7, {0, 1});
	w.run(Millis(60'000));
	CHECK(w.uid_of(7) == fourth);
	CHECK(w.masked(7).empty());
	CHECK(w.said().empty());
	CHECK(w.given.at(fourth) == Indices{0, 1});
	CHECK(w.ReservationWorld::given.empty()); // Slurm was asked nothing
	CHECK(w.ended.empty());
	CHECK(w.created == 4);
}

TEST_CASE("device exchange: a pod waits while another one has a device of its job")
{
	Exchanges w;
	w.launch(7, {0, 1});
	w.end_pod(w.name_of(7));
	w.run();
	w.foreign("thief", "default", 0, "n1", {{"example.com/card", 1}});
	w.given[w.pods.at("thief").meta.uid] = {0};
	w.give(7, {1, 2});
	const std::string uid = w.uid_of(7);
	w.run(Millis(1'000'000));
	CHECK(w.uid_of(7) == uid);
	CHECK(w.masked(7) == Indices{2});
	REQUIRE(w.said().size() == 1);
	CHECK(w.said().at(0).find("that with uid " + w.pods.at("thief").meta.uid) != std::string::npos);
	w.end_pod("thief");
	w.tell_all();
	w.run();
	CHECK(w.uid_of(7) != uid);
	CHECK(w.created == 3);
}

TEST_CASE("device exchange: nothing is given back while nobody hears of the kubelet")
{
	Exchanges w;
	w.launch(7, {0});
	w.end_pod(w.name_of(7));
	w.run();
	const std::string uid = w.uid_of(7);
	w.set_ready("n1", false);
	w.give(7, {3});
	w.run(Millis(1'000'000));
	CHECK(w.uid_of(7) == uid);
	CHECK(w.masked(7) == Indices{3});
	w.set_ready("n1", true);
	w.run();
	CHECK(w.uid_of(7) != uid);
}

TEST_CASE("device exchange: a pod in which tasks run stays, and is told of")
{
	Exchanges w;
	w.launch(7, {0}, "busybox");
	REQUIRE(w.fate(7) == "launched");
	w.set_ready("n1", false); // else somebody has evicted it, and the job with it
	w.end_pod(w.name_of(7));
	w.run();
	w.set_ready("n1", true);
	w.run();
	const std::string uid = w.uid_of(7);
	w.give(7, {3});
	w.run(Millis(100'000));
	CHECK(w.uid_of(7) == uid);
	CHECK(w.masked(7) == Indices{3});
	CHECK(w.said().size() == 1);
	w.job_ends(7);
	CHECK(w.said().empty());
	CHECK(w.pods.empty());
}

// All jobs are drained off their pods at once, and each pod gets what another's job has: no kubelet counts one of these as free.
TEST_CASE("device exchange: pods that have each other's devices wait, nothing more is masked, and what a job leaves behind is")
{
	Exchanges w;
	w.launch(7, {0});
	w.launch(8, {1});
	w.end_pod(w.name_of(7));
	w.end_pod(w.name_of(8));
	w.run();
	const std::string uid = w.uid_of(7);
	w.given = {{w.uid_of(7), {1}}, {w.uid_of(8), {0}}};
	w.tell_all();
	w.run(Millis(100'000));
	CHECK(w.uid_of(7) == uid);
	CHECK(w.masked(7).empty());
	CHECK(w.masked(8).empty());
	CHECK(w.said().size() == 2);
	SECTION("the other job ends, and Slurm could give its device away")
	{
		w.controller->ended({8, 1008});
		CHECK(w.masked(7) == Indices{1});
	}
	SECTION("the other job is gone")
	{
		w.job_ends(8);
		w.tell_all();
		w.run();
		CHECK(w.uid_of(7) != uid);
		w.give(7, {0});
		CHECK(w.masked(7).empty());
		CHECK(w.said().empty());
	}
}

TEST_CASE("device exchange: a slurmctld that starts again masks and exchanges what it finds")
{
	Exchanges w;
	w.launch(7, {0});
	w.end_pod(w.name_of(7));
	w.run();
	w.given[w.uid_of(7)] = {2}; // and nobody is told any more
	const std::string uid = w.uid_of(7);
	auto running = std::make_shared<NativeJob>(*w.job(7, 1));
	running->shares[0].gres = {{"gpu", "", 1, {0}}};
	w.again({running});
	w.tell_all();
	CHECK(w.masked(uid) == Indices{2});
	w.run();
	CHECK(w.uid_of(7) != uid);
}

// A kubelet that chooses at random, and people who take pods at random. What a pod has and no job is masked as soon as it is
// told; a pod is given back only while nobody holds what its job wants; and at last each has its job's own.
TEST_CASE("device exchange: whatever is taken and given, nothing is anybody else's, and all comes right")
{
	const auto seed = GENERATE(range(1u, 60u));
	CAPTURE(seed);
	std::mt19937 dice(seed);
	Exchanges w;
	w.launch(7, {0, 2});
	w.launch(8, {1});
	const auto free_devices = [&] {
		std::set<std::uint16_t> free{0, 1, 2, 3};
		for (const auto &[name, p] : w.pods)
			if (const auto it = w.given.find(p.meta.uid); it != w.given.end())
				for (const auto d : it->second)
					free.erase(d);
		Indices out(free.begin(), free.end());
		std::ranges::shuffle(out, dice);
		return out;
	};
	const auto kubelet_gives = [&] {
		for (const auto &[name, p] : w.pods) {
			const auto count = static_cast<std::size_t>(p.extended.empty() ? 0 : p.extended.begin()->second);
			Indices some = free_devices();
			if (w.given.contains(p.meta.uid) || some.size() < count)
				continue;
			some.resize(count);
			std::ranges::sort(some);
			w.given[p.meta.uid] = some;
		}
	};
	const auto judge = [&] {
		std::set<std::uint16_t> in_slurm;
		for (const auto &[id, devices] : w.in_slurm)
			in_slurm.insert(devices.begin(), devices.end());
		for (const auto &[id, devices] : w.in_slurm) {
			for (const auto d : w.masked(id))
				CHECK_FALSE(in_slurm.contains(d));
			const auto got = w.given.find(w.uid_of(id));
			if (got == w.given.end() || !w.controller->covers(w.uid_of(id)))
				continue;
			for (const auto d : got->second)
				CHECK((in_slurm.contains(d) || std::ranges::count(w.masked(id), d) == 1));
		}
	};
	for (int round = 0; round < 40; round++) {
		if (const auto id = 7 + dice() % 2; round < 20 && dice() % 3 == 0 && w.pods.contains(w.name_of(id)))
			w.end_pod(w.name_of(id));
		kubelet_gives();
		w.tell_all();
		judge();
		w.run(Millis(dice() % 20'000));
	}
	for (int round = 0; round < 200 && !w.said().empty(); round++) {
		w.run(Millis(600'000));
		kubelet_gives();
		w.tell_all();
		judge();
	}
	// pods that have each other's devices wait for ever, and may: all that jobs use is held
	std::set<std::uint16_t> held, used{0, 1, 2};
	for (const auto &[uid, devices] : w.given)
		held.insert(devices.begin(), devices.end());
	CHECK(held == used);
	CHECK(w.ReservationWorld::given.empty());
}
