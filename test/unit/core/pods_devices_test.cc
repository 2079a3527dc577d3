// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Devices that a kubelet has chosen for pods: what Slurm counts for their jobs follows.
#include <random>

#include "lib/core/names.h"
#include "lib/core/pod_devices.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

using Indices = std::vector<std::uint16_t>;

struct Gpus {
	World w;
	NodeDevices told{{{"nvidia.com/gpu", {"a", "b", "c", "d", "e", "f", "g", "h"}}}, {}};

	// A pod on n1 whose job has these in Slurm.
	void runs(const std::string &name, const Indices &devices)
	{
		w.create_pod(name, [&](kube::Pod &p) { p.request.extended["nvidia.com/gpu"] = std::ssize(devices); });
		w.run(Millis(1000));
		w.job_of(name)->gres = {{"gpu", "a100", devices.size(), devices}};
		w.slurm_starts(name, "n1", {static_cast<std::uint16_t>(w.jobs.size())});
		w.run();
		w.kubelet_starts(name);
		w.run();
	}
	// The agent tells, and nothing is done about it yet.
	void kubelet_gives(const std::string &name, const Indices &devices)
	{
		told.pods[w.pod(name).meta.uid]["nvidia.com/gpu"] = devices;
	}
	void tell()
	{
		auto node = std::make_shared<kube::Node>(*w.nodes[0]);
		node->meta.annotations[std::string(names::devices)] = devices_text(told);
		w.nodes[0] = node;
		w.controller->node_changed(node);
		w.run();
	}
	Indices of(const std::string &name) { return w.job_of(name)->gres.at(0).devices; }
	Indices held(const std::string &name) { return w.holds->held_by({"c", "team-a", name, w.pod(name).meta.uid})->hold.gres.at(0).devices; }
};

} // namespace

TEST_CASE("a pod's job has in Slurm what its kubelet gave the pod, in the ledger too, and the pod's annotation says so")
{
	Gpus g;
	g.runs("p", {0, 1});
	g.kubelet_gives("p", {1, 3});
	g.tell();
	CHECK(g.of("p") == Indices{1, 3});
	CHECK(g.held("p") == Indices{1, 3});
	CHECK(g.w.journal.saved().holds.at(0).gres.at(0).devices == Indices{1, 3});
	CHECK(g.w.pod("p").meta.annotations.at("slurm-k8s.io/gres-devices") == "gpu:a100:2(1,3)");
	CHECK(g.w.count("devices") == 1);
	g.tell();
	CHECK(g.w.count("devices") == 1);
}

TEST_CASE("nothing is asked of Slurm while not all of a pod's devices are known, or if they are the job's")
{
	Gpus g;
	g.runs("p", {0, 1});
	g.tell(); // nothing of this pod
	g.kubelet_gives("p", {3});
	g.tell();
	g.kubelet_gives("p", {0, 1});
	g.tell();
	CHECK(g.w.count("devices") == 0);
}

TEST_CASE("two pods that have each other's devices exchange them, and three in a circle do")
{
	Gpus g;
	const int pods = GENERATE(2, 3);
	for (int i = 0; i < pods; i++)
		g.runs("p" + std::to_string(i), {static_cast<std::uint16_t>(i)});
	for (int i = 0; i < pods; i++)
		g.kubelet_gives("p" + std::to_string(i), {static_cast<std::uint16_t>((i + 1) % pods)});
	g.tell();
	for (int i = 0; i < pods; i++) {
		CHECK(g.of("p" + std::to_string(i)) == Indices{static_cast<std::uint16_t>((i + 1) % pods)});
		CHECK(g.held("p" + std::to_string(i)) == g.of("p" + std::to_string(i)));
	}
}

