// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/foreign_pods.h"

#include <deque>
#include <limits>
#include <random>

#include "lib/core/names.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

class NoSlurm final : public SlurmPort {
public:
	explicit NoSlurm(HoldTable &holds) : holds_(holds) {}
	void submit(JobRequest, Done) override {}
	void end(const PodKey &, JobRef, JobEnd, Done) override {}
	void exclude(const PodKey &, const Job &, std::string, Done) override {}
	void set_devices(JobRef, DeviceChange, Done) override {}
	void wake_scheduler() override
	{
		woken++;
		holds_.let_masks_go();
	}
	int woken = 0;

private:
	HoldTable &holds_;
};

NodeSettings shared_by(const std::string &selector)
{
	NodeSettings out;
	out.selector = selector;
	return out;
}

std::vector<ResourceSettings> class_settings()
{
	ResourceSettings gpus{"", "gpu", ""};
	gpus.device_class = "gpu.example.com";
	return {gpus};
}

// Two shared nodes, n1 and n2, another one, and Slurm's side of them.
struct Site {
	Site() { start(); }

	void start()
	{
		nodes = std::make_unique<NodeView>(shared_by("shared=true"));
		foreign = std::make_unique<ForeignPods>("c", ForeignPorts{.slurm = slurm, .timer = timer, .holds = holds, .journal = journal,
								     .covered = [this](const std::string &) { return cover; },
								     .own_namespace = "jobs", .lost = &lost, .dra = &dra,
								     .ours_is_over = [this](const PodKey &key) { ours_over.push_back(key.uid); }},
							*nodes, use);
		nodes->set_slurm({{"n1", 1}, {"n2", 1}, {"other", 1}});
		nodes->replace({node("n1", "true"), node("n2", "true"), node("other", "false")});
		foreign->nodes_changed();
	}
	// slurmctld dies and comes back with what is on disk.
	void restart()
	{
		(void) journal.flush();
		foreign.reset();
		holds.restore(journal.saved());
		use = {};
		lost = {};
		start();
	}
	// The same, and no node is known yet.
	void restart_before_nodes()
	{
		(void) journal.flush();
		foreign.reset();
		holds.restore(journal.saved());
		nodes = std::make_unique<NodeView>(shared_by("shared=true"));
		foreign = std::make_unique<ForeignPods>("c", ForeignPorts{slurm, timer, holds, journal}, *nodes, use);
	}
	kube::NodePtr node(const std::string &name, const std::string &shared, bool ready = true)
	{
		auto n = std::make_shared<kube::Node>();
		n->meta.name = n->meta.uid = name;
		n->meta.labels["shared"] = shared;
		n->ready = ready;
		n->heartbeat = heartbeat;
		n->meta.annotations[std::string(names::gone)] = agent_says;
		return n;
	}
	// The agent of n1 has seen that nothing is left of any that it is asked about.
	void agent_answers(const std::string &answer)
	{
		agent_says = answer;
		foreign->node_changed("n1", nodes->change(node("n1", "true")));
	}
	// The kubelet of n1 reports, some seconds after the last time.
	void kubelet_reports(bool ready = true)
	{
		heartbeat += 10;
		foreign->node_changed("n1", nodes->change(node("n1", "true", ready)));
	}
	ForeignPodPtr pod(const std::string &uid, std::int64_t milli, std::int64_t mib, const std::string &on = "n1")
	{
		auto p = std::make_shared<ForeignPod>();
		p->meta.ns = "ns";
		p->meta.name = "pod-" + uid;
		p->meta.uid = uid;
		p->node_name = on;
		p->milli_cpu = milli;
		p->memory_bytes = mib << 20;
		p->phase = "Running";
		return p;
	}
	ForeignPodPtr ended(const std::string &uid)
	{
		auto p = std::make_shared<ForeignPod>(*pod(uid, 500, 100));
		p->phase = "Succeeded";
		p->over = true;
		return p;
	}
	const NodeMask *mask(const std::string &name = "n1")
	{
		kept = holds.masks();
		if (kept)
			for (const auto &m : kept->masks)
				if (m->node == name)
					return m.get();
		return nullptr;
	}

	std::int64_t heartbeat = 1000;
	std::string agent_says;
	LostPods lost;
	std::vector<std::string> ours_over; // uids
	Dra dra{class_settings()};
	Cover cover; // of each pod
	VirtualTimer timer;
	HoldTable holds;
	MemoryJournal journal;
	NoSlurm slurm{holds};
	NodeUse use;
	std::unique_ptr<NodeView> nodes;
	std::unique_ptr<ForeignPods> foreign;
	std::shared_ptr<const MaskSnapshot> kept;
};

} // namespace

TEST_CASE("GPUs of foreign pods are masked by their number, and after a restart from the saved ledger")
{
	Site s;
	const auto with_gpus = [&](const std::string &uid, std::int64_t gpus, bool over = false) {
		auto p = std::make_shared<ForeignPod>(*s.pod(uid, 0, 0));
		p->extended = {{"nvidia.com/gpu", gpus}, {"example.com/other", 1}};
		p->over = over;
		return p;
	};
	s.foreign->replaced({with_gpus("a", 2), with_gpus("b", 1)});
	REQUIRE(s.mask());
	CHECK(s.mask()->gres == GresList{{"gpu", "", 3, {}}});
	s.restart();
	REQUIRE(s.mask());
	CHECK(s.mask()->gres == GresList{{"gpu", "", 3, {}}});
	s.foreign->replaced({with_gpus("a", 2), with_gpus("b", 1, true)});
	REQUIRE(s.mask());
	CHECK(s.mask()->gres == GresList{{"gpu", "", 2, {}}});
}

