// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a pod holds, freed by hand; and what `slurm-k8s status` is told meanwhile.
#include <functional>
#include <set>

#include "lib/core/names.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

void change_node(World &w, const std::string &name, const std::function<void(kube::Node &)> &change)
{
	for (auto &node : w.nodes) {
		if (node->meta.name != name)
			continue;
		auto copy = std::make_shared<kube::Node>(*node);
		change(*copy);
		node = copy;
		w.controller->node_changed(node);
	}
	w.run();
}

void set_ready(World &w, const std::string &name, bool ready)
{
	change_node(w, name, [&](kube::Node &node) { node.ready = ready; });
}

// A pod that runs on n1 and is told to go because its job was cancelled.
std::string leaving_pod(World &w)
{
	const std::string uid = w.create_running("p");
	w.slurm_ends("p", SK8_JOB_CANCELLED);
	w.run();
	REQUIRE(w.masked("n1"));
	return uid;
}

// The object vanishes although the kubelet has reported nothing. It as it was last
kube::Pod vanish(World &w)
{
	kube::Pod last = w.pods.at("p");
	w.pods.erase("p");
	w.controller->pod_removed(std::make_shared<kube::Pod>(last));
	w.run(Millis(2'000));
	return last;
}

std::string lost_pod(World &w)
{
	const std::string uid = leaving_pod(w);
	vanish(w);
	REQUIRE(w.masked("n1"));
	return uid;
}

PodReport report(World &w, const std::string &pod)
{
	std::size_t more = 0;
	auto found = w.controller->reports({.pod = pod}, 10, more);
	REQUIRE(found.size() == 1);
	return found[0];
}

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

// What stands in the annotation of n1.
static void agent_answers(World &w, const std::string &text)
{
	change_node(w, "n1", [&](kube::Node &node) { node.meta.annotations[std::string(names::gone)] = text; });
}

TEST_CASE("what a lost pod held is free when its node's agent has seen that nothing of it is left")
{
	World w;
	const std::string uid = lost_pod(w);
	const std::string asked = w.controller->lost().question("n1");
	CHECK(uid_of_lost(asked) == uid);
	agent_answers(w, uid + "@1");
	CHECK(report(w, "team-a/p").pod == PodState::lost);
	SECTION("mask, ledger and entry")
	{
		agent_answers(w, asked);
		CHECK_FALSE(w.masked("n1"));
		CHECK_FALSE(w.journal.holds(uid));
		CHECK(w.controller->size() == 0);
		CHECK(w.controller->lost().question("n1").empty());
		w.restart();
		w.run();
		CHECK_FALSE(w.masked("n1"));
	}
	SECTION("also after a restart, when it is asked again")
	{
		w.restart();
		w.run(Millis(10'000));
		CHECK(w.masked("n1"));
		const std::string again = w.controller->lost().question("n1");
		CHECK(uid_of_lost(again) == uid);
		agent_answers(w, again);
		CHECK_FALSE(w.masked("n1"));
	}
	SECTION("unless a person was faster")
	{
		REQUIRE(w.controller->release_by_hand(uid, "root", false));
		CHECK(w.controller->lost().question("n1").empty());
		agent_answers(w, asked);
		CHECK(w.controller->size() == 0);
	}
}

TEST_CASE("an agent is not asked about a pod that is there, or may be")
{
	World w;
	const std::string uid = leaving_pod(w);
	CHECK(w.controller->lost().question("n1").empty());
	agent_answers(w, uid + "@" + std::to_string(w.timer.wall_seconds()));
	CHECK(w.masked("n1"));
}

TEST_CASE("a lost pod that a backup of etcd brings back is not free by what its agent has seen before")
{
	World w;
	const std::string uid = w.create_running("p");
	w.slurm_ends("p", SK8_JOB_CANCELLED);
	w.run();
	const kube::Pod last = vanish(w);
	const std::string asked = w.controller->lost().question("n1");
	REQUIRE(uid_of_lost(asked) == uid);
	w.pods["p"] = last;
	w.list_pods();
	w.run();
	CHECK(w.controller->lost().question("n1").empty());
	agent_answers(w, asked);
	CHECK(w.masked("n1"));
}

TEST_CASE("no agent is asked about the mirror of a static pod: that has another uid on its node")
{
	World w;
	w.create_running("p");
	w.pod("p").meta.annotations["kubernetes.io/config.mirror"] = "x";
	w.list_pods();
	w.slurm_ends("p", SK8_JOB_CANCELLED);
	w.run();
	vanish(w);
	CHECK(report(w, "team-a/p").pod == PodState::lost);
	CHECK(w.controller->lost().question("n1").empty());
}

TEST_CASE("a lost pod is released by hand: mask, ledger and entry are gone, also after a restart")
{
	World w;
	const std::string uid = lost_pod(w);
	CHECK(report(w, "team-a/p").pod == PodState::lost);
	auto done = w.controller->release_by_hand(uid, "alice (uid 1000)", false);
	REQUIRE(done);
	CHECK(contains(*done, "team-a/p"));
	CHECK_FALSE(w.masked("n1"));
	CHECK_FALSE(w.journal.holds(uid));
	w.run(Millis(2'000));
	CHECK(w.controller->size() == 0);
	w.restart();
	w.run(Millis(2'000));
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("a pod that its kubelet reports alive is not released, unless it is forced")
{
	World w;
	const std::string uid = leaving_pod(w);
	set_ready(w, "n1", true);
	auto refused = w.controller->release_by_hand(uid, "root (uid 0)", false);
	REQUIRE_FALSE(refused.ok());
	CHECK(contains(refused.error().message, "whose kubelet reports"));
	CHECK(contains(refused.error().message, "--force"));
	CHECK(w.masked("n1"));
	CHECK(w.journal.holds(uid));

	REQUIRE(w.controller->release_by_hand(uid, "root (uid 0)", true));
	w.run(Millis(2'000));
	CHECK_FALSE(w.masked("n1"));
	CHECK(w.pod("p").meta.finalizers.empty());
	CHECK(w.count("submit") == 1); // not adopted again
}

TEST_CASE("a pod of a node that Kubernetes does not hear of is released")
{
	World w;
	const std::string uid = leaving_pod(w);
	set_ready(w, "n1", false);
	CHECK(contains(report(w, uid).why, "Kubernetes hears nothing of node n1"));
	REQUIRE(w.controller->release_by_hand(uid, "root (uid 0)", false));
	w.run(Millis(2'000));
	CHECK_FALSE(w.masked("n1"));
	CHECK(w.pod("p").meta.finalizers.empty());
}

TEST_CASE("a pod whose job runs is released by force only, and its job ends with who did it")
{
	World w;
	const std::string uid = w.create_running("p");
	auto refused = w.controller->release_by_hand(uid, "root (uid 0)", false);
	REQUIRE_FALSE(refused.ok());
	CHECK(contains(refused.error().message, "scancel 100"));
	CHECK_FALSE(w.job_of("p")->ended());
	REQUIRE(w.controller->release_by_hand(uid, "bob (uid 7)", true));
	w.run(Millis(2'000));
	CHECK(w.job_of("p")->ended());
	CHECK(w.jobs.at(0).end.comment == "released by hand by bob (uid 7)");
	CHECK_FALSE(w.masked("n1"));
	CHECK(w.jobs.size() == 1);
}

TEST_CASE("before Kubernetes has been listed nothing is released without force")
{
	World w;
	const std::string uid = leaving_pod(w);
	w.restart(); // nothing is delivered: no list
	auto refused = w.controller->release_by_hand(uid, "root (uid 0)", false);
	REQUIRE_FALSE(refused.ok());
	CHECK(contains(refused.error().message, "Kubernetes has not told yet"));
	REQUIRE(w.controller->release_by_hand(uid, "root (uid 0)", true));
	CHECK_FALSE(w.masked("n1"));
	CHECK_FALSE(w.journal.holds(uid));
}

TEST_CASE("what was released by hand stays free after a restart, as long as its object says that it runs")
{
	World w;
	const std::string uid = leaving_pod(w);
	w.watch_delivers = false; // nothing comes of taking the finalizer off: the object stays
	REQUIRE(w.controller->release_by_hand(uid, "root (uid 0)", true));
	w.run(Millis(2'000));
	for (int restarts = 0; restarts < 2; restarts++) {
		w.restart();
		CHECK_FALSE(w.masked("n1"));
		w.run(Millis(2'000));
		CHECK(w.exists("p"));
		CHECK_FALSE(w.masked("n1"));
		CHECK(w.count("submit") == 1); // nor is it adopted
	}
}

TEST_CASE("what was released by hand is remembered until its object is gone, and not longer")
{
	World w;
	const std::string uid = leaving_pod(w);
	w.watch_delivers = false;
	REQUIRE(w.controller->release_by_hand(uid, "root (uid 0)", true));
	w.run(Millis(2'000));
	CHECK(w.journal.saved().released == std::vector<Released>{{w.jobs[0].key, "root (uid 0)"}});
	w.restart();
	w.run(Millis(2'000));
	REQUIRE(w.journal.saved().released.size() == 1);

	w.watch_delivers = true;
	const bool while_it_is_down = GENERATE(true, false);
	kube::Pod last = w.pod("p");
	w.pods.erase("p");
	if (while_it_is_down)
		w.restart();
	else
		w.controller->pod_removed(std::make_shared<kube::Pod>(last));
	w.run(Millis(2'000));
	CHECK(w.journal.saved().released.empty());
	CHECK(w.holds->ledger("c").released.empty());
	CHECK(w.controller->size() == 0);
}

TEST_CASE("the word about one pod does not count for another one of its name")
{
	World w;
	const std::string uid = leaving_pod(w);
	REQUIRE(w.controller->release_by_hand(uid, "root (uid 0)", true));
	w.run(Millis(2'000));
	w.pods.erase("p");
	w.create_running("p");
	w.restart();
	w.run(Millis(2'000));
	CHECK(w.journal.holds(w.pod("p").meta.uid));
	CHECK_FALSE(w.job_of("p")->ended());
}

TEST_CASE("a pod without a node is released by force only, and what it gets later is its own")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = {0}; // no answer: the Binding may still take effect
	w.slurm_starts("p");
	w.run();
	const std::string uid = w.pod("p").meta.uid;
	REQUIRE(w.journal.holds(uid));
	w.submit_reply = {.ok = false, .text = "not now"};
	w.slurm_ends("p", SK8_JOB_NODE_FAIL);
	w.run(Millis(5'000));
	REQUIRE(report(w, uid).pod == PodState::kept);
	auto refused = w.controller->release_by_hand(uid, "root (uid 0)", false);
	REQUIRE_FALSE(refused.ok());
	CHECK(contains(refused.error().message, "a Binding to one may still arrive"));

	REQUIRE(w.controller->release_by_hand(uid, "root (uid 0)", true));
	w.submit_reply = {.ok = true};
	w.run(Millis(60'000));
	CHECK_FALSE(w.masked("n1"));
	w.slurm_starts("p");
	w.run(Millis(5'000));
	REQUIRE(w.pod("p").node_name == "n1");
	w.kubelet_starts("p");
	w.run(Millis(5'000));
	CHECK(w.journal.holds(uid));
	CHECK(w.job_of("p")->running());
}

TEST_CASE("the job of a pod that was to start only where it was kept is made anew when that is released")
{
	World w;
	const std::string uid = w.create_pod("p");
	w.run();
	w.fail["bind"] = {0};
	w.nodes_take_jobs = false; // n1 has died
	w.slurm_starts("p");
	w.run();
	w.slurm_forgets_start("p"); // a kill of slurmctld: the job is pending again, and is to start on n1
	w.restart();
	w.run(Millis(5'000));
	REQUIRE(report(w, uid).pod == PodState::kept);
	REQUIRE(w.count("submit") > 1);
	const bool before_the_lists = GENERATE(false, true);
	if (before_the_lists)
		w.restart();

	REQUIRE(w.controller->release_by_hand(uid, "root (uid 0)", true));
	w.run(Millis(5'000));
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[0].job.ended());
	CHECK(w.jobs[1].request.required_node.empty());
	CHECK(w.exists("p"));
}

TEST_CASE("who releases what cannot be written down is told that a restart undoes it")
{
	World w;
	const std::string uid = leaving_pod(w);
	w.journal.fail = true;
	auto done = w.controller->release_by_hand(uid, "root (uid 0)", true);
	REQUIRE(done);
	CHECK(contains(*done, "is free until slurmctld starts again: No space left on device"));
	w.journal.fail = false;
	w.run(Millis(2'000));
	CHECK(w.journal.saved().released.size() == 1);
}

TEST_CASE("who holds nothing is not released")
{
	World w;
	const std::string uid = w.create_pod("p");
	w.run();
	CHECK_FALSE(w.controller->release_by_hand(uid, "root", true).ok());
	CHECK_FALSE(w.controller->release_by_hand("nobody", "root", true).ok());
}

TEST_CASE("status counts pods and jobs by state, and says why a mask is there")
{
	World w;
	leaving_pod(w);
	w.create_pod("q");
	w.create_pod("r", [](kube::Pod &p) { p.meta.ns = "other"; });
	w.run();
	const PodNumbers s = w.controller->numbers();
	CHECK(w.controller->started());
	CHECK(s.pods[static_cast<std::size_t>(PodState::leaving)] == 1);
	CHECK(s.pods[static_cast<std::size_t>(PodState::waiting)] == 1);
	CHECK(s.pods[static_cast<std::size_t>(PodState::refused)] == 1);
	CHECK(s.jobs[static_cast<std::size_t>(JobState::queued)] == 1);
	CHECK(s.held() == 1);
	CHECK(s.masked() == 1);

	const PodReport p = report(w, "team-a/p"), q = report(w, "team-a/q"), r = report(w, "other/r");
	CHECK(p.held->masked);
	CHECK(p.node == "n1");
	CHECK(contains(p.why, "the kubelet has not reported the last of its containers gone"));
	CHECK(q.next == Effect::mirror);
	CHECK(q.job_reason == "Resources");
	CHECK(contains(r.refusal, "is not mapped"));

	std::size_t more = 0;
	CHECK(w.controller->reports({.node = "n1"}, 10, more).size() == 1);
	CHECK(w.controller->reports({.node = "n2"}, 10, more).empty());
	CHECK(w.controller->reports({.held = true}, 10, more).size() == 1);
	CHECK(w.controller->reports({}, 1, more).size() == 1);
	CHECK(more == 2);
	CHECK(to_json(p)["holds"]["masked"].boolean_or(false));
	CHECK(to_json(s)["pods"]["leaving"].integer_or(0) == 1);
}

TEST_CASE("status has a word for whatever is under way for a pod")
{
	World w;
	std::set<std::string> seen;
	int looks = 0;
	std::function<void()> look = [&] {
		std::size_t more = 0;
		for (const auto &r : w.controller->reports({}, 10, more))
			seen.insert(r.doing);
		if (++looks % 100)
			w.post(look);
	};
	w.post(look);
	w.create_running("p");
	w.post(look);
	w.kubelet_ends("p", 0);
	w.run();
	CHECK(seen == std::set<std::string>{"", "ending", "releasing", "submitting"});
}