TEST_CASE("a device that a job of Slurm's own has is asked for until it is free, and people are told once")
{
	Gpus g;
	g.w.natives_devices = {5};
	g.runs("p", {0});
	g.kubelet_gives("p", {5});
	g.tell();
	g.w.run(Millis(300'000));
	CHECK(g.of("p") == Indices{0});
	CHECK(g.w.count("devices") > 3);
	CHECK(g.w.count("devices") < 20);
	const std::string events = g.w.events_text(), word = "SlurmOtherDevices: the kubelet has given it gpu(5) of node n1";
	CHECK(events.find(word) != events.npos);
	CHECK(events.find(word, events.find(word) + 1) == events.npos);
	g.w.natives_devices.clear();
	g.w.run(Millis(60'000));
	CHECK(g.of("p") == Indices{5});
}

TEST_CASE("a device that a pod holds whose Binding has no answer is left to it until that is known")
{
	Gpus g;
	g.runs("p", {0});
	g.w.create_pod("q", [](kube::Pod &p) { p.request.extended["nvidia.com/gpu"] = 1; });
	g.w.run(Millis(1000));
	g.w.job_of("q")->gres = {{"gpu", "a100", 1, {3}}};
	g.w.fail["bind"] = {0};
	g.w.fail["get"] = std::deque<int>(20, 0);
	g.w.slurm_starts("q", "n1", {5});
	g.w.run();
	g.w.slurm_ends("q", SK8_JOB_NODE_FAIL);
	g.kubelet_gives("p", {3}); // so q has something else: perhaps what p's job has
	g.tell();
	g.w.run(Millis(10'000));
	CHECK(g.of("p") == Indices{0});
	g.w.fail["get"].clear();
	g.w.run(Millis(100'000));
	CHECK(g.of("p") == Indices{3});
}

TEST_CASE("a Slurm that says yes and does nothing is not asked without end")
{
	Gpus g;
	g.w.devices_stay = true;
	g.runs("p", {0});
	g.kubelet_gives("p", {5});
	g.tell();
	g.w.run(Millis(300'000));
	CHECK(g.w.count("devices") < 20);
	CHECK(g.w.events_text().find("it has others all the same") != std::string::npos);
}

TEST_CASE("two pods that are both said to have one device ask for it without end, but seldom, and take nothing from each other")
{
	Gpus g;
	g.runs("p", {0});
	g.runs("q", {1});
	g.kubelet_gives("p", {1});
	g.kubelet_gives("q", {1});
	g.tell();
	g.w.run(Millis(60'000));
	CHECK(g.of("p") == Indices{0});
	CHECK(g.of("q") == Indices{1});
	CHECK(g.w.count("devices") < 15);
}

TEST_CASE("what a slurmctld that was away has missed is put right when it is back")
{
	Gpus g;
	g.runs("p", {0});
	g.kubelet_gives("p", {4});
	auto node = std::make_shared<kube::Node>(*g.w.nodes[0]);
	node->meta.annotations[std::string(names::devices)] = devices_text(g.told);
	g.w.nodes[0] = node;
	g.w.restart();
	g.w.run(Millis(1000));
	CHECK(g.of("p") == Indices{4});
	CHECK(g.held("p") == Indices{4});
}

TEST_CASE("whatever a kubelet gives to whom, all jobs come to have it")
{
	std::mt19937 random(GENERATE(range(1u, 60u)));
	Gpus g;
	const auto some = [&](std::uint16_t n) { return std::uniform_int_distribution<std::uint16_t>(0, n)(random); };
	const auto shuffled = [&] {
		Indices all{0, 1, 2, 3, 4, 5, 6, 7};
		std::ranges::shuffle(all, random);
		return all;
	};
	const Indices slurms = shuffled(), kubelets = shuffled();
	std::map<std::string, Indices> given;
	for (std::size_t at = 0; at < slurms.size();) {
		const std::size_t count = std::min<std::size_t>(1 + some(2), slurms.size() - at);
		const auto part = [&](const Indices &of) {
			Indices out(of.begin() + static_cast<std::ptrdiff_t>(at), of.begin() + static_cast<std::ptrdiff_t>(at + count));
			std::ranges::sort(out);
			return out;
		};
		const std::string name = "p" + std::to_string(at);
		g.runs(name, part(slurms));
		given[name] = part(kubelets);
		at += count;
	}
	for (const auto &[name, devices] : given) {
		g.kubelet_gives(name, devices);
		if (some(1))
			g.tell(); // one by one, or several at a time
	}
	g.tell();
	g.w.run(Millis(100'000));
	for (const auto &[name, devices] : given) {
		CHECK(g.of(name) == devices);
		CHECK(g.held(name) == devices);
	}
}