TEST_CASE("a foreign pod that an etcd from a backup gives another node holds on to both until the first one's kubelet has reported")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	s.foreign->replaced({}); // the backup is older than its Binding
	const bool restarted = GENERATE(false, true);
	if (restarted) {
		s.restart();
		s.foreign->replaced({});
	}
	s.foreign->changed(s.pod("a", 500, 100, "n2"));
	REQUIRE(s.mask("n1"));
	CHECK(s.mask("n1")->milli_cpu == 500);
	REQUIRE(s.mask("n2"));
	s.foreign->changed([&] {
		auto over = std::make_shared<ForeignPod>(*s.ended("a"));
		over->node_name = "n2";
		return over;
	}());
	CHECK_FALSE(s.mask("n2"));
	CHECK(s.mask("n1"));
	for (int i = 0; i < 14; i++) {
		s.timer.advance(Millis(10'000));
		s.kubelet_reports();
	}
	CHECK_FALSE(s.mask("n1"));
	CHECK(s.foreign->crowd("n1").evictable.empty());
	s.foreign->nodes_changed();
}

TEST_CASE("of a foreign pod that running jobs have a part of already the rest is masked")
{
	Site s;
	s.cover = {.milli_cpu = 3000, .memory_mb = 300};
	s.foreign->replaced({s.pod("a", 5000, 400)});
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 2000);
	CHECK(s.mask()->memory_mb == 100);
	s.cover = {.milli_cpu = 5000, .memory_mb = 400};
	s.foreign->cover_changed("a");
	CHECK_FALSE(s.mask());
	CHECK(s.slurm.woken > 0);
	s.cover = {.milli_cpu = 1000, .memory_mb = 500}; // more memory than it has
	s.foreign->cover_changed("a");
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 4000);
	CHECK(s.mask()->memory_mb == 0);
	s.cover = {.whole = true};
	s.foreign->cover_changed("a");
	CHECK_FALSE(s.mask());
	s.cover.beyond = {{"gpu", "", 1, {2}}}; // a device that its kubelet gave it, and Slurm not its job
	s.foreign->cover_changed("a");
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 0);
	CHECK(s.mask()->memory_mb == 0);
	CHECK(s.mask()->gres == s.cover.beyond);
	s.cover.beyond.clear();
	s.foreign->cover_changed("a");
	CHECK_FALSE(s.mask());
}

TEST_CASE("a mask says of which jobs of Slurm's own pods are left, by the names of those in the namespace for them")
{
	Site s;
	auto named = [&s](const std::string &uid, const std::string &ns, const std::string &name) {
		auto p = std::make_shared<ForeignPod>(*s.pod(uid, 1000, 100));
		p->meta.ns = ns;
		p->meta.name = name;
		return p;
	};
	s.foreign->replaced({named("a", "jobs", "slurm-13-692dcb50-n1"), named("b", "jobs", "slurm-12-692dcb50-n1"),
			     named("c", "jobs", "slurm-14-692dcb50-n2"), named("d", "else", "slurm-15-692dcb50-n1")});
	REQUIRE(s.mask());
	CHECK(s.mask()->jobs == std::vector<std::uint32_t>{12, 13});
	CHECK_FALSE(s.mask()->some_jobs);
	s.cover = {.whole = true}; // the job runs
	s.foreign->cover_changed("a");
	s.holds.let_masks_go();
	CHECK(s.mask()->jobs == std::vector<std::uint32_t>{12});
	s.foreign->changed(named("e", "jobs", "slurm-shared-n1"));
	CHECK_FALSE(s.mask()->some_jobs);
	s.cover = {.milli_cpu = 500}; // one of those that share it has ended
	s.foreign->cover_changed("e");
	CHECK(s.mask()->some_jobs);
}

TEST_CASE("foreign pods of a node are masked together, until each of them has ended")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	s.foreign->changed(s.pod("b", 700, 50));
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 1200);
	CHECK(s.mask()->memory_mb == 150);
	s.foreign->changed(s.ended("a"));
	CHECK(s.mask()->milli_cpu == 700);
	CHECK(s.slurm.woken > 0);
	s.foreign->changed(s.ended("b"));
	CHECK_FALSE(s.mask());
	s.foreign->removed(s.ended("b"));
	CHECK(s.foreign->numbers().held == 0);
}

TEST_CASE("pods that belong to the node are told apart, with what pods may have there")
{
	Site s;
	auto agent = std::make_shared<ForeignPod>(*s.pod("a", 500, 100));
	agent->overhead = true;
	s.foreign->replaced({agent, s.pod("b", 700, 50)});
	auto n1 = std::make_shared<kube::Node>(*s.node("n1", "true"));
	n1->allocatable.milli_cpu = 8000;
	n1->allocatable.memory_bytes = std::int64_t(15800) << 20;
	s.slurm.woken = 0;
	s.foreign->node_changed("n1", s.nodes->change(n1));
	CHECK(s.slurm.woken == 1); // what is set aside may have room for more of the former than was known
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 700);
	CHECK(s.mask()->memory_mb == 50);
	CHECK(s.mask()->overhead_milli_cpu == 500);
	CHECK(s.mask()->overhead_mb == 100);
	CHECK(s.mask()->allocatable == Allocatable{8000, 15800});
	s.restart();
	CHECK(s.mask()->overhead_milli_cpu == 500);
}

TEST_CASE("foreign pods elsewhere hold nothing, until their node is shared")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100, "other"), s.pod("b", 500, 100, "not-in-slurm")});
	CHECK_FALSE(s.holds.masks());
	CHECK(s.journal.pending.empty());
	s.foreign->node_changed("other", s.nodes->change(s.node("other", "true")));
	REQUIRE(s.mask("other"));
	s.foreign->node_changed("other", s.nodes->change(s.node("other", "false")));
	CHECK_FALSE(s.mask("other"));
}

TEST_CASE("foreign pods of a shared node that Slurm does not have are masked before Slurm has it")
{
	Site s;
	s.nodes->change(s.node("n3", "true"));
	s.foreign->replaced({s.pod("a", 500, 100, "n3")});
	REQUIRE(s.mask("n3"));
	CHECK(s.mask("n3")->milli_cpu == 500);
	CHECK_FALSE(s.journal.pending.empty());
	s.foreign->removed(s.pod("a", 500, 100, "n3"));
	s.foreign->node_changed("n3", s.nodes->change(s.node("n3", "false")));
	CHECK_FALSE(s.mask("n3"));
}

