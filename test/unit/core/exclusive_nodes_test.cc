// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Jobs that want their nodes without others' pods: the whole way of a job through the gate, with the real foreign pods,
// holds and reservations; the API server, kubelets and Slurm are models. However it goes, no job is launched on a node
// where a pod of others may still run.
#include "lib/core/exclusive_nodes.h"

#include <deque>
#include <memory>
#include <set>

#include "lib/core/names.h"
#include "lib/core/node_taint.h"
#include "lib/core/reservations.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

constexpr Millis minute{60'000};
const kube::Taint our_taint{std::string(names::exclusive_taint), "slurm", kube::TaintEffect::no_schedule};

struct JobsPods final : ReservationPort {
	void create_pod(const std::string &, const Json &object, Created done) override
	{
		created.push_back(std::string(object["metadata"]["name"].str()));
		queue.push_back([done = std::move(done), uid = "uid-" + created.back()] { done({.status = 201}, uid); });
	}
	void resize_pod(const PodKey &, const std::string &, const Json &, Resized) override { FAIL("nobody asked for that"); }
	void annotate_pod(const PodKey &, std::string_view, const std::string &, KubePort::Done) override { FAIL("nobody asked for that"); }
	void find_trouble(const PodKey &, Lacks, std::function<void(const std::string &)>) override { FAIL("nobody asked for that"); }
	void delete_pod(const PodKey &, std::int64_t, KubePort::Done) override { FAIL("nobody asked for that"); }

	explicit JobsPods(std::deque<std::function<void()>> &q) : queue(q) {}
	std::deque<std::function<void()>> &queue;
	std::vector<std::string> created;
};

struct NoSlurm final : SlurmPort {
	explicit NoSlurm(HoldTable &holds) : holds_(holds) {}
	void submit(JobRequest, Done) override {}
	void end(const PodKey &, JobRef, JobEnd, Done) override {}
	void exclude(const PodKey &, const Job &, std::string, Done) override {}
	void set_devices(JobRef, DeviceChange, Done) override {}
	void wake_scheduler() override { holds_.let_masks_go(); }

private:
	HoldTable &holds_;
};

// Nodes n1 and n2, which jobs may have for themselves, n3, which is only shared, and "alone" of Slurm's own.
struct Pool final : NativePort, EvictionPort {
	Pool()
	{
		settings.name = "c";
		settings.nodes.selector = "shared=true";
		settings.nodes.exclusive = {.selector = "pool=batch", .timeout = 5 * minute, .idle = 2 * minute};
		for (const std::string name : {"n1", "n2", "n3", "alone"}) {
			kube::Node n;
			n.meta.name = n.meta.uid = name;
			n.ready = true;
			n.meta.labels["shared"] = name == "alone" ? "false" : "true";
			n.meta.labels["pool"] = name == "n3" ? "web" : "batch";
			kube[name] = n;
		}
		start();
	}

	// slurmctld begins; it is told in the given order what there is.
	void start(bool jobs_first = false)
	{
		queue.clear();
		timer = VirtualTimer();
		nodes = std::make_unique<NodeView>(settings.nodes);
		foreign = std::make_unique<ForeignPods>(
			"c",
			ForeignPorts{slurm, timer, holds, journal,
				     [this](const std::string &uid) { return reservations ? reservations->covered(uid) : Cover{}; },
				     settings.reservations.ns, settings.nodes.exclusive.bare_pods,
				     [this](const std::string &node) { return exclusive && exclusive->keeps_pods(node); }},
			*nodes, use);
		exclusive = std::make_unique<ExclusiveNodes>(
			settings,
			ExclusivePorts{*this, *this, timer, [this] { return foreign->synced(); },
				       [this](const std::string &node) { return foreign->crowd(node); },
				       [this](const std::string &node) { queue.push_back([this, node] { taint(node); }); },
				       [this](const std::string &node) { foreign->keeps_changed(node); },
				       [this](JobRef job) { reservations->look(job); }},
			*nodes);
		reservations = std::make_unique<Reservations>(
			settings,
			ReservationPorts{*this, jobs_pods, timer, [](std::uint32_t) { return "alice"; },
					 [this](const std::string &uid) { foreign->cover_changed(uid); },
					 holds.taken_by(), exclusive.get()},
			*nodes);
		nodes->set_slurm({{"n1", 1}, {"n2", 1}, {"n3", 1}, {"alone", 1}});
		if (jobs_first)
			tell_jobs();
		for (const auto &j : in_gate)
			tell_arrival(j);
		list();
		if (!jobs_first)
			tell_jobs();
		run();
	}
	void list()
	{
		std::vector<kube::NodePtr> all;
		for (const auto &[name, n] : kube)
			all.push_back(std::make_shared<kube::Node>(n));
		nodes->replace(all);
		foreign->nodes_changed();
		reservations->nodes_changed();
		exclusive->nodes_changed();
		std::vector<ForeignPodPtr> there;
		for (const auto &[name, p] : pods)
			there.push_back(std::make_shared<ForeignPod>(p));
		reservations->replaced(there);
		foreign->replaced(there);
		exclusive->all_pods_changed();
	}
	std::string report() const
	{
		const auto said = exclusive->reports("n1");
		return said.size() == 1 ? said.front() : said.empty() ? "nothing" : "more than one sentence";
	}
	void run(Millis time = Millis(0))
	{
		for (;;) {
			while (!queue.empty()) {
				auto f = std::move(queue.front());
				queue.pop_front();
				f();
			}
			if (time <= Millis(0))
				return;
			timer.advance(std::min(time, Millis(500)));
			time -= std::min(time, Millis(500));
		}
	}

	// ---- people ----
	void pod(const std::string &name, const std::function<void(ForeignPod &)> &how = {}, const std::string &on = "n1")
	{
		ForeignPod p;
		p.meta.ns = "ns";
		p.meta.name = name;
		p.meta.uid = "uid-" + name;
		p.node_name = on;
		p.milli_cpu = 1000;
		p.phase = "Running";
		p.admitted = p.controlled = true;
		if (how)
			how(p);
		pods[name] = p;
		tell(name);
	}
	void label(const std::string &node, const std::string &value)
	{
		kube.at(node).meta.labels["pool"] = value;
		tell_node(node);
	}
	// Its kubelet has ended it, and it goes.
	void gone(const std::string &name)
	{
		auto last = std::make_shared<ForeignPod>(pods.at(name));
		last->over = true;
		pods.erase(name);
		queue.push_back([this, last] {
			foreign->removed(last);
			exclusive->pods_changed(last->node_name);
		});
		run();
	}
	void arrives(std::uint32_t id, std::vector<std::string> on = {"n1"}, bool wants_exclusive = true)
	{
		auto j = std::make_shared<NativeJob>();
		j->ref = {id, 1000 + id};
		j->requeues = true;
		j->exclusive = wants_exclusive;
		for (const auto &node : on)
			j->shares.push_back({.node = node, .cpus = 1});
		in_gate.push_back(j);
		jobs.push_back(j);
		fates[id] = "waits";
		tell_arrival(j);
		run();
	}
	// scontrol update NodeList=
	void keeps_only(std::uint32_t id, const std::string &node)
	{
		auto smaller = std::make_shared<NativeJob>(*find(id));
		std::erase_if(smaller->shares, [&](const NativeShare &s) { return s.node != node; });
		for (auto *list : {&jobs, &in_gate})
			for (auto &j : *list)
				if (j->ref == smaller->ref)
					j = smaller;
		exclusive->left(smaller->ref, {node});
		reservations->left(smaller->ref, {node});
		run();
	}
	// All of its processes end.
	void ends(std::uint32_t id)
	{
		const JobRef ref = find(id)->ref;
		exclusive->ended(ref);
		reservations->ended(ref);
		leaves(id);
	}
	void leaves(std::uint32_t id)
	{
		const JobRef ref = find(id)->ref;
		std::erase_if(jobs, [&](const auto &j) { return j->ref == ref; });
		exclusive->left(ref, {});
		reservations->left(ref, {});
		run();
	}

	// ---- what is seen ----
	bool tainted(const std::string &node = "n1") const { return has_taint(kube.at(node), OurTaint::exclusive); }
	// What such a job is kept away from: "all", "nothing", or so many mCPU.
	std::string in_its_way(const std::string &node = "n1")
	{
		const auto masks = holds.masks();
		for (std::size_t i = 0; masks && i < masks->masks.size(); i++)
			if (const auto &m = masks->masks[i]; m->node == node) {
				const NodeMask &own = m->exclusive ? *m->exclusive : *m;
				if (own.whole)
					return "all";
				return own.milli_cpu ? std::to_string(own.milli_cpu) : "nothing";
			}
		return "nothing";
	}

	ClusterSettings settings;
	VirtualTimer timer;
	MemoryJournal journal;
	HoldTable holds;
	NoSlurm slurm{holds};
	std::deque<std::function<void()>> queue;
	JobsPods jobs_pods{queue};
	NodeUse use;
	std::map<std::string, kube::Node> kube;
	std::map<std::string, ForeignPod> pods;
	std::vector<NativeJobPtr> jobs, in_gate;
	std::map<std::uint32_t, std::string> fates; // "waits", "launched", or why it was not
	std::vector<std::string> evicted;           // asked for, each time
	std::map<std::string, int> refusals;        // HTTP status by the pod's name
	bool kubelets = true;                       // end at once what is evicted
	bool can_taint = true;
	std::unique_ptr<NodeView> nodes;
	std::unique_ptr<ForeignPods> foreign;
	std::unique_ptr<ExclusiveNodes> exclusive;
	std::unique_ptr<Reservations> reservations;

private:
	NativeJobPtr find(std::uint32_t id) const
	{
		return *std::ranges::find_if(jobs, [id](const auto &j) { return j->ref.id == id; });
	}
	void tell_jobs()
	{
		exclusive->jobs_replaced(jobs);
		reservations->jobs_replaced(jobs);
	}
	void tell_arrival(const NativeJobPtr &j)
	{
		exclusive->arrived(j);
		reservations->arrived(j);
	}
	void tell(const std::string &name)
	{
		queue.push_back([this, pod = std::make_shared<ForeignPod>(pods.at(name))] {
			reservations->changed(pod);
			foreign->changed(pod);
			exclusive->pods_changed(pod->node_name);
		});
		run();
	}
	void tell_node(const std::string &name)
	{
		const bool placing = nodes->change(std::make_shared<kube::Node>(kube.at(name)));
		foreign->node_changed(name, placing);
		exclusive->node_changed(name);
		reservations->nodes_changed();
	}
	// As the nodes controller does.
	void taint(const std::string &name)
	{
		if (!kube.contains(name))
			return;
		const auto on = taint_change(kube.at(name), true, OurTaint::exclusive, exclusive->wants_taint(name));
		if (!on || !can_taint)
			return;
		if (*on)
			kube.at(name).taints.push_back(our_taint);
		else
			std::erase(kube.at(name).taints, our_taint);
		queue.push_back([this, name] { tell_node(name); });
	}
	void evict_pod(const PodKey &key, KubePort::Done done) override
	{
		CHECK(tainted(pods.at(key.name).node_name)); // else it may come back
		evicted.push_back(key.name);
		KubeReply r;
		r.status = refusals.contains(key.name) ? refusals.at(key.name) : 201;
		r.error = r.ok() ? "" : "the budget forbids it";
		queue.push_back([done = std::move(done), r] { done(r); });
		if (!r.ok())
			return;
		pods.at(key.name).meta.deleting = true;
		queue.push_back([this, name = key.name] {
			tell(name);
			if (kubelets)
				gone(name);
		});
	}
	void answer(JobRef job, GateAnswer answer) override
	{
		std::erase_if(in_gate, [&](const auto &j) { return j->ref == job; });
		fates[job.id] = answer.open ? "launched" : answer.why;
		const NativeJobPtr j = find(job.id);
		for (const auto &share : j->shares)
			for (const auto &[name, p] : pods)
				CHECK_FALSE((answer.open && j->exclusive && p.node_name == share.node && !p.overhead && p.meta.ns == "ns"));
		if (!answer.open)
			queue.push_back([this, job] { // back into the queue
				exclusive->ended(job);
				leaves(job.id);
			});
	}
	void watch_end(JobRef) override {}
	void end(JobRef, bool, std::string, SlurmPort::Done) override { FAIL("nobody is to be ended"); }
	void set_devices(JobRef, DeviceChange, SlurmPort::Done) override { FAIL("nobody gets devices"); }
};

using Is = std::string;

} // namespace

