// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/confinement.h"

#include <sys/stat.h>

#include "test/unit/agent/jobs.h"
#include "test/unit/agent/machine.h"
#include "test/unit/catch.h"
#include "test/unit/kube/virtual_clock.h"

using namespace sk8;
using namespace sk8::agent;

namespace {

// A node with four cores, of which 3 is Slurm's specialised one, and foreign pods u1 and u2.
struct Node {
	Machine machine;
	VirtualClock clock;
	Jobs jobs;
	const CpuTopology topology{{{0}, {1}, {2}, {3}}};
	std::optional<Confinement> confinement;
	std::map<std::string, CpuSet> pinned;

	Node()
	{
		machine.v1("kubepods", "0-3");
		for (const char *uid : {"u1", "u2"})
			kubelet_makes(uid);
		starts(true);
	}
	std::string state() const { return machine.folder.path + "/run/confined"; }
	PodCgroups cgroups() const { return {machine.folder.path, "/"}; }
	void kubelet_makes(const std::string &uid) const
	{
		machine.v1("kubepods/pod" + uid, "0-3");
		machine.v1("kubepods/pod" + uid + "/main", "0-3");
	}
	// An agent; the one before it, if any, was killed.
	void starts(bool confines)
	{
		std::optional<ExclusiveCpus> exclusive;
		if (confines)
			exclusive.emplace(clock, jobs, topology);
		confinement.emplace(std::move(exclusive), cgroups(), state());
	}
	void runs(std::uint32_t id, std::vector<int> cores, bool exclusive = true)
	{
		jobs.known[id] = {"", true, std::move(cores), exclusive};
		jobs.with_steps.insert(id);
	}
	void ends(std::uint32_t id) { jobs.with_steps.erase(id); }
	Millis round()
	{
		clock.advance(Millis(1'000));
		return confinement->round(*cgroups().find(), pinned);
	}
	std::string cpus(const std::string &uid) const
	{
		auto list = parse_cpu_list(machine.cpus_v1("kubepods/pod" + uid + "/main"));
		return list ? cpu_list(*list) : "?";
	}
};

} // namespace

TEST_CASE("confinement: foreign pods are off the cores of an exclusive job for as long as it has steps here")
{
	Node n;
	n.round();
	CHECK(n.cpus("u1") == "0-3");
	n.runs(7, {0, 1, 2});
	CHECK(n.round() <= Millis(1'000));
	CHECK(n.cpus("u1") == "3");
	CHECK(n.cpus("u2") == "3");
	n.kubelet_makes("u3"); // one that comes meanwhile
	n.round();
	CHECK(n.cpus("u3") == "3");
	CHECK(n.jobs.asked == 1); // slurmctld, once
	n.ends(7);
	n.round();
	for (const char *uid : {"u1", "u2", "u3"})
		CHECK(n.cpus(uid) == "0-3");
}

TEST_CASE("confinement: a job that is suspended when it is first asked for has its cores when it goes on")
{
	Node n;
	n.runs(7, {0, 1, 2});
	n.jobs.known.at(7).running = false;
	for (int i = 0; i < 600; i++)
		n.round();
	CHECK(n.cpus("u1") == "0-3");
	CHECK(n.jobs.asked < 20);
	n.jobs.known.at(7).running = true;
	for (int i = 0; i < 61; i++)
		n.round();
	CHECK(n.cpus("u1") == "3");
}

TEST_CASE("confinement: jobs that share their node, and pods that are pinned, change nothing")
{
	Node n;
	n.runs(7, {0, 1, 2}, false);
	n.round();
	CHECK(n.cpus("u1") == "0-3");
	n.runs(8, {1});
	n.pinned["u2"] = {0};
	n.machine.v1("kubepods/podu2/main", "0");
	n.round();
	CHECK(n.cpus("u1") == "0,2-3");
	CHECK(n.cpus("u2") == "0");
}

TEST_CASE("confinement: what an agent that was killed has done is undone by the next one, and nothing else")
{
	Node n;
	n.machine.v1("kubepods/podu2", "2"); // somebody else's doing
	n.machine.v1("kubepods/podu2/main", "2");
	n.pinned["u2"] = {2};
	n.runs(7, {0, 1, 2});
	n.round();
	REQUIRE(n.cpus("u1") == "3");
	n.pinned.clear();
	n.ends(7);
	n.starts(GENERATE(true, false));
	CHECK_FALSE(n.confinement->idle());
	n.round();
	CHECK(n.cpus("u1") == "0-3");
	CHECK(n.cpus("u2") == "2");
	n.starts(false);
	CHECK(n.confinement->idle());
}

TEST_CASE("confinement: a pod has to run somewhere")
{
	Node n;
	n.runs(7, {0, 1, 2, 3});
	n.round();
	CHECK(n.cpus("u1") == "0-3");
	n.ends(7);
	n.runs(8, {0, 1});
	n.round();
	CHECK(n.cpus("u1") == "2-3");
	n.runs(9, {2, 3}); // nothing is left now
	n.round();
	CHECK(n.cpus("u1") == "0-3");
}

TEST_CASE("confinement: a slurmctld that does not answer is asked again, and what it has said stays true")
{
	Node n;
	n.runs(7, {0, 1, 2});
	n.jobs.answers = false;
	for (int i = 0; i < 600; i++)
		n.round();
	CHECK(n.cpus("u1") == "0-3");
	CHECK(n.jobs.asked < 20);
	n.jobs.answers = true;
	for (int i = 0; i < 60; i++)
		n.round();
	CHECK(n.cpus("u1") == "3");
	n.jobs.answers = false;
	n.jobs.known.clear();
	n.round();
	CHECK(n.cpus("u1") == "3");
}

TEST_CASE("confinement: nothing is done that could not be undone after a crash")
{
	Node n;
	n.machine.file("run", "no folder");
	n.runs(7, {0, 1, 2});
	n.round();
	CHECK(n.cpus("u1") == "0-3");
}

TEST_CASE("confinement: a state file of somebody else's is not believed")
{
	Node n;
	n.runs(7, {0, 1, 2});
	n.round();
	n.ends(7);
	chmod(n.state().c_str(), 0666);
	n.starts(false);
	CHECK(n.confinement->idle());
}
