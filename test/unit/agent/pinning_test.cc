// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/pinning.h"

#include <algorithm>

#include "lib/agent/agent.h"
#include "lib/core/names.h"
#include "test/unit/agent/jobs.h"
#include "test/unit/agent/machine.h"
#include "test/unit/catch.h"
#include "test/unit/kube/virtual_clock.h"

using namespace sk8;
using namespace sk8::agent;

namespace {

// A node with four cores, and pods of one container.
struct Node {
	Machine machine;
	VirtualClock clock;
	Jobs jobs;
	CpuTopology topology{{{0}, {1}, {2}, {3}}};
	Pinning pinning;

	explicit Node(bool pin = true) : pinning(clock, jobs, topology, PodCgroups(machine.folder.path, "/"), machine.folder.path, pin,
						  Confinement({}, PodCgroups(machine.folder.path, "/"), machine.folder.path + "/confined"))
	{
		machine.v1("kubepods", "0-3");
	}
	void kubelet_makes(const std::string &uid, const std::string &cpus = "0-3") const
	{
		machine.v1("kubepods/pod" + uid, cpus);
		machine.v1("kubepods/pod" + uid + "/main", cpus);
	}
	void slurm_runs(std::uint32_t id, const std::string &name, const std::string &uid, std::vector<int> cores)
	{
		jobs.known[id] = {"k8s:c/team/" + name + "/" + uid, true, std::move(cores)};
	}
	static PlacedPod pod(const std::string &name, const std::string &uid, std::uint32_t job)
	{
		return {"team", name, uid, job};
	}
	std::string cpus(const std::string &uid) const
	{
		auto list = parse_cpu_list(machine.cpus_v1("kubepods/pod" + uid + "/main"));
		return list ? cpu_list(*list) : "?";
	}
	Millis wait(Millis time)
	{
		clock.advance(time);
		return pinning.round();
	}
};

} // namespace