TEST_CASE("exclusive: nobody is evicted from a node that a job gives back while it waits")
{
	Pool w;
	w.pod("a");
	w.pod("b", {}, "n2");
	w.refusals = {{"a", 429}, {"b", 429}};
	w.arrives(7, {"n1", "n2"});
	w.run(minute);
	REQUIRE(w.fates.at(7) == "waits");
	w.keeps_only(7, "n1");
	w.refusals.clear();
	w.evicted.clear();
	w.run(minute);
	CHECK(w.evicted == std::vector<Is>{"a"});
	CHECK(w.pods.contains("b"));
	CHECK(w.fates.at(7) == "launched");
	w.run(3 * minute);
	CHECK_FALSE(w.tainted("n2"));
}

TEST_CASE("exclusive: a busy node is tainted, emptied, given to the job, kept for a while, and given back")
{
	Pool w;
	w.pod("a");
	w.pod("b");
	w.kubelets = false;
	CHECK(w.in_its_way() == "nothing");
	CHECK(w.exclusive->reports("n1").empty());
	w.arrives(7);
	CHECK(w.tainted());
	CHECK_FALSE(w.tainted("n2"));
	CHECK(std::set(w.evicted.begin(), w.evicted.end()) == std::set<std::string>{"a", "b"});
	CHECK(w.fates.at(7) == "waits");
	w.gone("a");
	CHECK(w.fates.at(7) == "waits");
	CHECK(w.report() == "is emptied for job 7, for another 300 s: node n1: pod ns/b has not gone");
	w.gone("b");
	CHECK(w.fates.at(7) == "launched");
	CHECK(w.evicted.size() == 2);
	CHECK(w.report() == "job 7 has it without others' pods");

	w.run(60 * minute);
	CHECK(w.tainted());
	w.ends(7);
	w.run(minute);
	CHECK(w.tainted());
	CHECK(w.report() == "no job has it, and it takes pods again in 60 s");
	SECTION("the next one finds it empty")
	{
		w.arrives(8);
		CHECK(w.fates.at(8) == "launched");
		w.run(10 * minute);
		CHECK(w.tainted());
		w.ends(8);
		w.run(minute);
		CHECK(w.tainted());
	}
	w.run(2 * minute);
	CHECK_FALSE(w.tainted());
	CHECK(w.report() == "nothing");
	CHECK(w.evicted.size() == 2);
}