TEST_CASE("what a kubelet offers to pods counts for the node that is shared, not for another cluster's of its name")
{
	Site s;
	auto offers = [&](const char *node, const char *shared, std::int64_t milli_cpu) {
		auto n = std::make_shared<kube::Node>(*s.node(node, shared));
		n->allocatable.milli_cpu = milli_cpu;
		s.foreign->node_changed(node, s.nodes->change(n));
	};
	s.foreign->replaced({s.pod("a", 500, 100), s.pod("b", 500, 100, "other")});
	offers("n1", "true", 3'000);
	CHECK(s.mask()->allocatable.milli_cpu == 3'000);
	s.holds.hold_foreign({.key = {"another", "ns", "c", "u-c"}, .node = "other", .foreign = true, .milli_cpu = 100});
	offers("other", "false", 64'000);
	REQUIRE(s.mask("other"));
	CHECK(s.mask("other")->allocatable.milli_cpu == 0);
}

TEST_CASE("a foreign pod that is resized in place holds what it has now")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	s.foreign->changed(s.pod("a", 2500, 300));
	CHECK(s.mask()->milli_cpu == 2500);
	s.foreign->changed(s.pod("a", 100, 100));
	CHECK(s.mask()->milli_cpu == 100);
	CHECK(s.mask()->memory_mb == 100);
}

TEST_CASE("a foreign pod that is made smaller in place holds what it had until its kubelet has told of that")
{
	Site s;
	const auto asks = [&](std::int64_t milli, std::int64_t mib, bool unheard) {
		auto p = std::make_shared<ForeignPod>(*s.pod("a", milli, mib));
		p->unheard = unheard;
		return p;
	};
	const auto masked = [&] {
		const NodeMask *mask = s.mask();
		return mask ? std::pair(mask->milli_cpu, mask->memory_mb) : std::pair(std::int64_t{0}, std::uint64_t{0});
	};
	const std::pair both(std::int64_t{1'000}, std::uint64_t{900});
	s.foreign->replaced({asks(100, 900, true)});
	s.foreign->changed(asks(1'000, 100, true));
	CHECK(masked() == both);
	SECTION("")
	{
		s.foreign->changed(asks(1'000, 100, false));
		CHECK(masked() == std::pair(std::int64_t{1'000}, std::uint64_t{100}));
	}
	SECTION("also while slurmctld starts anew")
	{
		s.restart();
		CHECK(masked() == both);
		s.foreign->replaced({asks(100, 100, true)});
		CHECK(masked() == both);
		s.foreign->changed(asks(100, 100, false));
		CHECK(masked() == std::pair(std::int64_t{100}, std::uint64_t{100}));
	}
	SECTION("and where another node has it holds nothing of that there")
	{
		auto moved = std::make_shared<ForeignPod>(*asks(100, 100, true));
		moved->node_name = "n2";
		s.foreign->changed(moved);
		REQUIRE(s.mask("n2"));
		CHECK(s.mask("n2")->milli_cpu == 100);
		CHECK(s.mask("n2")->memory_mb == 100);
	}
	SECTION("but for what jobs share, of which they know themselves what it has")
	{
		auto shared = std::make_shared<ForeignPod>(*asks(100, 100, true));
		shared->shared = std::make_shared<SharedPod>();
		s.foreign->changed(shared);
		CHECK(masked() == std::pair(std::int64_t{100}, std::uint64_t{100}));
	}
}

TEST_CASE("of a foreign pod its kubelet has told nothing while it has not admitted it or has not come to its spec")
{
	kube::Pod pod;
	CHECK(foreign_pod_of(pod)->unheard);
	pod.admitted = true;
	CHECK_FALSE(foreign_pod_of(pod)->unheard);
	pod.resize_unheard = true;
	CHECK(foreign_pod_of(pod)->unheard);
}

TEST_CASE("a foreign pod that requests all memory there can be leaves a ledger that can be read")
{
	Site s;
	auto p = std::make_shared<ForeignPod>(*s.pod("a", 500, 0));
	p->memory_bytes = std::numeric_limits<std::int64_t>::max();
	s.foreign->replaced({p});
	REQUIRE(s.mask());
	CHECK(s.mask()->memory_mb == std::uint64_t(1) << 43);
	s.restart();
	REQUIRE(s.mask());
	CHECK(s.mask()->memory_mb == std::uint64_t(1) << 43);
}

TEST_CASE("an agent is asked about foreign pods that have gone, but about no static pod")
{
	Site s;
	auto daemon = std::make_shared<ForeignPod>(*s.pod("daemon", 500, 100));
	daemon->overhead = true;
	auto fixed = std::make_shared<ForeignPod>(*s.pod("static", 500, 100));
	fixed->overhead = fixed->mirror = true;
	s.foreign->replaced({s.pod("a", 500, 100), daemon, fixed, s.pod("stays", 500, 100)});
	CHECK(s.lost.question("n1").empty());
	SECTION("seen or unseen")
	{
		s.foreign->removed(s.pod("a", 500, 100));
		s.foreign->replaced({s.pod("stays", 500, 100)});
		const std::string asked = s.lost.question("n1");
		CHECK(parse_lost(asked).size() == 2);
		s.agent_answers(asked + ",static@1001000,stays@1001000");
		CHECK(s.foreign->numbers().held == 2);
	}
	SECTION("while slurmctld was down: of pods that belong to the node nothing tells which are static")
	{
		s.restart();
		s.foreign->replaced({s.pod("stays", 500, 100)});
		CHECK(uid_of_lost(s.lost.question("n1")) == "a");
		s.agent_answers(s.lost.question("n1"));
		CHECK(s.foreign->numbers().held == 3);
	}
	SECTION("and what comes back from a backup of etcd is asked about no more, nor free")
	{
		s.foreign->removed(s.pod("a", 500, 100));
		const std::string asked = s.lost.question("n1");
		s.foreign->changed(s.pod("a", 500, 100));
		CHECK(s.lost.question("n1").empty());
		s.agent_answers(asked);
		CHECK(s.foreign->numbers().held == 4);
	}
}

TEST_CASE("a foreign pod that is deleted by force holds on, whatever its kubelet says")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	s.foreign->removed(s.pod("a", 500, 100));
	CHECK(s.mask());
	s.timer.advance(Millis(3'600'000));
	s.kubelet_reports();
	s.kubelet_reports();
	CHECK(s.mask());
	CHECK(s.foreign->numbers().lost == 1);
	SECTION("until its node's agent says so")
	{
		CHECK(s.lost.question("n2").empty());
		s.agent_answers("a@1"); // of another loss
		CHECK(s.mask());
		s.agent_answers(s.lost.question("n1"));
		CHECK_FALSE(s.mask());
		(void) s.journal.flush();
		CHECK_FALSE(s.journal.holds("a"));
		CHECK(s.lost.question("n1").empty());
	}
	SECTION("until a person says that nothing of it is left")
	{
		const auto done = s.foreign->release_by_hand("a", "root", false);
		REQUIRE(done);
		CHECK(done->ok());
		CHECK_FALSE(s.mask());
		(void) s.journal.flush();
		CHECK_FALSE(s.journal.holds("a"));
	}
	SECTION("also when slurmctld starts again")
	{
		s.restart();
		CHECK(s.mask());
		s.foreign->replaced({});
		CHECK(s.mask());
	}
}

TEST_CASE("a foreign pod that went while nobody looked is free when its kubelet has reported after its grace")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	s.restart();
	REQUIRE(s.mask());
	s.kubelet_reports();
	s.foreign->replaced({});
	CHECK(s.mask());
	CHECK(s.foreign->numbers().unproved == 1);
	s.kubelet_reports(); // too early
	CHECK(s.mask());
	s.timer.advance(Millis(111'000)); // grace 30 s, 30 s to clean up, 50 s in which nobody may have noticed that it was away
	s.foreign->node_changed("n1", false); // no news of the kubelet
	CHECK(s.mask());
	SECTION("and not if it is not ready")
	{
		s.kubelet_reports(false);
		s.kubelet_reports();
		CHECK(s.mask());
		s.timer.advance(Millis(111'000));
	}
	SECTION("and not if the node is gone")
	{
		s.nodes->remove("n1");
		s.foreign->node_changed("n1", true);
		s.kubelet_reports();
		CHECK(s.mask());
		s.timer.advance(Millis(111'000));
	}
	s.kubelet_reports();
	CHECK_FALSE(s.mask());
	CHECK(s.foreign->numbers().held == 0);
	(void) s.journal.flush();
	CHECK_FALSE(s.journal.holds("a"));
}

TEST_CASE("a kubelet that comes back proves nothing before it was there for as long as a pod takes to end")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	s.restart();
	s.foreign->replaced({});
	s.timer.advance(Millis(100'000));
	SECTION("when it was seen to be silent")
	{
		s.kubelet_reports(false);
		s.timer.advance(Millis(3'600'000));
		s.kubelet_reports();
	}
	SECTION("when nobody looked at it meanwhile")
	{
		s.timer.advance(Millis(3'600'000));
		s.heartbeat += 10;
		s.nodes->replace({s.node("n1", "true"), s.node("n2", "true"), s.node("other", "false")});
		s.foreign->nodes_changed();
	}
	s.timer.advance(Millis(109'000));
	s.kubelet_reports();
	CHECK(s.mask());
	s.timer.advance(Millis(2'000));
	s.kubelet_reports();
	CHECK_FALSE(s.mask());
}

TEST_CASE("a kubelet gives its own grace to a foreign pod that is deleted by force")
{
	kube::Pod pod;
	pod.grace_seconds = 600;
	CHECK(foreign_pod_of(pod)->grace_seconds == 600);
	pod.meta.deleting = true;
	CHECK(foreign_pod_of(pod)->grace_seconds == 600);
	pod.meta.deletion_grace_seconds = 5;
	CHECK(foreign_pod_of(pod)->grace_seconds == 5);
	pod.meta.deletion_grace_seconds = std::numeric_limits<std::int64_t>::max();
	CHECK(foreign_pod_of(pod)->grace_seconds == kube::max_grace_seconds);
}

TEST_CASE("who deletes the mirror of a static pod with a grace of his own says nothing of what runs")
{
	kube::Pod pod;
	pod.grace_seconds = 600;
	pod.meta.annotations["kubernetes.io/config.mirror"] = "hash";
	pod.meta.deleting = true;
	pod.meta.deletion_grace_seconds = 1;
	CHECK(foreign_pod_of(pod)->grace_seconds == 600);
}

TEST_CASE("a foreign pod that went while nobody looked has its own grace, after a restart too")
{
	Site s;
	auto slow = std::make_shared<ForeignPod>(*s.pod("a", 500, 100));
	slow->grace_seconds = 600;
	s.foreign->replaced({slow});
	s.restart();
	s.foreign->replaced({});
	s.timer.advance(Millis(679'000));
	s.kubelet_reports();
	CHECK(s.mask());
	s.timer.advance(Millis(2'000));
	s.kubelet_reports();
	CHECK_FALSE(s.mask());
}

TEST_CASE("what the saved ledger says of foreign pods holds until they have been listed")
{
	Site s;
	s.foreign->replaced({s.pod("a", 1500, 100), s.pod("b", 700, 10, "n2")});
	s.restart();
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 1500);
	REQUIRE(s.mask("n2"));
	s.foreign->replaced({s.pod("a", 1500, 100), s.pod("b", 700, 10, "n2")});
	CHECK(s.mask()->milli_cpu == 1500);
	CHECK(s.foreign->numbers().unproved == 0);
}

static std::shared_ptr<ForeignPod> mirror(Site &s, const std::string &uid)
{
	auto p = std::make_shared<ForeignPod>(*s.pod(uid, 500, 100));
	p->meta.name = "etcd-n1";
	p->mirror = true;
	return p;
}

TEST_CASE("a static pod that the kubelet shows anew is held once")
{
	Site s;
	s.foreign->replaced({mirror(s, "a")});
	s.foreign->removed(mirror(s, "a"));
	CHECK(s.mask()); // the static pod runs on
	s.foreign->changed(mirror(s, "b"));
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 500);
	CHECK(s.foreign->numbers().lost == 0);
}

TEST_CASE("a static pod whose mirror is gone is free when its kubelet, which needs a minute and a half for it, has not shown it anew")
{
	Site s;
	const auto gone = mirror(s, "a");
	gone->overhead = true;
	gone->grace_seconds = 1;
	s.foreign->replaced({gone});
	if (GENERATE(false, true))
		s.restart();
	s.foreign->removed(gone);
	s.foreign->replaced({});
	s.timer.advance(Millis(119'000));
	s.kubelet_reports();
	CHECK(s.mask());
	s.timer.advance(Millis(3'000));
	s.kubelet_reports();
	CHECK_FALSE(s.mask());
}

TEST_CASE("a mirror of a static pod that comes from a backup is not taken for the kubelet's word")
{
	Site s;
	auto mirror = [&](const std::string &uid, int milli_cpu, std::int64_t created) {
		auto p = std::make_shared<ForeignPod>(*s.pod(uid, milli_cpu, 100));
		p->meta.name = "etcd-n1";
		p->meta.creation_time = created;
		p->mirror = true;
		return p;
	};
	s.foreign->replaced({mirror("b", 500, 2000)});
	s.foreign->removed(mirror("b", 500, 2000));
	s.foreign->changed(mirror("a", 200, 1000)); // what stood there once, under another file
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 700);
	s.foreign->removed(mirror("a", 200, 1000));
	s.foreign->changed(mirror("c", 500, 3000));
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 500);
}

TEST_CASE("what is kept of a pod says when its object was made")
{
	kube::Pod pod;
	pod.meta.creation_time = 1234;
	CHECK(foreign_pod_of(pod)->meta.creation_time == 1234);
}

TEST_CASE("a node that Kubernetes deletes frees nothing of its foreign pods")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	s.nodes->remove("n1");
	s.foreign->node_changed("n1", true);
	CHECK(s.mask());
	s.foreign->nodes_changed();
	CHECK(s.mask());
	CHECK(s.foreign->take_deleted_nodes() == std::set<std::string>{"n1"});
	CHECK(s.foreign->take_deleted_nodes().empty());
}

TEST_CASE("a pod that was for Slurm before schedulerNames changed is not foreign to who releases it by hand")
{
	Site s;
	const ForeignPodPtr pod = s.pod("a", 500, 100);
	Hold hold;
	hold.key = {"c", pod->meta.ns, pod->meta.name, "a"};
	hold.node = "n1";
	hold.cores = {0};
	s.holds.adopt(hold);
	s.foreign->replaced({pod});
	CHECK_FALSE(s.foreign->release_by_hand("a", "root", true)); // the pods controller is to be asked
	CHECK(s.mask());
}

TEST_CASE("of a pod that was for Slurm before schedulerNames changed the pods controller hears when it has ended")
{
	Site s;
	Hold hold;
	hold.key = {"c", "ns", "pod-a", "a"};
	hold.node = "n1";
	hold.cores = {0};
	s.holds.adopt(hold);
	s.foreign->replaced({s.pod("a", 500, 100), s.pod("b", 500, 100)});
	CHECK(s.ours_over.empty());
	s.foreign->changed(s.ended("b")); // a foreign one
	CHECK(s.ours_over.empty());
	SECTION("while its object is there") { s.foreign->changed(s.ended("a")); }
	SECTION("with its object") { s.foreign->removed(s.ended("a")); }
	SECTION("while nobody looked") { s.foreign->replaced({s.ended("a")}); }
	CHECK(s.ours_over == std::vector<std::string>{"a"});
}

TEST_CASE("what a pod held that was foreign for a while, by schedulerNames, is masked no more once it has ended as ours")
{
	Site s;
	const ForeignPodPtr pod = s.pod("a", 500, 100);
	s.foreign->replaced({pod});
	s.foreign->replaced({}); // it is in another list now
	CHECK(s.mask());
	const PodKey key{"c", pod->meta.ns, pod->meta.name, "a"};
	Job job;
	job.ref = {7, 1};
	job.state = SK8_JOB_RUNNING;
	job.node = "n1";
	job.cores = {0};
	s.holds.job_started(key, job); // adopted
	REQUIRE(s.holds.place(key, job.ref));
	s.holds.release(key); // its end
	s.holds.job_ended(key, job.ref);
	s.holds.let_masks_go();
	SECTION("its node changes") { s.foreign->node_changed("n1", true); }
	SECTION("all nodes are listed") { s.foreign->nodes_changed(); }
	CHECK_FALSE(s.mask());
}

TEST_CASE("foreign pods that run are released by force only, and stay so while their object is there")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	CHECK_FALSE(s.foreign->release_by_hand("nobody", "root", false));
	CHECK_FALSE(s.foreign->release_by_hand("a", "root", false)->ok());
	CHECK(s.mask());
	CHECK(s.foreign->release_by_hand("a", "root", true)->ok());
	CHECK_FALSE(s.mask());
	s.foreign->changed(s.pod("a", 600, 100));
	CHECK_FALSE(s.mask());
	s.restart();
	s.foreign->replaced({s.pod("a", 600, 100)});
	CHECK_FALSE(s.mask());
	s.foreign->replaced({}); // its object is gone, and the word about it with it
	(void) s.journal.flush();
	CHECK(s.journal.saved().released.empty());
}

TEST_CASE("a foreign pod that is released before nodes are known is free at once, and by force only")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	s.restart_before_nodes();
	s.foreign->replaced({s.pod("a", 500, 100)});
	CHECK_FALSE(s.foreign->release_by_hand("a", "root", false)->ok());
	CHECK(s.mask());
	CHECK(s.foreign->release_by_hand("a", "root", true)->ok());
	CHECK_FALSE(s.mask());
	(void) s.journal.flush();
	CHECK_FALSE(s.journal.holds("a"));
	CHECK(s.journal.saved().released.size() == 1);
}

TEST_CASE("what a static pod holds is not free when it is shown anew before nodes are known")
{
	Site s;
	s.foreign->replaced({mirror(s, "a")});
	s.restart_before_nodes();
	s.foreign->replaced({mirror(s, "a")});
	s.foreign->removed(mirror(s, "a"));
	s.foreign->changed(mirror(s, "b"));
	CHECK(s.mask());
}

TEST_CASE("a foreign pod that vanishes before nodes are known is held once they are")
{
	Site s;
	s.restart_before_nodes();
	s.foreign->replaced({s.pod("a", 500, 100), s.pod("b", 500, 100, "other")});
	s.foreign->removed(s.pod("a", 500, 100));
	s.foreign->removed(s.pod("b", 500, 100, "other"));
	s.nodes->set_slurm({{"n1", 1}, {"other", 1}});
	s.nodes->replace({s.node("n1", "true"), s.node("other", "false")});
	s.foreign->nodes_changed();
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 500);
	CHECK_FALSE(s.mask("other"));
	CHECK(s.foreign->numbers().lost == 1);
}

TEST_CASE("a foreign pod that was resized while nobody looked, and vanishes before nodes are known, is held as it was last")
{
	Site s;
	s.foreign->replaced({s.pod("a", 500, 100)});
	s.restart_before_nodes();
	s.foreign->replaced({s.pod("a", 3'000, 100)});
	s.foreign->removed(s.pod("a", 3'000, 100));
	CHECK(s.mask()->milli_cpu == 500); // the saved ledger's word until nodes are known
	s.nodes->set_slurm({{"n1", 1}});
	s.nodes->replace({s.node("n1", "true")});
	s.foreign->nodes_changed();
	CHECK(s.mask()->milli_cpu == 3'000);
	SECTION("and stays so, whatever becomes of its node")
	{
		s.nodes->replace({s.node("n1", "false")});
		s.foreign->nodes_changed();
		CHECK(s.mask()->milli_cpu == 3'000);
	}
}

TEST_CASE("foreign pods take pod slots and host ports from pods for Slurm")
{
	Site s;
	s.use.set_slots("n1", 1);
	s.foreign->replaced({s.pod("a", 0, 0)});
	CHECK(s.foreign->use_changed());
	CHECK(s.use.objection("mine", {}, "n1") == "all 1 pod slots are taken");
	s.foreign->changed(s.ended("a"));
	CHECK(s.use.objection("mine", {}, "n1").empty());
}

TEST_CASE("foreign pods take ephemeral storage from pods for Slurm until their end is reported")
{
	Site s;
	s.use.set_storage("n1", 100);
	kube::Pod requests;
	requests.request.extended["ephemeral-storage"] = 80;
	CHECK(foreign_pod_of(requests)->storage_bytes == 80);
	auto a = std::make_shared<ForeignPod>(*s.pod("a", 0, 0));
	a->storage_bytes = 80;
	s.foreign->replaced({a});
	kube::Pod mine;
	mine.request.extended["ephemeral-storage"] = 30;
	CHECK_FALSE(s.use.objection("mine", mine, "n1").empty());
	s.foreign->changed(s.ended("a"));
	CHECK(s.use.objection("mine", mine, "n1").empty());
}

namespace {

// What really runs, what the API server has, and what the engine has been told; all of it at random.
struct Chance {
	struct Real {
		ForeignPodPtr object;     // null: there is none any more
		std::string node;
		std::int64_t milli = 0;
		bool runs = true;
		Millis ends_at{-1};       // what is deleted by force: its kubelet stops it within its grace
		bool told = false;        // this engine, or the ledger that it read, knows of it
		bool saved = false;       // the ledger on disk knows
	};
	struct News {
		ForeignPodPtr pod;
		bool removed;
	};

	explicit Chance(unsigned seed) : random(seed) { s.foreign->replaced({}); }

	int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
	void publish(const std::string &uid, bool removed)
	{
		if (connected)
			late.push_back({pods.at(uid).object, removed});
	}
	void create()
	{
		const std::string uid = "u" + std::to_string(next++);
		Real &p = pods[uid];
		p.node = below(2) ? "n1" : "n2";
		p.milli = 100 * (1 + below(20));
		p.object = s.pod(uid, p.milli, 10, p.node);
		publish(uid, false);
	}
	// Its process ends, its kubelet says so, and takes the object away if somebody deleted it.
	void end(const std::string &uid, bool deleted)
	{
		Real &p = pods.at(uid);
		if (!p.object)
			return;
		p.runs = false;
		auto last = std::make_shared<ForeignPod>(*p.object);
		last->phase = "Succeeded";
		last->over = true;
		p.object = last;
		publish(uid, false);
		if (!deleted)
			return;
		publish(uid, true);
		p.object.reset();
	}
	void force(const std::string &uid)
	{
		Real &p = pods.at(uid);
		if (!p.object)
			return;
		publish(uid, true);
		p.object.reset();
		if (p.runs)
			p.ends_at = s.timer.now() + Millis(1000 * below(45));
	}
	void deliver()
	{
		if (late.empty())
			return;
		const News news = late.front();
		late.pop_front();
		if (news.removed)
			s.foreign->removed(news.pod);
		else
			s.foreign->changed(news.pod);
		pods.at(news.pod->meta.uid).told = true;
	}
	void list()
	{
		late.clear();
		connected = true;
		std::vector<ForeignPodPtr> all;
		for (auto &[uid, p] : pods)
			if (p.object) {
				all.push_back(p.object);
				p.told = true;
			}
		s.foreign->replaced(all);
	}
	void save()
	{
		(void) s.journal.flush();
		for (auto &[uid, p] : pods)
			p.saved = p.told;
	}
	void crash()
	{
		s.journal.pending.clear(); // what was not on disk
		late.clear();
		connected = false;
		s.restart();
		for (auto &[uid, p] : pods)
			p.told = p.saved;
	}
	void pass(Millis time)
	{
		s.timer.advance(time);
		for (auto &[uid, p] : pods)
			if (p.ends_at >= Millis(0) && p.ends_at <= s.timer.now())
				p.runs = false;
	}
	void kubelets_report()
	{
		s.heartbeat += 10;
		for (const char *name : {"n1", "n2"})
			s.foreign->node_changed(name, s.nodes->change(s.node(name, "true")));
	}
	void step()
	{
		auto any = pods.begin();
		if (!pods.empty())
			std::advance(any, below(static_cast<int>(pods.size())));
		switch (below(12)) {
		case 0:
		case 1:
			return create();
		case 2:
			return pods.empty() ? create() : end(any->first, false);
		case 3:
			return pods.empty() ? create() : end(any->first, true);
		case 4:
			return pods.empty() ? create() : force(any->first);
		case 5:
			return save();
		case 6:
			return below(4) ? save() : crash();
		case 7:
			connected = connected && below(3) != 0;
			return connected ? deliver() : list();
		case 8:
			pass(Millis(1000 * below(40)));
			return kubelets_report();
		default:
			return deliver();
		}
	}
	// Whatever runs and is known is masked.
	std::string broken()
	{
		std::map<std::string, std::int64_t> needed;
		for (const auto &[uid, p] : pods)
			if (p.runs && p.told)
				needed[p.node] += p.milli;
		for (const auto &[node, milli] : needed) {
			const NodeMask *m = s.mask(node);
			if (!m || m->milli_cpu < milli)
				return node + " has " + std::to_string(m ? m->milli_cpu : 0) + " mCPU masked, " + std::to_string(milli) + " run";
		}
		return "";
	}

	std::mt19937 random;
	Site s;
	std::map<std::string, Real> pods;
	std::deque<News> late;
	bool connected = true;
	int next = 0;
};

} // namespace

TEST_CASE("what runs of foreign pods is masked whatever happens, and in the end only what a person must tell")
{
	std::size_t lost = 0;
	for (unsigned seed = 1; seed <= 300; seed++) {
		Chance c(seed);
		CAPTURE(seed);
		for (int step = 0; step < 200; step++) {
			c.step();
			CAPTURE(step);
			REQUIRE(c.broken() == "");
		}
		for (const auto &[uid, p] : c.pods)
			c.end(uid, true);
		while (!c.late.empty())
			c.deliver();
		c.list();
		c.kubelets_report();
		c.pass(Millis(120'000));
		c.kubelets_report();
		const ForeignNumbers left = c.s.foreign->numbers();
		CHECK(left.held == left.lost);
		lost += left.lost;
		c.save();
		CHECK(c.s.journal.saved().holds.size() == left.lost);
	}
	CHECK(lost > 0); // deletions by force that were seen
}

namespace {

// n1 says this in an annotation.
void say(Site &s, const std::string &annotation, const std::string &text)
{
	auto n = std::make_shared<kube::Node>(*s.node("n1", "true"));
	if (!text.empty())
		n->meta.annotations[annotation] = text;
	s.foreign->node_changed("n1", s.nodes->change(n));
}

// Of pods with cores of their own.
void say_pinned(Site &s, const std::string &text)
{
	say(s, "slurm-k8s.io/pinned-cores", text);
}

} // namespace

TEST_CASE("a foreign pod with cores of its own masks these, and of others what it requests more")
{
	Site s;
	s.foreign->replaced({s.pod("a", 2500, 100), s.pod("b", 1000, 50)});
	CHECK(s.mask()->milli_cpu == 3500);
	say_pinned(s, R"({"a":{"cores":[3,2,3],"cpus":2},"elsewhere":{"cores":[7],"cpus":1}})");
	CHECK(s.mask()->cores == std::vector<std::uint16_t>{2, 3});
	CHECK(s.mask()->milli_cpu == 1500);
	CHECK(s.mask()->memory_mb == 150);

	SECTION("they are known after a restart before Kubernetes has told")
	{
		(void) s.journal.flush();
		HoldTable later;
		later.restore(s.journal.saved());
		CHECK(later.masks()->masks.at(0)->cores == std::vector<std::uint16_t>{2, 3});
	}
	SECTION("another pod gets them")
	{
		say_pinned(s, R"({"b":{"cores":[2],"cpus":1}})");
		CHECK(s.mask()->cores == std::vector<std::uint16_t>{2});
		CHECK(s.mask()->milli_cpu == 2500);
	}
	SECTION("it ends")
	{
		s.foreign->changed(s.ended("a"));
		CHECK(s.mask()->cores.empty());
		CHECK(s.mask()->milli_cpu == 1000);
	}
	SECTION("a pod that comes later, to a node that has said so before")
	{
		s.foreign->changed(s.ended("a"));
		s.foreign->changed(s.ended("b"));
		say_pinned(s, R"({"c":{"cores":[1],"cpus":1}})");
		s.foreign->changed(s.pod("c", 1000, 10));
		CHECK(s.mask()->cores == std::vector<std::uint16_t>{1});
		CHECK(s.mask()->milli_cpu == 0);
	}
	SECTION("what the node says goes")
	{
		say_pinned(s, "");
		CHECK(s.mask()->cores.empty());
		CHECK(s.mask()->milli_cpu == 3500);
	}
	SECTION("jobs of Slurm's own have a part of it: nobody says which cores")
	{
		s.cover = {.milli_cpu = 500};
		s.foreign->cover_changed("a");
		CHECK(s.mask()->cores.empty());
		CHECK(s.mask()->milli_cpu == 3000);
	}
}

TEST_CASE("a foreign pod whose devices its node tells masks these, and others by their number")
{
	Site s;
	const auto gpus = [&](const std::string &uid, std::int64_t count) {
		auto p = std::make_shared<ForeignPod>(*s.pod(uid, 0, 0));
		p->extended = {{"nvidia.com/gpu", count}};
		return p;
	};
	s.foreign->replaced({gpus("a", 2), gpus("b", 1)});
	say(s, "slurm-k8s.io/devices", R"({"ids":{"nvidia.com/gpu":["w","x","y","z"]},"pods":{"a":{"nvidia.com/gpu":[0,2]}}})");
	const GresList known{{"gpu", "", 1, {}}, {"gpu", "", 2, {0, 2}}};
	CHECK(s.mask()->gres == known);

	SECTION("they are known after a restart before Kubernetes has told")
	{
		s.restart();
		CHECK(s.mask()->gres == known);
	}
	SECTION("what the node says goes")
	{
		say(s, "slurm-k8s.io/devices", "");
		CHECK(s.mask()->gres == GresList{{"gpu", "", 3, {}}});
	}
	SECTION("a job in the gate with one of them is not started on it")
	{
		const auto taken = s.holds.taken_by();
		CHECK(taken({"n1", 1, 0, {{"gpu", "", 1, {2}}}, {}})->uid == "a");
		CHECK(!taken({"n1", 1, 0, {{"gpu", "", 1, {1}}}, {}}));
	}
}

TEST_CASE("the devices of a foreign pod that only the saved ledger knows are masked when its node tells them")
{
	Site s;
	auto p = std::make_shared<ForeignPod>(*s.pod("a", 0, 0));
	p->extended = {{"nvidia.com/gpu", 2}};
	s.foreign->replaced({p});
	const auto tell = [&](bool listed) {
		auto n = std::make_shared<kube::Node>(*s.node("n1", "true"));
		n->meta.annotations["slurm-k8s.io/devices"] =
			R"({"ids":{"nvidia.com/gpu":["w","x","y","z"]},"pods":{"a":{"nvidia.com/gpu":[0,2]}}})";
		if (!listed)
			return s.foreign->node_changed("n1", s.nodes->change(n));
		s.nodes->replace({n, s.node("n2", "true"), s.node("other", "false")});
		s.foreign->nodes_changed();
	};
	s.restart();
	CHECK(s.mask()->gres == GresList{{"gpu", "", 2, {}}});
	SECTION("before pods are listed")
	{
		tell(GENERATE(false, true));
		CHECK(s.mask()->gres == GresList{{"gpu", "", 2, {0, 2}}});
	}
	SECTION("when it is gone, and nobody knows whether it has ended")
	{
		s.foreign->replaced({});
		tell(GENERATE(false, true));
		CHECK(s.mask()->gres == GresList{{"gpu", "", 2, {0, 2}}});
		s.restart();
		CHECK(s.mask()->gres == GresList{{"gpu", "", 2, {0, 2}}});
	}
	SECTION("not if they are not as many as it has")
	{
		say(s, "slurm-k8s.io/devices", R"({"ids":{"nvidia.com/gpu":["w","x"]},"pods":{"a":{"nvidia.com/gpu":[1]}}})");
		CHECK(s.mask()->gres == GresList{{"gpu", "", 2, {}}});
	}
}

TEST_CASE("what a node says of pinned cores may be anything")
{
	for (const char *text : {"x", "[]", "7", "{\"a\":7}", R"({"a":{"cores":7,"cpus":1}})", R"({"a":{"cores":[-1],"cpus":1}})",
				 R"({"a":{"cores":[70000],"cpus":1}})", R"({"a":{"cores":[1],"cpus":-1}})", R"({"a":{"cores":["1"],"cpus":1}})",
				 R"({"a":{"cores":[1],"cpus":1},"a":{"cores":[2],"cpus":1}})"}) {
		INFO(text);
		CHECK(!parse_pinned(text));
		Site s;
		s.foreign->replaced({s.pod("a", 1000, 100)});
		say_pinned(s, text);
		CHECK(s.mask()->cores.empty());
		CHECK(s.mask()->milli_cpu == 1000);
	}
	CHECK(!parse_pinned("{\"" + std::string(65, 'u') + "\":{\"cores\":[],\"cpus\":0}}"));
	CHECK(!parse_pinned(std::string(300'000, ' ') + "{}"));
	const PinnedPods pods{{"a", {{1, 2}, 3}}, {"b", {{}, 0}}};
	CHECK(*parse_pinned(pinned_text(pods)) == pods);
	CHECK(pinned_text({}).empty());
	CHECK(parse_pinned("")->empty());
}

// ---- what pods claim ----

namespace {

struct Claiming : Site {
	Claiming()
	{
		auto c = std::make_shared<kube::DeviceClass>();
		c->meta.name = "gpu.example.com";
		dra.inventory.classes_replaced({c});
		dra.inventory.slices_replaced({slice()});
		dra.claims_replaced({});
		auto p = std::make_shared<ForeignPod>(*pod("a", 1000, 100));
		p->resource_claims = {{"gpus", "c"}};
		claims = p;
	}
	static kube::ResourceSlicePtr slice()
	{
		auto s = std::make_shared<kube::ResourceSlice>();
		s->meta.name = s->meta.uid = "s";
		s->driver = "gpu.example.com";
		s->pool = s->node = "n1";
		s->slices = 1;
		for (int i = 0; i < 4; i++)
			s->devices.push_back({"gpu-" + std::to_string(i), {}, {}, false, ""});
		return s;
	}
	// For pod a. nics: of a driver that is not there.
	void allocate(const std::vector<std::string> &devices, const std::vector<std::string> &nics = {})
	{
		auto c = std::make_shared<kube::ResourceClaim>();
		c->meta.ns = "ns";
		c->meta.name = c->meta.uid = "c";
		c->allocated = true;
		for (const auto &d : devices)
			c->devices.push_back({"r", "gpu.example.com", "n1", d});
		for (const auto &d : nics)
			c->devices.push_back({"r", "nic.example.com", "n1", d});
		c->reserved_for = {"a"};
		dra.claim_changed(c);
		foreign->claim_changed("ns", "c");
	}
	ForeignPodPtr claims;
};

} // namespace

TEST_CASE("what claims of foreign pods have is masked device by device, whichever is heard of first")
{
	Claiming s;
	const bool pod_first = GENERATE(false, true);
	if (pod_first) {
		s.foreign->replaced({s.claims});
		CHECK(s.mask()->gres.empty());
	}
	s.allocate({"gpu-1", "gpu-3"});
	if (!pod_first)
		s.foreign->replaced({s.claims});
	const GresList both{{"gpu", "", 1, {1}}, {"gpu", "", 1, {3}}};
	CHECK(s.mask()->gres == both);
	SECTION("also while its driver is away")
	{
		s.dra.inventory.slice_removed(Claiming::slice());
		s.foreign->claims_changed();
		CHECK(s.mask()->gres == both);
		s.foreign->changed(s.claims);
		CHECK(s.mask()->gres == both);
	}
	SECTION("after a restart, whose driver comes later")
	{
		s.dra.inventory.slices_replaced({});
		s.restart();
		s.foreign->replaced({s.claims});
		CHECK(s.mask()->gres == both);
	}
	SECTION("also when the claim is freed before the pod's end is proved")
	{
		auto freed = std::make_shared<kube::ResourceClaim>();
		freed->meta.ns = "ns";
		freed->meta.name = freed->meta.uid = "c";
		s.dra.claim_changed(freed);
		s.foreign->claim_changed("ns", "c");
		s.foreign->removed(s.claims);
		CHECK(s.mask()->gres == both);
	}
	SECTION("until it has ended")
	{
		s.foreign->changed(s.ended("a"));
		CHECK(s.mask() == nullptr);
		s.foreign->removed(s.ended("a"));
		s.foreign->claims_changed();
	}
	SECTION("not what another pod's claim has")
	{
		auto other = std::make_shared<ForeignPod>(*s.pod("b", 1000, 100));
		other->resource_claims = {{"gpus", "c"}};
		s.foreign->changed(other); // the claim is not reserved for it
		CHECK(s.mask()->gres == both);
	}
}

TEST_CASE("a device of a driver that is not there hides nothing of what else a foreign pod's claims have")
{
	Claiming s;
	s.allocate({"gpu-1"}, {"nic-0"});
	s.foreign->replaced({s.claims});
	REQUIRE(s.mask());
	CHECK(s.mask()->gres == GresList{{"gpu", "", 1, {1}}});
	SECTION("and what is known of it later comes beside that")
	{
		s.allocate({"gpu-1", "gpu-3"}, {"nic-0"});
		const GresList both{{"gpu", "", 1, {1}}, {"gpu", "", 1, {3}}};
		CHECK(s.mask()->gres == both);
		s.restart();
		s.foreign->replaced({s.claims});
		CHECK(s.mask()->gres == both);
	}
	SECTION("also when its own driver goes and another one comes")
	{
		s.dra.inventory.slices_replaced({});
		s.foreign->claims_changed();
		CHECK(s.mask()->gres == GresList{{"gpu", "", 1, {1}}});
	}
	SECTION("and an etcd from a backup that gives it another node takes nothing of that along")
	{
		auto elsewhere = std::make_shared<ForeignPod>(*s.claims);
		elsewhere->node_name = "n2";
		s.foreign->changed(elsewhere);
		CHECK(s.mask("n1")->gres == GresList{{"gpu", "", 1, {1}}});
		REQUIRE(s.mask("n2"));
		CHECK(s.mask("n2")->gres.empty());
	}
}

TEST_CASE("what kube-scheduler serves by a claim of its own is masked once, by device, and not by number beside that")
{
	Claiming s;
	const auto with = [&](std::int64_t gpus, std::vector<kube::PodResourceClaim> claims) {
		auto p = std::make_shared<ForeignPod>(*s.claims);
		p->extended = {{"nvidia.com/gpu", gpus}};
		p->resource_claims = std::move(claims);
		return p;
	};
	const Gres first{"gpu", "", 1, {1}};
	SECTION("also after a restart, whose driver comes later")
	{
		s.foreign->replaced({with(1, {{"", "c"}})});
		CHECK(s.mask()->gres == GresList{{"gpu", "", 1, {}}}); // which one is not known yet
		s.allocate({"gpu-1"});
		CHECK(s.mask()->gres == GresList{first});
		s.dra.inventory.slices_replaced({});
		s.restart();
		s.foreign->replaced({with(1, {{"", "c"}})});
		CHECK(s.mask()->gres == GresList{first});
	}
	SECTION("what of it is not known yet by number")
	{
		s.allocate({"gpu-1"});
		s.foreign->replaced({with(2, {{"", "c"}})});
		CHECK(s.mask()->gres == GresList{{"gpu", "", 1, {}}, first});
	}
	SECTION("and claims of the pod's own are nothing of what it requests beside them")
	{
		s.allocate({"gpu-1"});
		s.foreign->replaced({with(1, {{"gpus", "c"}})});
		CHECK(s.mask()->gres == GresList{{"gpu", "", 1, {}}, first});
		s.foreign->changed(with(1, {{"gpus", "c"}, {"", "extended"}})); // which has not been heard of
		CHECK(s.mask()->gres == GresList{{"gpu", "", 1, {}}, first});
	}
}
