// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/nodes_controller.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/unit/catch.h"
#include "test/unit/core/node_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

static const std::string cordoned = "k8s: cordoned";

TEST_CASE("nodes: a cordon drains, an uncordon resumes, and neither comes back as our own")
{
	NodeWorld w;
	w.run();
	w.cordon(true);
	w.run();
	CHECK(w.drained() == cordoned);
	CHECK(w.owner().empty());
	CHECK(w.condition_text() == "True Drained");
	w.cordon(false);
	w.run();
	CHECK(w.drained().empty());
	CHECK(w.condition_text() == "False InService");
	CHECK(w.slurm_writes == 2);
}

TEST_CASE("nodes: a drain cordons with who and why, its condition follows the jobs, and a resume uncordons")
{
	NodeWorld w;
	w.slurm.jobs = 2;
	w.run();
	w.drain("bad disk");
	w.run();
	CHECK(w.kube.unschedulable);
	CHECK(w.note(names::drain_reason) == "bad disk");
	CHECK(w.note(names::drain_by) == "user 0");
	CHECK(w.condition_text() == "False Draining");
	w.jobs(0);
	w.run();
	CHECK(w.condition_text() == "True Drained");
	w.resume();
	w.run();
	CHECK_FALSE(w.kube.unschedulable);
	CHECK(w.kube.meta.annotations.empty());
	CHECK(w.slurm_writes == 0);
}