TEST_CASE("exclusive: other jobs neither wait nor make a node exclusive, and what belongs to the node stays")
{
	Pool w;
	w.pod("daemon", [](ForeignPod &p) { p.overhead = true; });
	w.pod("reservation", [&](ForeignPod &p) { p.meta.ns = w.settings.reservations.ns; });
	w.pod("a", {}, "n2");
	w.arrives(7, {"n2"}, false);
	CHECK(w.fates.at(7) == "launched");
	CHECK_FALSE(w.tainted("n2"));
	w.arrives(8, {"n1", "alone"});
	CHECK(w.fates.at(8) == "launched");
	CHECK(w.evicted.empty());
	CHECK(w.tainted());
	CHECK_FALSE(w.tainted("alone"));
}

TEST_CASE("exclusive: a budget that forbids is asked again with pauses, and in the end the job goes back and the node, too")
{
	Pool w;
	w.pod("a");
	w.refusals["a"] = 429;
	w.arrives(7);
	w.run(minute);
	CHECK(w.fates.at(7) == "waits");
	CHECK(w.evicted.size() > 3);
	CHECK(w.evicted.size() < 12);
	CHECK(w.report() == "is emptied for job 7, for another 240 s: node n1: pod ns/a has not gone; the budget forbids it");
	SECTION("it lets the pod go in time")
	{
		w.refusals.clear();
		w.run(minute);
		CHECK(w.fates.at(7) == "launched");
		return;
	}
	w.run(5 * minute);
	CHECK(w.fates.at(7).find("pod ns/a has not gone; the budget forbids it") != Is::npos);
	CHECK_FALSE(w.tainted()); // at once
	CHECK(w.in_its_way() == "all"); // for as long as it has waited
	CHECK(w.report() == "could not be emptied, and is not tried again for 240 s");
	const auto tries = w.evicted.size();
	w.run(3 * minute);
	CHECK(w.evicted.size() == tries);
	CHECK(w.in_its_way() == "all");
	w.run(3 * minute);
	CHECK(w.in_its_way() == "nothing");
}

