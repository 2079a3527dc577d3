// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Who has taken a reservation pod, and what becomes of its job.
#include "lib/core/eviction.h"
#include "lib/core/foreign_pod.h"
#include "test/unit/catch.h"
#include "test/unit/core/reservation_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;
using kube::Disruption;

namespace {

// A pod that runs, of a job that runs, on a node that is heard of.
const EvictionFacts fine{.runs = true, .admitted = true, .heard_of = true};

EvictionFacts with(void (*change)(EvictionFacts &))
{
	EvictionFacts f = fine;
	change(f);
	return f;
}

} // namespace

TEST_CASE("eviction: the table")
{
	struct Row {
		const char *what;
		EvictionFacts facts;
		const char *how;
	};
	const Row rows[] = {
		{"it is there", fine, ""},
		{"a kubelet's eviction", with([](auto &f) { f.over = true, f.reason = "Evicted"; }), "was evicted by its kubelet"},
		{"the same, seen first after a restart of slurmctld",
		 with([](auto &f) { f.over = true, f.reason = "Evicted", f.admitted = false, f.disruption = Disruption::kubelet; }),
		 "was evicted by its kubelet"},
		{"a kubelet that is short of disk refuses the pod of a job that ran before it was made",
		 with([](auto &f) { f.over = true, f.reason = "Evicted", f.admitted = false; }), ""},
		{"the same, of a node that is silent since", with([](auto &f) { f.over = true, f.reason = "Evicted", f.heard_of = false; }),
		 "was evicted by its kubelet"},
		{"a critical pod took its room", with([](auto &f) { f.over = true, f.reason = "Preempting"; }),
		 "was ended by its kubelet for a more important pod"},
		{"a kubelet came back and refused it", with([](auto &f) { f.over = true, f.reason = "OutOfcpu"; }), ""},
		{"the same, and it is deleted", with([](auto &f) { f.over = f.deleting = true, f.reason = "UnexpectedAdmissionError"; }), ""},
		{"the machine is shut down",
		 with([](auto &f) { f.over = true, f.reason = "Terminated", f.disruption = Disruption::kubelet; }), ""},
		{"its node was deleted", with([](auto &f) { f.over = f.deleting = true, f.disruption = Disruption::garbage; }), ""},
		{"the API's eviction", with([](auto &f) { f.deleting = true, f.disruption = Disruption::eviction; }),
		 "was evicted through the Kubernetes API"},
		{"kube-scheduler's preemption", with([](auto &f) { f.deleted = true, f.disruption = Disruption::preemption; }),
		 "was preempted by kube-scheduler"},
		{"a taint", with([](auto &f) { f.deleting = true, f.disruption = Disruption::taint; }), "was deleted because of a taint"},
		{"a taint because the node is unreachable",
		 with([](auto &f) { f.deleting = true, f.disruption = Disruption::taint, f.heard_of = false; }), ""},
		{"kubectl delete", with([](auto &f) { f.deleting = true; }), "was deleted"},
		{"kubectl delete --force", with([](auto &f) { f.deleted = true; }), "was deleted"},
		{"the same while nobody hears of the node", with([](auto &f) { f.deleted = true, f.heard_of = false; }), ""},
		{"of a pod that no kubelet had admitted", with([](auto &f) { f.deleted = true, f.admitted = false; }), ""},
		{"it was deleted before we heard of it, perhaps by a slurmctld before this one",
		 with([](auto &f) { f.deleting = f.found_deleting = true; }), ""},
		{"the same, and it says who did it",
		 with([](auto &f) { f.deleting = f.found_deleting = true, f.disruption = Disruption::eviction; }),
		 "was evicted through the Kubernetes API"},
		{"we did it", with([](auto &f) { f.deleting = f.by_us = true; }), ""},
		{"the job has ended", with([](auto &f) { f.deleted = true, f.runs = false; }), ""},
		{"its job ends, and its kubelet evicts it", with([](auto &f) { f.over = true, f.reason = "Evicted", f.runs = false; }), ""},
	};
	for (const Row &row : rows) {
		CAPTURE(row.what);
		CHECK(eviction_of(row.facts) == row.how);
	}
}