TEST_CASE("nodes: an administrator's drain is neither renamed nor undone by any cordon")
{
	NodeWorld w;
	w.run();
	w.cordon(true);
	w.run();
	w.drain("mine");
	w.cordon(false);
	w.run(Millis(60'000));
	CHECK(w.drained() == "mine");
	CHECK(w.slurm_writes == 1);
}

TEST_CASE("nodes: who resumes in Slurm what is cordoned has decided, also across a restart")
{
	NodeWorld w;
	w.run();
	w.cordon(true);
	w.run();
	w.resume();
	w.run();
	CHECK(w.drained().empty());
	CHECK(w.note(names::resumed_in_slurm) == "cordoned");
	w.restart();
	w.run(Millis(60'000));
	CHECK(w.drained().empty());
	w.cordon(false);
	w.run();
	CHECK(w.note(names::resumed_in_slurm).empty());
	w.cordon(true);
	w.run();
	CHECK(w.drained() == cordoned);
}

TEST_CASE("nodes: what happened while slurmctld was away is made up for")
{
	NodeWorld w;
	w.run();
	SECTION("cordoned")
	{
		w.cordon(true);
		w.restart();
		w.run();
		CHECK(w.drained() == cordoned);
	}
	SECTION("uncordoned")
	{
		w.cordon(true);
		w.run();
		w.cordon(false);
		w.restart();
		w.run();
		CHECK(w.drained().empty());
	}
	SECTION("resumed")
	{
		w.drain();
		w.run();
		w.resume();
		w.restart();
		w.run();
		CHECK_FALSE(w.kube.unschedulable);
		CHECK(w.owner().empty());
	}
	SECTION("our drain was forgotten by Slurm, which saves its state late")
	{
		w.cordon(true);
		w.run();
		w.resume();
		w.restart();
		w.run();
		CHECK(w.drained() == cordoned);
	}
}

TEST_CASE("nodes: NotReady drains when it lasts, and Ready gives the node back at once")
{
	NodeWorld w;
	w.run();
	w.ready(false);
	w.run(Millis(39'000));
	CHECK(w.drained().empty());
	w.run(Millis(2'000));
	CHECK(w.drained() == "k8s: NotReady: (what its pods hold stays masked)");
	w.ready(true);
	w.run();
	CHECK(w.drained().empty());
	w.ready(false);
	w.run(Millis(30'000));
	w.ready(true);
	w.run();
	w.ready(false);
	w.run(Millis(30'000));
	CHECK(w.drained().empty()); // each time is counted anew
}

TEST_CASE("nodes: time without news of Kubernetes is no node's fault")
{
	NodeWorld w;
	w.run();
	w.ready(false);
	w.run(Millis(10'000));
	w.controller->lost();
	w.run(Millis(600'000));
	CHECK(w.drained().empty());
	w.controller->back();
	w.run(Millis(39'000));
	CHECK(w.drained().empty());
	w.run(Millis(2'000));
	CHECK(w.drained() == "k8s: NotReady: (what its pods hold stays masked)");
	// and what was decided stays
	w.controller->lost();
	w.run(Millis(60'000));
	CHECK(w.drained() == "k8s: NotReady: (what its pods hold stays masked)");
}

TEST_CASE("nodes: a deleted node is drained until another of its name is there")
{
	NodeWorld w;
	w.run();
	w.delete_node();
	w.run();
	CHECK(w.drained() == "k8s: deleted: Kubernetes has no such node");
	w.create_node();
	w.run();
	CHECK(w.drained().empty());
}

TEST_CASE("nodes: what Slurm has powered down is not drained, whatever becomes of its kubelet, until it is up again")
{
	NodeWorld w;
	w.run();
	w.asleep(true);
	SECTION("not ready")
	{
		w.ready(false);
		w.run(Millis(600'000));
		CHECK(w.drained().empty());
		w.asleep(false);
		w.run(Millis(39'000));
		CHECK(w.drained().empty()); // it has just come up
		w.run(Millis(2'000));
		CHECK(w.drained() == "k8s: NotReady: (what its pods hold stays masked)");
	}
	SECTION("deleted, by a cloud's controller")
	{
		w.delete_node();
		w.run(Millis(600'000));
		CHECK(w.drained().empty());
		w.asleep(false);
		w.run();
		CHECK(w.drained() == "k8s: deleted: Kubernetes has no such node");
	}
}

TEST_CASE("nodes: a node that is drained already can be powered down and is given back")
{
	NodeWorld w;
	w.run();
	w.ready(false);
	w.run(Millis(60'000));
	REQUIRE_FALSE(w.drained().empty());
	w.asleep(true);
	w.run();
	CHECK(w.drained().empty());
}

TEST_CASE("nodes: a node that is not shared any more is given back, one that never was is left alone")
{
	NodeWorld w;
	w.settings.nodes.selector = "shared=true";
	w.restart();
	w.cordon(true);
	w.drain("k8s: cordoned");
	w.slurm.reason_uid = NodeWorld::slurm_uid; // another cluster's engine
	w.run();
	CHECK(w.slurm_writes + w.kube_writes == 0);
	w.resume();
	w.kube.meta.labels["shared"] = "true";
	w.annotate("a", "b");
	w.run();
	CHECK(w.drained() == cordoned);
	w.kube.meta.labels.clear();
	w.annotate("a", "c");
	w.run();
	CHECK(w.drained().empty());
}

namespace {

// Cordoned and so drained; then slurmctld is away, and comes back.
void leaves_the_selector_unseen(NodeWorld &w)
{
	w.settings.nodes.selector = "shared=true";
	w.kube.meta.labels["shared"] = "true";
	w.restart();
	w.run();
	w.cordon(true);
	w.run();
	REQUIRE(w.drained() == cordoned);
	w.kube.meta.labels.clear();
}

} // namespace

TEST_CASE("nodes: our drain of a node that is not shared any more goes, whoever did not look when that happened")
{
	NodeWorld w;
	w.alone = GENERATE(false, true);
	leaves_the_selector_unseen(w);
	SECTION("it left the selector while slurmctld was away")
	{
		w.restart();
	}
	SECTION("other settings leave it out")
	{
		w.kube.meta.labels["shared"] = "true";
		w.settings.nodes.selector = "shared=other";
		w.restart();
	}
	w.run();
	CHECK(w.drained().empty());
	CHECK(w.condition_text() == "False InService");
	const int writes = w.slurm_writes + w.kube_writes;
	w.drain(cordoned); // by a person
	w.run(Millis(60'000));
	CHECK(w.drained() == cordoned);
	CHECK(w.slurm_writes + w.kube_writes == writes);
}

TEST_CASE("nodes: our drain of a node that is not shared any more goes once Slurm lets it, whatever its condition tells by then")
{
	NodeWorld w;
	leaves_the_selector_unseen(w);
	w.restart();
	w.fail_slurm = 3;
	w.run();
	CHECK(w.condition_text() == "False InService");
	CHECK(w.drained() == cordoned);
	w.run(Millis(60'000));
	CHECK(w.drained().empty());
}

TEST_CASE("nodes: where nothing is written to Kubernetes our drain is known by there being no other cluster")
{
	NodeWorld w([](ClusterSettings &s) { s.state.slurm = StateSettings::OnSlurm::ignore; });
	leaves_the_selector_unseen(w);
	w.restart();
	w.run(Millis(60'000));
	CHECK(w.drained() == cordoned); // it may be another cluster's
	w.alone = true;
	w.restart();
	w.run();
	CHECK(w.drained().empty());
	CHECK(w.kube_writes == 0);
}

TEST_CASE("nodes: of a node that is not shared any more nothing is taken back that is not our drain alone")
{
	NodeWorld w;
	w.alone = true;
	leaves_the_selector_unseen(w);
	SECTION("an administrator's, with whatever words")
	{
		w.drain(GENERATE(as<std::string>(), "bad disk", "k8s: cordoned"));
	}
	SECTION("ours, to which Slurm has added something")
	{
		w.slurm.reason = cordoned + " : Not responding";
	}
	SECTION("SlurmUser's own")
	{
		w.slurm.reason = "Kill task failed";
	}
	const std::string before = w.drained();
	w.restart();
	w.run(Millis(60'000));
	CHECK(w.drained() == before);
}

TEST_CASE("nodes: our drain of a node that another cluster shares now is that one's, whatever it was here")
{
	NodeWorld w;
	leaves_the_selector_unseen(w);
	w.slurm.reason = "k8s: NotReady: (what its pods hold stays masked)";
	w.restart();
	w.run(Millis(60'000));
	CHECK(w.drained() == "k8s: NotReady: (what its pods hold stays masked)");
	CHECK(w.slurm_writes == 1);
}

TEST_CASE("nodes: a node that was deleted while slurmctld was away keeps its drain until it is there again")
{
	NodeWorld w;
	w.alone = GENERATE(false, true);
	w.run();
	w.cordon(true);
	w.run();
	w.delete_node();
	w.restart();
	w.run(Millis(60'000));
	CHECK(w.drained() == cordoned);
	w.create_node();
	w.run();
	CHECK(w.drained().empty());
}

// ---- sharing: dedicated ----

namespace {

NodeWorld dedicated()
{
	return NodeWorld([](ClusterSettings &s) {
		s.nodes.sharing = Sharing::dedicated;
		s.nodes.selector = "shared=true";
	});
}

} // namespace

TEST_CASE("nodes: a dedicated node is tainted while it is shared, and others' taints stay")
{
	NodeWorld w = dedicated();
	const kube::Taint gpu{"gpu", "yes", kube::TaintEffect::no_schedule};
	w.kube.taints = {gpu};
	w.restart();
	w.run();
	CHECK_FALSE(w.tainted()); // not shared
	w.set_label("shared", "true");
	w.run();
	CHECK(w.kube.taints == std::vector{gpu, w.our_taint});
	w.set_label("shared", "false");
	w.run();
	CHECK(w.kube.taints == std::vector{gpu});
	CHECK(w.kube_writes == 2);
}

TEST_CASE("nodes: a node that a job has without others' pods has a taint of its own, however often it comes and goes")
{
	NodeWorld w = dedicated();
	w.set_label("shared", "true");
	w.run();
	for (int i = 0; i < 5; i++) {
		w.exclusive = true;
		w.controller->exclusive_changed("n1");
		w.run();
		CHECK(w.kube.taints == std::vector{w.our_taint, w.exclusive_taint});
		w.exclusive = false;
		w.controller->exclusive_changed("n1");
		w.run();
		CHECK(w.kube.taints == std::vector{w.our_taint});
	}
	w.set_taints({w.our_taint, w.exclusive_taint}); // of former settings
	w.run();
	CHECK(w.kube.taints == std::vector{w.our_taint});
}

TEST_CASE("nodes: a node is tainted by what its group says, as long as it is in that")
{
	NodeWorld w = dedicated();
	w.settings.nodes.sharing = GENERATE(Sharing::none, Sharing::mixed);
	w.settings.nodes.groups = {{"pool=cpu", Sharing::dedicated}};
	w.restart();
	w.set_label("shared", "true");
	w.run();
	CHECK_FALSE(w.tainted());
	w.set_label("pool", "cpu");
	w.run();
	CHECK(w.tainted());
	w.set_label("pool", "gpu");
	w.run();
	CHECK_FALSE(w.tainted());
}

TEST_CASE("nodes: the taint goes when sharing is not dedicated any more, also of a node that left the selector meanwhile")
{
	NodeWorld w = dedicated();
	w.set_label("shared", GENERATE("true", "false"));
	w.set_taints({w.our_taint});
	w.settings.nodes.sharing = Sharing::none;
	w.restart();
	w.run();
	CHECK_FALSE(w.tainted());
}

TEST_CASE("nodes: a node that Slurm does not have is neither tainted nor is its taint taken off")
{
	NodeWorld w = dedicated();
	w.slurm.name = "another";
	w.restart();
	w.set_label("shared", "true");
	w.run();
	CHECK_FALSE(w.tainted());
	w.set_taints({w.our_taint}); // of another Slurm that shares this Kubernetes
	w.set_label("shared", "false");
	w.run();
	CHECK(w.tainted());
	CHECK(w.kube_writes == 0);
}

TEST_CASE("nodes: the cordon and the condition of a node that Slurm does not have are another Slurm's")
{
	NodeWorld w;
	w.slurm.jobs = 0;
	w.run();
	w.drain("bad disk");
	w.run();
	REQUIRE(w.kube.unschedulable);
	REQUIRE(w.condition_text() == "True Drained");
	w.slurm.name = "another";
	w.restart();
	w.kube_writes = 0;
	w.run();
	CHECK(w.kube_writes == 0);
	CHECK(w.kube.unschedulable);
	CHECK(w.condition_text() == "True Drained");
}

TEST_CASE("nodes: somebody's own taint of our key keeps pods off as well and is left alone")
{
	NodeWorld w = dedicated();
	kube::Taint other = w.our_taint;
	other.value = "slurm-a";
	w.kube.meta.labels["shared"] = "true";
	w.set_taints({other});
	w.run();
	CHECK(w.kube.taints == std::vector{other});
	CHECK(w.kube_writes + w.refused == 0);
}

TEST_CASE("nodes: a taint that is taken off comes back at once, and ever later for who never stops taking it off")
{
	NodeWorld w = dedicated();
	w.set_label("shared", "true");
	w.run(Millis(5'000));
	REQUIRE(w.tainted());
	w.set_taints({});
	w.run();
	CHECK(w.tainted());
	const int before = w.kube_writes;
	for (int i = 0; i < 3600 * 4; i++) { // an hour
		if (w.tainted())
			w.set_taints({});
		w.run(Millis(250));
	}
	CHECK(w.kube_writes - before < 25);
	w.run(Millis(300'000));
	CHECK(w.tainted());
}

TEST_CASE("nodes: a taint that is refused is tried again, and slurm-k8s status says what is wrong")
{
	NodeWorld w = dedicated();
	w.fail_kube = 403;
	w.set_label("shared", "true");
	w.run(Millis(3'000));
	CHECK_FALSE(w.tainted());
	CHECK(w.controller->status("n1")["trouble"].str().find("is tainted") != std::string_view::npos);
	w.fail_kube = 0;
	w.run(Millis(60'000));
	CHECK(w.tainted());
}

TEST_CASE("nodes: a refused write is tried again with growing pauses, and done when it is allowed")
{
	NodeWorld w;
	w.run();
	w.fail_kube = 403;
	w.drain();
	w.run(Millis(300'000));
	CHECK(w.refused > 5);
	CHECK(w.refused < 20);
	CHECK_FALSE(w.kube.unschedulable);
	w.fail_kube = 0;
	w.run(Millis(60'000));
	CHECK(w.kube.unschedulable);
}

TEST_CASE("nodes: what Kubernetes says of a node drains it at once though nothing may be written to it")
{
	NodeWorld w;
	w.run();
	w.drain();
	w.run();
	w.fail_kube = 403;
	w.resume();
	w.run(Millis(120'000)); // it cannot be uncordoned
	REQUIRE(w.refused > 3);
	CHECK(w.drained().empty());
	w.ready(false);
	w.run(w.settings.state.not_ready.after + Millis(2'000));
	CHECK(w.drained().find("NotReady") != std::string::npos);
	w.ready(true);
	w.run(Millis(2'000));
	CHECK(w.drained().empty());
}

TEST_CASE("nodes: slurm-k8s status tells both sides of a node, and whose each is")
{
	NodeWorld w;
	w.slurm.jobs = 1;
	w.run();
	auto told = [&](const char *side) { return std::string(w.controller->status("n1")[side].str()); };
	CHECK(told("in_kubernetes") == "not cordoned");
	CHECK(told("in_slurm") == "in use");
	w.cordon(true);
	w.run();
	CHECK(told("in_kubernetes") == "cordoned by an administrator");
	CHECK(told("in_slurm") == "drained by slurm-k8s: cordoned; 1 job left");
	w.resume();
	w.run();
	CHECK(told("in_slurm") == "in use; an administrator has resumed it though it is cordoned");
	w.cordon(false);
	w.run();
	w.drain();
	w.run();
	CHECK(told("in_kubernetes") == "cordoned by slurm-k8s, because Slurm gives it no jobs: bad disk");
	CHECK(told("in_slurm") == "bad disk, by user 0; 1 job left");
	w.cordon(false);
	w.run();
	CHECK(told("in_kubernetes") == "not cordoned; an administrator has uncordoned it though Slurm says: bad disk");
	w.resume();
	w.run();
	w.ready(false);
	w.run(Millis(1'000));
	CHECK(told("in_kubernetes") == "not cordoned; not ready");
	w.run(Millis(60'000));
	CHECK(told("in_kubernetes").starts_with("not cordoned; NotReady"));
	CHECK(w.controller->status("other").size() == 0);
}

// ---- both administrators at once ----

namespace {

struct Action {
	const char *name;
	void (*act)(NodeWorld &);
};

const Action actions[] = {
	{"cordon", [](NodeWorld &w) { w.cordon(true); }},
	{"uncordon", [](NodeWorld &w) { w.cordon(false); }},
	{"drain", [](NodeWorld &w) { w.drain(); }},
	{"resume", [](NodeWorld &w) { w.resume(); }},
	{"NotReady", [](NodeWorld &w) { w.ready(false); }},
	{"Ready", [](NodeWorld &w) { w.ready(true); }},
};

// What must be true once all is said, whoever said it when.
void judge(const NodeWorld &w)
{
	const bool own = w.slurm.drain && !w.ours(), cause = w.admin_cordoned || !w.kube.ready;
	// nobody was run over
	if (own)
		CHECK(w.drained() == "bad disk");
	if (w.admin_cordoned)
		CHECK((w.kube.unschedulable && w.owner() != "slurm"));
	// nothing of ours is left over
	if (!cause)
		CHECK_FALSE(w.ours());
	if (!own) {
		CHECK(w.owner().empty());
		CHECK(w.kube.unschedulable == w.admin_cordoned);
	}
	// each side knows of the other, unless somebody has decided otherwise there
	if (own && !w.kube.unschedulable)
		CHECK(w.owner() == "kubernetes");
	if (cause && w.drained().empty())
		CHECK_FALSE(w.note(names::resumed_in_slurm).empty());
	const bool away = !w.drained().empty();
	CHECK(w.condition_text() == (away ? "True Drained"
					  : w.condition_text() == "none" ? "none" : "False InService"));
}

// What arrives after an action of what is on its way; its words for the story.
using Arrives = std::function<std::string(NodeWorld &)>;

Arrives as_dice_say(std::mt19937 &dice)
{
	return [&dice](NodeWorld &w) {
		std::string story;
		const int mode = static_cast<int>(dice() % 4);
		const int steps = mode == 0 ? 0 : mode == 1 ? 1 + static_cast<int>(dice() % 3) : 100;
		for (int s = 0; s < steps && w.step(dice() % 2); s++)
			story += ".";
		if (mode == 3) {
			w.run(Millis(45'000));
			story += "(45 s) ";
		}
		return story;
	};
}

void play(const std::vector<int> &order, const Arrives &arrives)
{
	NodeWorld w;
	w.run();
	std::string story;
	for (int i : order) {
		actions[i].act(w);
		story += std::string(actions[i].name) + " " + arrives(w);
	}
	CAPTURE(story);
	w.run(Millis(45'000));
	judge(w);
	// it has come to rest: nothing is written any more
	const int written = w.slurm_writes + w.kube_writes, refused = w.refused;
	w.run(Millis(120'000));
	CHECK(w.slurm_writes + w.kube_writes == written);
	CHECK(w.refused == refused);
	// no flapping: per action at most a change on each side, its condition, and what its undoing costs
	CHECK(written <= 4 * static_cast<int>(order.size()));
	// a restart finds nothing to do
	w.restart();
	w.run(Millis(45'000));
	judge(w);
	CHECK(w.slurm_writes + w.kube_writes == written);
}

} // namespace

TEST_CASE("nodes: two administrators at once, in every order and however late each hears of it, come to rest")
{
	std::vector<int> order{0, 1, 2, 3, 4, 5};
	const auto seed = std::random_device{}();
	CAPTURE(seed);
	std::mt19937 dice(seed);
	do {
		for (int i = 0; i < 6; i++)
			play(order, as_dice_say(dice));
	} while (std::ranges::next_permutation(order).found);
}

// Each of the 720 orders with each of the 4,096 ways in which nothing, one message to either side, or all arrives after each
// action. Ten minutes: make interleavings.
TEST_CASE("nodes: two administrators at once, in every order and with every delay, come to rest", "[.interleavings]")
{
	static constexpr int ways = 4, actions_in_order = 6, all_ways = 4 * 4 * 4 * 4 * 4 * 4;
	std::vector<int> order(actions_in_order);
	std::iota(order.begin(), order.end(), 0);
	do {
		for (int way = 0; way < all_ways; way++) {
			int left = way;
			play(order, [&left](NodeWorld &w) -> std::string {
				const int what = std::exchange(left, left / ways) % ways;
				for (int s = 0; s < (what == 0 ? 0 : what == 3 ? 100 : 1) && w.step(what == 3 ? s % 2 : what == 1); s++)
					;
				return std::to_string(what) + " ";
			});
		}
	} while (std::ranges::next_permutation(order).found);
}

TEST_CASE("nodes: two administrators who never stop come to rest when they do")
{
	std::mt19937 dice(17);
	for (int i = 0; i < 1000; i++) {
		std::vector<int> order;
		for (int n = 0; n < 20; n++)
			order.push_back(static_cast<int>(dice() % std::size(actions)));
		play(order, as_dice_say(dice));
	}
}

TEST_CASE("devices: what the kubelet has less than Slurm is missing until it has it again, and drains nothing")
{
	NodeWorld w;
	w.run();
	w.set_slurm_gres({{"gpu", "a100", 4, {}}});
	w.run();
	CHECK(w.missing.empty()); // Kubernetes knows no device there
	w.set_devices({{"nvidia.com/gpu", 4}}, {{"nvidia.com/gpu", 3}});
	w.run();
	CHECK(w.missing == GresList{{"gpu", "", 1, {}}});
	w.set_devices({{"nvidia.com/gpu", 0}}, {}); // the plugin is dead
	w.run();
	CHECK(w.missing == GresList{{"gpu", "", 4, {}}});
	CHECK(w.drained().empty());
	CHECK(w.controller->status("n1")["missing"].str() == "gpu:4");
	w.set_devices({{"nvidia.com/gpu", 8}}, {{"nvidia.com/gpu", 8}});
	w.run();
	CHECK(w.missing.empty());
	CHECK(w.slurm_writes == 0);
}

TEST_CASE("devices: of what is missing those are named of which the node's agent says that they are not well")
{
	const auto say = [](NodeWorld &w, const std::string &ill) {
		w.annotate("slurm-k8s.io/devices", R"({"ids":{"nvidia.com/gpu":["a","b","c","d"]},"pods":{},"ill":{"nvidia.com/gpu":)" + ill + "}}");
		w.run();
	};
	NodeWorld w;
	w.run();
	w.set_slurm_gres({{"gpu", "a100", 4, {}}});
	w.set_devices({{"nvidia.com/gpu", 4}}, {{"nvidia.com/gpu", 3}});
	w.run();
	CHECK(w.missing == GresList{{"gpu", "", 1, {}}});
	say(w, "[2]");
	CHECK(w.missing == GresList{{"gpu", "", 1, {2}}});
	say(w, "[1,2]"); // its kubelet counts later
	CHECK(w.missing == GresList{{"gpu", "", 1, {}}});
	w.set_devices({{"nvidia.com/gpu", 4}}, {{"nvidia.com/gpu", 2}});
	w.run();
	CHECK(w.missing == GresList{{"gpu", "", 2, {1, 2}}});
	say(w, "[3]"); // the agent tells later
	CHECK(w.missing == GresList{{"gpu", "", 2, {3}}});
	w.set_devices({{"nvidia.com/gpu", 4}}, {{"nvidia.com/gpu", 4}});
	w.run();
	CHECK(w.missing.empty());
}

TEST_CASE("devices: what is missing stays so while its node is gone from Kubernetes, and slurmctld's next start finds it again")
{
	NodeWorld w;
	w.set_slurm_gres({{"gpu", "", 2, {}}});
	w.set_devices({{"amd.com/gpu", 1}}, {{"amd.com/gpu", 1}});
	w.run();
	const GresList one{{"gpu", "", 1, {}}};
	CHECK(w.missing == one);
	w.delete_node();
	w.run();
	CHECK(w.missing == one);
	w.create_node();
	w.missing.clear();
	w.restart();
	w.run();
	CHECK(w.missing == one);
}

TEST_CASE("devices: a node that is not shared, and a resource that may be missing, are left alone")
{
	const bool shared = GENERATE(false, true);
	NodeWorld w([shared](ClusterSettings &s) {
		s.nodes.selector = "shared=true";
		if (shared)
			s.resources = {{.kubernetes = "amd.com/gpu", .gres = "gpu", .missing = ResourceSettings::Missing::ignore}};
	});
	w.set_slurm_gres({{"gpu", "", 2, {}}});
	w.set_devices({{"amd.com/gpu", 1}}, {{"amd.com/gpu", 1}});
	w.set_labels({{"shared", shared ? "true" : "false"}});
	w.run();
	CHECK(w.missing.empty());
	const Json nodes = w.controller->gres("");
	REQUIRE(nodes.size() == (shared ? 1 : 0));
	if (shared)
		CHECK(nodes.at(0)["gres"].at(0)["count"].integer_or(0) == 1);
}

TEST_CASE("devices: slurm-k8s gres is told which cores they are near, as the node's agent says and Slurm counts")
{
	const std::string node = R"({"cores":{"0":[0,1],"1":[2,3]},"pci":{"pci0000:80":1}})";
	ResourceSettings gpus{"", "gpu", ""};
	gpus.device_class = "gpu.example.com";
	gpus.file = "/dev/card%d";
	DraInventory drivers({gpus});
	auto c = std::make_shared<kube::DeviceClass>();
	c->meta.name = "gpu.example.com";
	drivers.classes_replaced({c});
	auto s = std::make_shared<kube::ResourceSlice>();
	s->meta.name = s->meta.uid = "s";
	s->driver = "gpu.example.com";
	s->pool = s->node = "n1";
	s->slices = 1;
	s->devices = {{"gpu-0", {{"resource.kubernetes.io/pcieRoot", std::string("pci0000:80")}}, {}, false, ""}};
	drivers.slices_replaced({s});
	NodeWorld w([&](ClusterSettings &settings) { settings.resources = {gpus}; });
	w.dra = &drivers;
	w.slurm.sockets = 2;
	w.slurm.cores_per_socket = 2;
	w.restart();
	w.run();
	const auto device = [&w] { return w.controller->gres("n1").at(0)["gres"].at(0)["devices"].at(0); };
	const auto problems = [&w] { return w.controller->gres("n1").at(0)["problems"]; };
	CHECK(w.controller->gres("n1").at(0)["gres"].at(0)["file"].str() == "/dev/card%d");
	CHECK(device()["cores"].str().empty()); // an older agent
	w.annotate("slurm-k8s.io/numa", node);
	w.run();
	CHECK(device()["numa"].str() == "1");
	CHECK(device()["cores"].str() == "2-3");
	CHECK(device()["socket_cores"].str() == "2-3");
	CHECK(problems().size() == 0);
	w.annotate("slurm-k8s.io/numa", R"({"cores":{"0":[0,0,99999]}})");
	w.run();
	CHECK(device()["cores"].str().empty());
	CHECK(problems().at(0).str() == "its annotation slurm-k8s.io/numa is no list of a node's cores by NUMA node and does not count");
}
