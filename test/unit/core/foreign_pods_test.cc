// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/foreign_pods.h"

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
	void wake_scheduler() override
	{
		woken++;
		holds_.let_masks_go();
	}
	int woken = 0;

private:
	HoldTable &holds_;
};

// Two shared nodes, n1 and n2, another one, and Slurm's side of them.
struct Site {
	Site() { start(); }

	void start()
	{
		nodes = std::make_unique<NodeView>("shared=true");
		foreign = std::make_unique<ForeignPods>("c", ForeignPorts{slurm, timer, holds, journal}, *nodes, use);
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
		start();
	}
	kube::NodePtr node(const std::string &name, const std::string &shared, bool ready = true)
	{
		auto n = std::make_shared<kube::Node>();
		n->meta.name = n->meta.uid = name;
		n->meta.labels["shared"] = shared;
		n->ready = ready;
		n->heartbeat = heartbeat;
		return n;
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
	s.timer.advance(Millis(61'000)); // grace 30 s, and 30 s to clean up
	s.foreign->node_changed("n1", false); // no news of the kubelet
	CHECK(s.mask());
	SECTION("and not if it is not ready")
	{
		s.kubelet_reports(false);
		CHECK(s.mask());
	}
	SECTION("and not if the node is gone")
	{
		s.nodes->remove("n1");
		s.foreign->node_changed("n1", true);
		CHECK(s.mask());
	}
	s.kubelet_reports();
	CHECK_FALSE(s.mask());
	CHECK(s.foreign->numbers().held == 0);
	(void) s.journal.flush();
	CHECK_FALSE(s.journal.holds("a"));
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

TEST_CASE("a static pod that the kubelet shows anew is held once")
{
	Site s;
	auto mirror = [&](const std::string &uid) {
		auto p = std::make_shared<ForeignPod>(*s.pod(uid, 500, 100));
		p->meta.name = "etcd-n1";
		p->mirror = true;
		return p;
	};
	s.foreign->replaced({mirror("a")});
	s.foreign->removed(mirror("a"));
	CHECK(s.mask()); // the static pod runs on
	s.foreign->changed(mirror("b"));
	REQUIRE(s.mask());
	CHECK(s.mask()->milli_cpu == 500);
	CHECK(s.foreign->numbers().lost == 0);
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