TEST_CASE("exclusive: pods that nobody evicts keep such jobs from a node, and send back one that is there already")
{
	Pool w;
	w.pod("a");
	w.pod("bare", [](ForeignPod &p) { p.controlled = false; }, "n2");
	CHECK(w.in_its_way("n1") == "nothing");
	CHECK(w.in_its_way("n2") == "all");
	w.arrives(7, {"n1", "n2"});
	CHECK(w.fates.at(7).find("node n2: pod ns/bare is there, and is not evicted") != Is::npos);
	SECTION("on a node of another pool they are counted as for any job")
	{
		w.pod("web", {}, "n3");
		CHECK(w.in_its_way("n3") == "1000");
	}
	SECTION("if so configured they go, too")
	{
		w.settings.nodes.exclusive.bare_pods = true;
		w.start();
		CHECK(w.in_its_way("n2") == "nothing");
		w.arrives(8, {"n2"});
		CHECK(w.fates.at(8) == "launched");
	}
}

TEST_CASE("exclusive: a pod whose object vanishes is not gone")
{
	Pool w;
	w.pod("a");
	w.kubelets = false;
	w.arrives(7);
	const auto last = std::make_shared<ForeignPod>(w.pods.at("a"));
	w.foreign->removed(last); // by force
	w.exclusive->pods_changed("n1");
	w.run();
	CHECK(w.fates.at(7).find("is there, and is not evicted") != Is::npos);
	CHECK(w.in_its_way() == "all");
}