TEST_CASE("pinning: a pod runs on the cores that Slurm gave its job, and nobody changes that for long")
{
	Node n;
	n.slurm_runs(7, "p", "u1", {1, 2});
	n.pinning.set_pods({Node::pod("p", "u1", 7)});
	CHECK(n.wait(Millis(0)) < Millis(1'000)); // its kubelet has not made the cgroup yet
	n.kubelet_makes("u1");
	CHECK(n.wait(Millis(200)) > Millis(1'000));
	CHECK(n.cpus("u1") == "1-2");
	CHECK(n.pinning.pinned() == std::map<std::string, CpuSet>{{"u1", {1, 2}}});
	n.kubelet_makes("u1"); // a kubelet that has started again
	n.wait(Millis(10'000));
	CHECK(n.cpus("u1") == "1-2");
	CHECK(n.jobs.asked == 1); // slurmctld is asked once
}

TEST_CASE("pinning: a pod whose job has other cores now is moved there")
{
	Node n;
	n.slurm_runs(7, "p", "u1", {1, 2});
	n.kubelet_makes("u1");
	n.pinning.set_pods({{"team", "p", "u1", 7, "1000 1-2"}});
	n.wait(Millis(0));
	REQUIRE(n.cpus("u1") == "1-2");
	SECTION("of the same job, which slurmctld has started again")
	{
		n.slurm_runs(7, "p", "u1", {3});
		n.pinning.set_pods({{"team", "p", "u1", 7, "1000 3"}});
	}
	SECTION("of another, since slurmctld has lost the first one")
	{
		n.jobs.known.clear();
		n.slurm_runs(8, "p", "u1", {3});
		n.pinning.set_pods({{"team", "p", "u1", 8, "1000 1-2"}});
	}
	n.wait(Millis(0));
	CHECK(n.cpus("u1") == "3");
	CHECK(n.pinning.pinned() == std::map<std::string, CpuSet>{{"u1", {3}}});
}

TEST_CASE("pinning: who writes another job's number onto his pod gets none of its cores")
{
	Node n;
	n.slurm_runs(7, "p", "u1", {0});
	n.slurm_runs(8, "other", "u2", {3});
	n.jobs.known[9] = {"", true, {2}};             // a job of Slurm's own
	n.jobs.known[10] = {"k8s:c/team/q/u3", false, {}}; // it has ended
	for (const char *uid : {"u1", "u3"})
		n.kubelet_makes(uid);
	n.pinning.set_pods({Node::pod("p", "u1", 8), Node::pod("q", "u3", GENERATE(7u, 9u, 10u, 11u))});
	n.wait(Millis(0));
	n.wait(Millis(100'000));
	CHECK(n.cpus("u1") == "0-3");
	CHECK(n.cpus("u3") == "0-3");
	CHECK(n.pinning.pinned().empty());
}

TEST_CASE("pinning: a slurmctld that does not answer is asked again, less and less often")
{
	Node n;
	n.slurm_runs(7, "p", "u1", {0});
	n.kubelet_makes("u1");
	n.jobs.answers = false;
	n.pinning.set_pods({Node::pod("p", "u1", 7)});
	for (int i = 0; i < 600; i++)
		n.wait(Millis(1'000));
	CHECK(n.jobs.asked > 5);
	CHECK(n.jobs.asked < 25);
	n.jobs.answers = true;
	n.wait(Millis(60'000));
	CHECK(n.cpus("u1") == "0");
}

TEST_CASE("pinning: a pod that is pinned stays so while slurmctld is away, and whatever its owner writes")
{
	Node n;
	n.slurm_runs(7, "p", "u1", {0});
	n.slurm_runs(8, "other", "u2", {3});
	n.kubelet_makes("u1");
	n.pinning.set_pods({Node::pod("p", "u1", 7)});
	n.wait(Millis(0));
	REQUIRE(n.cpus("u1") == "0");
	n.jobs.answers = GENERATE(false, true);
	n.pinning.set_pods({Node::pod("p", "u1", 8)});
	n.wait(Millis(0));
	CHECK(n.cpus("u1") == "0");
}

TEST_CASE("pinning: that the kernel gives a pod fewer CPUs is told once, and nothing is written again and again")
{
	static int told;
	Node n;
	n.slurm_runs(7, "p", "u1", {1, 2});
	n.machine.v2("kubepods", "0-1");
	n.machine.v2("kubepods/podu1", "0-1");
	n.pinning.set_pods({Node::pod("p", "u1", 7)});
	n.wait(Millis(0));
	told = 0;
	set_log_sink([](LogLevel, const char *) { told++; }, LogLevel::info);
	for (int i = 0; i < 5; i++) {
		n.machine.v2("kubepods/podu1", "1", "1-2");
		n.wait(Millis(10'000));
	}
	CHECK(told == 1);
	n.machine.v2("kubepods/podu1", "1-2", "1-2");
	n.wait(Millis(10'000));
	set_log_sink(nullptr, LogLevel::info);
	CHECK(n.pinning.pinned() == std::map<std::string, CpuSet>{{"u1", {1, 2}}});
}

TEST_CASE("pinning: a pod to which the kernel gives fewer CPUs than were written is not told to run on them")
{
	static std::string told;
	told.clear();
	Node n;
	n.slurm_runs(7, "p", "u1", {1, 2});
	n.machine.v2("kubepods", "0-1");
	n.machine.v2("kubepods/podu1", "0-1");
	n.pinning.set_pods({Node::pod("p", "u1", 7)});
	set_log_sink([](LogLevel, const char *line) { told += std::string(line) + "\n"; }, LogLevel::info);
	n.wait(Millis(0)); // it is written, and the kernel gives the pod what it had
	REQUIRE(n.machine.text("kubepods/podu1/cpuset.cpus") == "1-2");
	CHECK(told.find("runs on CPUs") == std::string::npos);
	CHECK(told.find("cannot be put on CPUs 1-2: only CPUs 0-1 are there") != std::string::npos);
	CHECK(n.pinning.pinned() == std::map<std::string, CpuSet>{{"u1", {0, 1}}});
	n.machine.v2("kubepods/podu1", "1", "1-2");
	n.wait(Millis(10'000));
	CHECK(n.pinning.pinned() == std::map<std::string, CpuSet>{{"u1", {1}}});
	told.clear();
	n.machine.v2("kubepods/podu1", "1-2", "1-2"); // CPU 2 is there again
	n.wait(Millis(10'000));
	CHECK(told.find("pod team/p uid u1 job 7: runs on CPUs 1-2\n") != std::string::npos);
	n.wait(Millis(10'000));
	set_log_sink(nullptr, LogLevel::info);
	CHECK(std::count(told.begin(), told.end(), '\n') == 1);
	CHECK(n.pinning.pinned() == std::map<std::string, CpuSet>{{"u1", {1, 2}}});
}

TEST_CASE("pinning: where it is switched off a pod gets all CPUs back")
{
	Node n(false);
	n.slurm_runs(7, "p", "u1", {0});
	n.kubelet_makes("u1", "0");
	n.pinning.set_pods({Node::pod("p", "u1", 7)});
	n.wait(Millis(0));
	CHECK(n.cpus("u1") == "0-3");
}

TEST_CASE("pinning: where the kubelet pins pods itself the agent pins none")
{
	Node n;
	n.slurm_runs(7, "p", "u1", {0});
	n.kubelet_makes("u1");
	n.pinning.set_pods({Node::pod("p", "u1", 7)});
	n.machine.file("cpu_manager_state", R"({"policyName":"static","defaultCpuSet":"0-3","checksum":1})");
	n.wait(Millis(0));
	CHECK(n.cpus("u1") == "0-3");
	n.machine.file("cpu_manager_state", R"({"policyName":"none","defaultCpuSet":"","checksum":1})");
	n.wait(Millis(10'000));
	CHECK(n.cpus("u1") == "0");
}

TEST_CASE("pinning: a core that the machine has not leaves the pod as it is")
{
	Node n;
	n.slurm_runs(7, "p", "u1", {9});
	n.kubelet_makes("u1");
	n.pinning.set_pods({Node::pod("p", "u1", 7)});
	n.wait(Millis(0));
	CHECK(n.cpus("u1") == "0-3");
}

TEST_CASE("pinning: a pod that ends while it is pinned is no trouble")
{
	Node n;
	n.slurm_runs(7, "p", "u1", {0});
	n.kubelet_makes("u1");
	n.pinning.set_pods({Node::pod("p", "u1", 7)});
	n.wait(Millis(0));
	std::filesystem::remove_all(n.machine.folder.path + "/cpuset/kubepods/podu1");
	CHECK(n.wait(Millis(1'000)) > Millis(1'000)); // its cgroup does not come back
	n.pinning.set_pods({});
	n.wait(Millis(1'000));
	CHECK(n.pinning.pinned().empty());
}

TEST_CASE("pinning: which pods name a job")
{
	std::unordered_map<std::string, kube::PodPtr> pods;
	const auto add = [&](const std::string &name, const std::string &job, bool over) {
		kube::Pod p;
		p.meta.ns = "team";
		p.meta.name = p.meta.uid = name;
		if (!job.empty())
			p.meta.annotations[std::string(core::names::job_id)] = job;
		p.started_at = over;
		p.phase = over ? "Succeeded" : "Running";
		pods[name] = std::make_shared<kube::Pod>(p);
	};
	add("foreign", "", false);
	add("ours", "12", false);
	add("over", "13", true);
	for (const char *text : {"0", "-1", "4294967296", "12 ", "x", "1e3"})
		add(std::string("bad") + text, text, false);
	auto placed = placed_pods(pods, "jobs", "n1");
	REQUIRE(placed.size() == 1);
	const PlacedPod ours = placed[0];
	CHECK(ours == PlacedPod{"team", "ours", "ours", 12, " "});
	for (const auto name : {core::names::job_cores, core::names::job_submit_time}) {
		auto changed = std::make_shared<kube::Pod>(*pods.at("ours"));
		changed->meta.annotations[std::string(name)] = "3";
		pods["ours"] = changed;
		placed = placed_pods(pods, "jobs", "n1");
		REQUIRE(placed.size() == 1);
		CHECK_FALSE(placed[0] == ours);
	}
}

TEST_CASE("pinning: sidecars of Slurm's own jobs run on the cores of their job, of that run of it")
{
	const auto pod = [](const std::string &ns, std::initializer_list<const char *> containers) {
		auto p = std::make_shared<kube::Pod>();
		p->meta.ns = ns;
		p->meta.name = "slurm-7-3ef-n1";
		p->meta.uid = "u1";
		for (const char *name : containers) {
			p->containers.emplace_back().name = name;
			p->containers.back().state = kube::ContainerStatus::State::running;
		}
		return std::unordered_map<std::string, kube::PodPtr>{{"u1", p}};
	};
	CHECK(placed_pods(pod("jobs", {"job"}), "jobs", "n1").empty()); // nothing runs there but tasks, and Slurm has those
	CHECK(placed_pods(pod("jobs", {"reservation", "side"}), "jobs", "n1").empty());
	CHECK(placed_pods(pod("theirs", {"job", "side"}), "jobs", "n1").empty());
	CHECK(placed_pods(pod("jobs", {"job", "side"}), "jobs", "n2").empty());

	Node n;
	n.pinning.set_pods(placed_pods(pod("jobs", {"job", "side"}), "jobs", "n1"));
	n.kubelet_makes("u1");
	n.jobs.known[7] = {"k8s:c/jobs/slurm-7-3ef-n1/u1", true, {1}, false, 0x3ef}; // a pod's job
	n.wait(Millis(0));
	CHECK(n.cpus("u1") == "0-3");
	n.jobs.known[7] = {"", true, {1}, false, 0x3ee}; // another run
	n.wait(Millis(60'000));
	CHECK(n.cpus("u1") == "0-3");
	n.jobs.known[7] = {"a comment", true, {1}, false, 0x3ef};
	n.wait(Millis(60'000));
	CHECK(n.cpus("u1") == "1");
}