namespace {

using OnEviction = ReservationSettings::OnEviction;

struct Launched : ReservationWorld {
	explicit Launched(OnEviction wish) : ReservationWorld([wish](ClusterSettings &s) { s.reservations.eviction = wish; })
	{
		controller->arrived(job(7, 3, {"n1", "n2"}));
		run();
		REQUIRE(fate(7) == "launched");
	}
	void evict(const std::string &name)
	{
		change_pod(name, [](ForeignPod &p) {
			p.phase = "Failed";
			p.reason = "Evicted";
			p.over = true;
			p.admitted = false;
		});
	}
};

const std::string pod_name = "slurm-7-3ef-n1";

} // namespace

TEST_CASE("eviction: by default the pod is made again, and the job goes on")
{
	Launched w(OnEviction::ignore);
	w.evict(pod_name);
	w.run(Millis(2'000));
	CHECK(w.ended.empty());
	CHECK(w.created == 3);
	CHECK(w.pods.at(pod_name).admitted);
}

TEST_CASE("eviction: a job goes back into the queue or is cancelled, once, as the settings say, and its pods are not made again")
{
	const auto [wish, word] = GENERATE(table<OnEviction, std::string>({{OnEviction::requeue, "requeue"}, {OnEviction::cancel, "cancel"}}));
	Launched w(wish);
	w.end_reply.requeued = wish == OnEviction::requeue;
	std::string how;
	SECTION("evicted")
	{
		w.evict(pod_name);
		how = "was evicted by its kubelet";
	}
	SECTION("deleted")
	{
		w.change_pod(pod_name, [](ForeignPod &p) { p.meta.deleting = true; });
		w.end_pod(pod_name);
		how = "was deleted";
	}
	SECTION("deleted by force")
	{
		w.end_pod(pod_name);
		how = "was deleted";
	}
	SECTION("both at once")
	{
		w.evict(pod_name);
		w.evict("slurm-7-3ef-n2");
		how = "was evicted by its kubelet";
	}
	w.run(Millis(2'000));
	CHECK(w.ended == std::vector{"7 " + word + ": its reservation pod on node n1 " + how});
	CHECK(w.created == 2);
	w.controller->left({7, 1007}, {});
	w.run(Millis(2'000));
	CHECK(w.pods.empty());
}

TEST_CASE("eviction: nobody has taken what went with its node, what a kubelet refuses again, or what we take ourselves")
{
	Launched w(OnEviction::cancel);
	SECTION("a node that is not heard of, and its pod is deleted by force")
	{
		w.set_ready("n1", false);
		w.run();
		CHECK(w.ended.empty());
		w.end_pod(pod_name);
		w.run(Millis(1'000));
		CHECK(w.pods.contains(pod_name));
	}
	SECTION("a node that leaves the selector, and comes back before the pod is gone")
	{
		auto n = std::make_shared<kube::Node>(*w.nodes->find("n1"));
		n->meta.labels.clear();
		w.nodes->change(n);
		w.controller->nodes_changed(); // it is deleted
		n = std::make_shared<kube::Node>(*n);
		n->meta.labels["shared"] = "true";
		w.nodes->change(n);
		w.controller->nodes_changed();
		w.run(Millis(1'000));
		CHECK(w.pods.contains(pod_name));
	}
	SECTION("a kubelet that started again, and has no room any more")
	{
		w.change_pod(pod_name, [](ForeignPod &p) {
			p.phase = "Failed";
			p.reason = "OutOfcpu";
			p.over = true;
			p.admitted = false;
		});
		w.run(Millis(2'000));
		CHECK(w.pods.at(pod_name).admitted);
	}
	SECTION("pods that are missing in a list, as after etcd was restored")
	{
		w.pods.clear();
		w.list();
		w.run(Millis(2'000));
		CHECK(w.pods.size() == 2);
	}
	CHECK(w.ended.empty());
}

TEST_CASE("eviction: a pod that was deleted while its node was not heard of is taken when the node is back")
{
	Launched w(OnEviction::cancel);
	w.set_ready("n1", false);
	w.change_pod(pod_name, [](ForeignPod &p) { p.meta.deleting = true; });
	w.run(Millis(1'000));
	CHECK(w.ended.empty());
	w.set_ready("n1", true);
	w.run();
	CHECK(w.ended.size() == 1);
}

TEST_CASE("eviction: what a former slurmctld may have deleted nobody has taken")
{
	Launched w(OnEviction::requeue);
	w.change_pod(pod_name, [](ForeignPod &p) { p.meta.deleting = true; });
	w.restart(false);
	w.controller->jobs_replaced({w.job(7, 3, {"n1", "n2"})});
	w.list();
	w.run(Millis(1'000));
	w.end_pod(pod_name);
	w.run(Millis(20'000));
	CHECK(w.ended.empty());
	CHECK(w.pods.size() == 2);
	w.end_pod(pod_name); // the next one is another matter
	w.run(Millis(1'000));
	CHECK(w.ended.size() == 1);
}

TEST_CASE("eviction: a deletion that a former slurmctld has asked for may come some seconds after the start of this one")
{
	const auto after = GENERATE(Millis(2'000), Millis(40'000));
	Launched w(OnEviction::requeue);
	w.restart(false);
	w.controller->jobs_replaced({w.job(7, 3, {"n1", "n2"})});
	w.list();
	w.run(after);
	w.change_pod(pod_name, [](ForeignPod &p) { p.meta.deleting = true; });
	w.run();
	w.end_pod(pod_name);
	w.run(Millis(2'000));
	CHECK(w.ended.size() == (after > Millis(30'000) ? 1 : 0));
	CHECK(w.pods.size() == (after > Millis(30'000) ? 1 : 2)); // that on n2 stays until its processes are gone
}

TEST_CASE("eviction: a job that Slurm does not end goes on, and has its pod again")
{
	Launched w(OnEviction::requeue);
	w.end_reply = {.ok = false, .text = "Job state is in transition"};
	w.change_pod(pod_name, [](ForeignPod &p) { p.meta.deleting = true; });
	w.run(Millis(2'000));
	CHECK(w.ended.size() == 1); // and not again and again
	w.end_pod(pod_name);
	w.run(Millis(2'000));
	CHECK(w.ended.size() == 1);
	CHECK(w.pods.size() == 2);
}

TEST_CASE("eviction: of a job in the gate none is ended")
{
	ReservationWorld w([](ClusterSettings &s) { s.reservations.eviction = OnEviction::cancel; });
	w.kubelets = false;
	w.controller->arrived(w.job(7, 3));
	w.run();
	w.end_pod(pod_name);
	w.run(Millis(2'000));
	CHECK(w.ended.empty());
	CHECK(w.fate(7) == "waits");
}

TEST_CASE("eviction: who ends a pod is told by its condition DisruptionTarget")
{
	auto disruption = [](const std::string &status, const std::string &reason) {
		auto object = Json::parse(R"({"kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"u"},"spec":{"nodeName":"n1","containers":[]},
			"status":{"phase":"Running","conditions":[{"type":"DisruptionTarget","status":")" +
					  status + R"(","reason":")" + reason + R"("}]}})");
		return (*decode_foreign_pod(*object))->disruption;
	};
	CHECK(disruption("True", "EvictionByEvictionAPI") == Disruption::eviction);
	CHECK(disruption("True", "PreemptionByScheduler") == Disruption::preemption);
	CHECK(disruption("True", "DeletionByTaintManager") == Disruption::taint);
	CHECK(disruption("True", "DeletionByPodGC") == Disruption::garbage);
	CHECK(disruption("True", "TerminationByKubelet") == Disruption::kubelet);
	CHECK(disruption("True", "SomethingNew") == Disruption::other);
	CHECK(disruption("False", "EvictionByEvictionAPI") == Disruption::none);
}