TEST_CASE("exclusive: after a restart the gate goes on by what there is, whatever is told first")
{
	const bool jobs_first = GENERATE(false, true);
	CAPTURE(jobs_first);
	Pool w;
	w.pod("a");
	w.kubelets = false;
	SECTION("in the midst of an eviction")
	{
		w.arrives(7);
		w.start(jobs_first);
		CHECK(w.tainted());
		CHECK(w.fates.at(7) == "waits");
		w.run(minute);
		CHECK(w.evicted.size() == 1); // it leaves already
		w.gone("a");
		CHECK(w.fates.at(7) == "launched");
	}
	SECTION("before the taint")
	{
		w.can_taint = false;
		w.arrives(7);
		CHECK(w.evicted.empty());
		w.can_taint = true;
		w.start(jobs_first);
		CHECK(w.evicted.size() == 1);
	}
	SECTION("while the job runs")
	{
		w.kubelets = true;
		w.arrives(7);
		CHECK(w.fates.at(7) == "launched");
		w.start(jobs_first);
		w.run(10 * minute);
		CHECK(w.tainted());
		w.pod("tolerates"); // nobody's to evict
		CHECK(w.evicted.size() == 1);
		w.ends(7);
		w.run(3 * minute);
		CHECK_FALSE(w.tainted());
	}
	SECTION("after it")
	{
		w.kubelets = true;
		w.arrives(7);
		w.ends(7);
		w.start(jobs_first);
		CHECK(w.tainted());
		w.run(3 * minute);
		CHECK_FALSE(w.tainted());
	}
	SECTION("and the settings are others")
	{
		w.arrives(7);
		w.settings.nodes.exclusive.selector = "";
		w.start(jobs_first);
		CHECK(w.fates.at(7).find("pod ns/a is there, and is not evicted") != Is::npos);
		CHECK_FALSE(w.exclusive->wants_taint("n1"));
	}
}

TEST_CASE("exclusive: a node that leaves the pool is not emptied any more")
{
	Pool w;
	w.pod("a");
	w.refusals["a"] = 429;
	w.arrives(7);
	w.label("n1", "web");
	w.run();
	CHECK(w.fates.at(7).find("is there, and is not evicted") != Is::npos);
	CHECK(w.in_its_way() == "1000");
	CHECK_FALSE(w.tainted());
}

TEST_CASE("exclusive: a node that is deleted in Kubernetes keeps the job from the pods that may run there")
{
	Pool w;
	w.pod("a");
	w.refusals["a"] = 429;
	w.arrives(7);
	w.kube.erase("n1");
	w.nodes->remove("n1");
	w.foreign->node_changed("n1", true);
	w.exclusive->node_changed("n1");
	w.run();
	CHECK(w.fates.at(7).find("pod ns/a is there, and is not evicted") != Is::npos);
}

TEST_CASE("exclusive: on a mixed node the job's own pod is made when the others have gone, and its kubelet has the last word")
{
	Pool w;
	w.settings.nodes.sharing = Sharing::mixed;
	w.start();
	w.pod("a");
	w.refusals["a"] = 429;
	w.arrives(7);
	w.run(3 * minute); // longer than gateTimeout
	CHECK(w.jobs_pods.created.empty());
	w.refusals.clear();
	w.run(minute / 2);
	CHECK(w.pods.empty());
	REQUIRE(w.jobs_pods.created.size() == 1);
	CHECK(w.fates.at(7) == "waits");
	w.pod(w.jobs_pods.created[0], [&](ForeignPod &p) {
		p.meta.ns = w.settings.reservations.ns;
		p.controlled = false;
	});
	CHECK(w.fates.at(7) == "launched");
	CHECK(w.in_its_way() == "nothing"); // the next one may be placed beside it
}

TEST_CASE("exclusive: a job that is cancelled in the gate ends the eviction, and one that starts again begins anew")
{
	Pool w;
	w.pod("a");
	w.refusals["a"] = 429;
	w.arrives(7);
	const NativeJobPtr job = w.in_gate.front();
	w.in_gate.clear();
	w.exclusive->ended(job->ref);
	w.reservations->ended(job->ref);
	const auto tries = w.evicted.size();
	w.run(minute);
	CHECK(w.evicted.size() == tries);
	SECTION("news of the former run come late")
	{
		w.arrives(7);
		w.exclusive->left(job->ref, {});
		w.refusals.clear();
		w.run(minute);
		CHECK(w.fates.at(7) == "launched");
	}
	SECTION("it has left")
	{
		w.leaves(7);
		w.run(3 * minute);
		CHECK_FALSE(w.tainted());
	}
}

TEST_CASE("exclusive: without the taint nothing is evicted, and nobody waits for ever")
{
	Pool w;
	w.pod("a");
	w.can_taint = false;
	w.arrives(7);
	w.run(4 * minute);
	CHECK(w.fates.at(7) == "waits");
	w.run(2 * minute);
	CHECK(w.evicted.empty());
	CHECK(w.fates.at(7).find("has not gone") != Is::npos);
}

TEST_CASE("exclusive: what is done with a node of a waiting job")
{
	using S = ExclusiveStep;
	const ExclusiveFacts free{.known = true, .enabled = true, .tainted = true};
	auto with = [&](auto change) {
		ExclusiveFacts f = free;
		change(f);
		return exclusive_step(f);
	};
	CHECK(exclusive_step(free) == S::open);
	CHECK(with([](auto &f) { f.known = false; }) == S::wait);
	CHECK(with([](auto &f) { f.known = false, f.too_late = true, f.stays = true; }) == S::wait);
	CHECK(with([](auto &f) { f.tainted = false; }) == S::taint);
	CHECK(with([](auto &f) { f.tainted = false, f.crowded = true; }) == S::taint);
	CHECK(with([](auto &f) { f.crowded = true; }) == S::evict);
	CHECK(with([](auto &f) { f.stays = true; }) == S::refuse_pod);
	CHECK(with([](auto &f) { f.crowded = f.too_late = true; }) == S::refuse_late);
	CHECK(with([](auto &f) { f.too_late = true; }) == S::open);
	CHECK(with([](auto &f) { f.too_late = true, f.tainted = false; }) == S::refuse_late);
	CHECK(with([](auto &f) { f.enabled = false; }) == S::open);
	CHECK(with([](auto &f) { f.enabled = f.tainted = false; }) == S::open);
	CHECK(with([](auto &f) { f.enabled = false, f.crowded = true; }) == S::refuse_pod);
}
