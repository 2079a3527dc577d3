// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/names.h"
#include "lib/core/resubmit.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

namespace sk8::core::test {

static const std::string from(names::resubmitted_from);

// ---- the manifest ----

static Json parsed(const char *text)
{
	auto json = Json::parse(text);
	REQUIRE(json);
	return *json;
}

static const PodKey old{"c", "team-a", "a", "u1"};

TEST_CASE("resubmit: a new pod is the old one but for what others have written into it")
{
	const Json object = parsed(R"({"kind":"Pod","metadata":{"name":"a","namespace":"team-a","uid":"u1","resourceVersion":"7",
		"creationTimestamp":"x","deletionTimestamp":"y","deletionGracePeriodSeconds":30,"generation":2,"managedFields":[{}],
		"finalizers":["slurm-k8s.io/job"],"labels":{"app":"x"},"ownerReferences":[{"uid":"o","controller":false}],
		"annotations":{"slurm-k8s.io/partition":"gpu","slurm-k8s.io/job-id":"5","slurm-k8s.io/cores":"0-3",
			"slurm-k8s.io/node":"n1","slurm-k8s.io/job-submit-time":"9","slurm-k8s.io/gres-devices":"gpu:0"}},
		"spec":{"schedulerName":"slurm","nodeName":"n1","priority":5,"preemptionPolicy":"Never","overhead":{"cpu":"1"},
			"ephemeralContainers":[{}],"containers":[{"name":"main","image":"x"}],"priorityClassName":"high"},
		"status":{"phase":"Failed"}})");
	const auto text = resubmitted_manifest(object, old);
	REQUIRE(text);
	CHECK(*text == R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"team-a","labels":{"app":"x"},)"
		       R"("ownerReferences":[{"uid":"o","controller":false}],)"
		       R"("annotations":{"slurm-k8s.io/partition":"gpu","slurm-k8s.io/resubmitted-from":"u1"}},)"
		       R"("spec":{"schedulerName":"slurm","containers":[{"name":"main","image":"x"}],"priorityClassName":"high"}})");
}

TEST_CASE("resubmit: another pod's object, or one that is too large, is none")
{
	const Json other = parsed(R"({"metadata":{"uid":"u2"},"spec":{}})");
	CHECK_FALSE(resubmitted_manifest(other, old));
	Json large = parsed(R"({"metadata":{"uid":"u1"}})");
	large.set("spec", Json::object().set("x", std::string(Resubmit::max_manifest, 'x')));
	CHECK_FALSE(resubmitted_manifest(large, old));
}

// ---- who may ----

TEST_CASE("resubmit: only a bare pod of a namespace with barePods: resubmit that does not refuse it")
{
	struct Row {
		const char *what;
		NamespaceSettings::BarePods setting;
		const char *controller, *requeue;
		bool may;
	};
	using enum NamespaceSettings::BarePods;
	const Row row = GENERATE(Row{"bare", resubmit, "", "", true}, Row{"bare, says so", resubmit, "", "true", true},
				 Row{"does not want it", resubmit, "", "false", false}, Row{"nonsense", resubmit, "", "yes", false},
				 Row{"of a Job", resubmit, "Job", "", false}, Row{"not set", fail, "", "", false},
				 Row{"not set, asked for", fail, "", "true", false});
	INFO(row.what);
	ClusterSettings settings;
	NamespaceSettings ns;
	ns.match = "team-*";
	ns.bare_pods = row.setting;
	settings.namespaces.push_back(ns);
	kube::Pod pod;
	pod.meta.ns = "team-a";
	pod.meta.controller_kind = row.controller;
	if (*row.requeue)
		pod.meta.annotations["slurm-k8s.io/requeue"] = row.requeue;
	CHECK(may_be_resubmitted(pod, settings) == row.may);
	pod.meta.ns = "other";
	CHECK_FALSE(may_be_resubmitted(pod, settings));
}

// ---- what becomes of it ----

namespace {

struct BareWorld : World {
	BareWorld()
	{
		settings.namespaces[0].bare_pods = NamespaceSettings::BarePods::resubmit;
		controller.reset();
		restart();
		uid = create_running("a");
		job_of("a")->age = {4'711, 12};
	}
	void preempt(std::int64_t grace = 60)
	{
		slurm_preempts("a", grace);
		run();
		REQUIRE(pod("a").meta.deleting);
	}
	// In this order: our DELETE, the list from before it, the watch's news of it, its answer.
	void preempt_beside_a_list()
	{
		auto before = std::make_shared<kube::Pod>(pod("a"));
		slurm_preempts("a", 60);
		post([this, before] { controller->pods_replaced("slurm", {before}); });
	}
	bool made_again() { return exists("a") && pod("a").meta.uid != uid && pod("a").meta.annotations[from] == uid; }
	bool nothing_left() { return journal.saved().resubmits.empty() && holds->ledger("c").resubmits.empty(); }

	std::string uid;
};

} // namespace

TEST_CASE("resubmit: a preempted bare pod is made again under its name, and its job has the old one's age")
{
	BareWorld w;
	w.preempt();
	w.kubelet_ends("a", 143);
	w.run();
	REQUIRE(w.made_again());
	CHECK(w.jobs.size() == 2);
	CHECK(w.jobs.at(0).job.state == SK8_JOB_PREEMPTED);
	CHECK(w.jobs.at(1).request.age == Age{4'711, 12});
	CHECK(w.events_text().find("SlurmResubmitted: made again in the place of " + w.uid) != std::string::npos);
	CHECK(w.count("create") == 1);
	w.slurm_starts("a");
	w.run();
	CHECK(w.pod("a").node_name == "n1");
	CHECK(w.nothing_left());
}

TEST_CASE("resubmit: the second preemption keeps the age, too")
{
	BareWorld w;
	w.preempt();
	w.kubelet_ends("a", 143);
	w.run();
	w.slurm_starts("a");
	w.run();
	w.kubelet_starts("a");
	w.job_of("a")->age = {4'711, 12};
	w.preempt();
	w.kubelet_ends("a", 143);
	w.run();
	CHECK(w.jobs.size() == 3);
	CHECK(w.jobs.at(2).request.age == Age{4'711, 12});
}

TEST_CASE("resubmit: a program that ends well because it is told to is made again")
{
	BareWorld w;
	w.preempt();
	w.timer.advance(Millis(2'000));
	w.kubelet_ends("a", 0);
	w.run();
	CHECK(w.made_again());
}

TEST_CASE("resubmit: a bare pod whose node failed is made again once its kubelet has told its end")
{
	BareWorld w;
	w.slurm_ends("a", SK8_JOB_NODE_FAIL);
	w.run(Millis(5'000));
	REQUIRE(w.pod("a").meta.uid == w.uid);
	w.kubelet_ends("a", 137, "ContainerStatusUnknown");
	w.run();
	CHECK(w.made_again());
}

TEST_CASE("resubmit: what its owner had deleted before it was preempted is not made again")
{
	BareWorld w;
	w.user_deletes("a");
	w.run();
	w.slurm_preempts("a", 60);
	w.run();
	w.kubelet_ends("a", 143);
	w.run(Millis(60'000));
	CHECK_FALSE(w.exists("a"));
	CHECK(w.nothing_left());
}

TEST_CASE("resubmit: what its owner deletes while nobody has told us is not made again")
{
	BareWorld w;
	w.watch_delivers = false;
	w.user_deletes("a", 90);
	w.watch_delivers = true;
	w.slurm_preempts("a", 60);
	w.run(Millis(2'000));
	REQUIRE(w.pod("a").meta.deletion_grace_seconds == 60);
	w.kubelet_ends("a", 143);
	w.run(Millis(60'000));
	CHECK_FALSE(w.exists("a"));
	CHECK(w.nothing_left());
}

TEST_CASE("resubmit: what its owner had deleted is not made again either if our DELETE has no answer")
{
	BareWorld w;
	const bool restarted = GENERATE(false, true);
	CAPTURE(restarted);
	w.watch_delivers = false;
	w.user_deletes("a", 60);
	w.timer.advance(Millis(1'000));
	w.fail["delete"] = {0};
	w.slurm_preempts("a", 60);
	w.run();
	w.watch_delivers = true;
	if (restarted)
		w.restart();
	w.kubelet_ends("a", 143);
	w.run(Millis(60'000));
	CHECK_FALSE(w.exists("a"));
	CHECK(w.nothing_left());
	CHECK(w.events_text().find("SlurmNotResubmitted: it is not made again: it had been deleted before Slurm took its node") !=
	      std::string::npos);
}

TEST_CASE("resubmit: a pod whose DELETE had an answer is made again whatever the API server's clock says")
{
	BareWorld w;
	w.preempt();
	w.pod("a").meta.deletion_time -= 3'600;
	w.restart();
	w.kubelet_ends("a", 143);
	w.run(Millis(60'000));
	CHECK(w.made_again());
}

TEST_CASE("resubmit: a list that is older than our DELETE, and comes while that is under way, makes it nobody else's")
{
	BareWorld w;
	w.preempt_beside_a_list();
	w.run();
	REQUIRE(w.pod("a").meta.deleting);
	w.kubelet_ends("a", 143);
	w.run(Millis(60'000));
	CHECK(w.made_again());
}

TEST_CASE("resubmit: a DELETE that collides with another writer is sent again, and the pod is made again")
{
	BareWorld w;
	w.watch_delivers = false;
	w.pod("a").meta.resource_version = "newer";
	w.watch_delivers = true;
	w.slurm_preempts("a", 60);
	w.run(Millis(2'000));
	REQUIRE(w.pod("a").meta.deleting);
	CHECK(w.count("delete") == 2);
	w.kubelet_ends("a", 143);
	w.run(Millis(5'000));
	CHECK(w.made_again());
}

TEST_CASE("resubmit: what ended by itself before it was preempted has its result")
{
	BareWorld w;
	w.kubelet_ends("a", GENERATE(0, 3));
	w.timer.advance(Millis(3'000));
	w.watch_delivers = true;
	w.slurm_preempts("a", 60);
	w.run(Millis(60'000));
	CHECK(w.count("create") == 0);
	CHECK(w.nothing_left());
}

TEST_CASE("resubmit: whose job is cancelled, ends or is over its limit is not made again")
{
	BareWorld w;
	w.slurm_ends("a", GENERATE(SK8_JOB_CANCELLED, SK8_JOB_TIMEOUT, SK8_JOB_FAILED, SK8_JOB_OUT_OF_MEMORY));
	w.run();
	w.kubelet_ends("a", 143);
	w.run(Millis(60'000));
	CHECK_FALSE(w.exists("a"));
	CHECK(w.nothing_left());
}

TEST_CASE("resubmit: without barePods: resubmit a preempted pod just ends")
{
	World w;
	w.create_running("a");
	w.slurm_preempts("a", 60);
	w.run();
	w.kubelet_ends("a", 143);
	w.run(Millis(60'000));
	CHECK_FALSE(w.exists("a"));
	CHECK(w.count("manifest") == 0);
}

TEST_CASE("resubmit: the finalizer stays until the manifest is on disk")
{
	BareWorld w;
	w.preempt();
	w.journal.fail = true;
	w.kubelet_ends("a", 143);
	w.run(Millis(20'000));
	REQUIRE(w.exists("a"));
	CHECK(w.pod("a").meta.uid == w.uid);
	w.journal.fail = false;
	w.run(Millis(60'000));
	CHECK(w.made_again());
}

TEST_CASE("resubmit: a pod that is gone by a list before its finalizer was taken off is made again")
{
	BareWorld w;
	w.preempt();
	const std::function<void()> list_once_released = [&] {
		if (w.count("manifest") == 0)
			return w.post(list_once_released); // its answer stands in the queue by then
		w.post([&] { // in the same turn
			w.pods.erase("a");
			w.controller->pods_replaced("slurm", {});
		});
	};
	w.kubelet_ends("a", 143);
	w.post(list_once_released);
	w.run(Millis(60'000));
	CHECK(w.made_again());
}

TEST_CASE("resubmit: a slurmctld that dies at any step goes on there")
{
	BareWorld w;
	const int step = GENERATE(0, 1, 2);
	CAPTURE(step);
	w.preempt();
	if (step == 0)
		w.restart();
	w.run();
	if (step == 1)
		w.fail["unfinalizer"] = {World::not_sent};
	w.fail["create"] = {503};
	w.kubelet_ends("a", 143);
	w.run();
	if (step == 1 || step == 2)
		w.restart();
	w.run(Millis(60'000));
	REQUIRE(w.made_again());
	w.slurm_forgets("a");
	w.restart();
	w.run(Millis(60'000));
	CHECK(w.made_again());
	CHECK(w.jobs.back().request.age == Age{4'711, 12});
	CHECK(w.job_of("a")->state == SK8_JOB_PENDING);
}

TEST_CASE("resubmit: a create whose answer is lost makes one pod")
{
	BareWorld w;
	w.preempt();
	w.create_arrives_without_answer = true;
	w.kubelet_ends("a", 143);
	w.run(Millis(60'000));
	CHECK(w.made_again());
	w.slurm_starts("a");
	w.run();
	CHECK(w.nothing_left());
}

TEST_CASE("resubmit: a create that is refused for now is tried until it is not")
{
	BareWorld w;
	w.preempt();
	w.fail["create"] = {403, 429, 500, 0, 401, 403};
	w.kubelet_ends("a", 143);
	w.run(Millis(120'000));
	CHECK(w.made_again());
}

TEST_CASE("resubmit: a create that is refused for good is given up, and its owner reads why")
{
	BareWorld w;
	w.preempt();
	w.fail["create"] = {422};
	w.kubelet_ends("a", 143);
	w.run(Millis(120'000));
	CHECK_FALSE(w.exists("a"));
	CHECK(w.count("create") == 1);
	CHECK(w.events_text().find("SlurmNotResubmitted") != std::string::npos);
	CHECK(w.nothing_left());
}

TEST_CASE("resubmit: another pod that somebody made under its name is left alone")
{
	BareWorld w;
	w.preempt();
	w.fail["create"] = {503};
	w.kubelet_ends("a", 143);
	w.run();
	REQUIRE_FALSE(w.exists("a"));
	const std::string theirs = w.create_pod("a");
	w.run(Millis(60'000));
	CHECK(w.pod("a").meta.uid == theirs);
	CHECK(w.job_of("a")->age == Age{});
	CHECK(w.jobs.back().request.age == Age{});
	CHECK(w.nothing_left());
}

TEST_CASE("resubmit: who writes our annotation onto another pod gets nobody's age")
{
	BareWorld w;
	w.preempt();
	w.fail["create"] = {503, 503, 503};
	w.kubelet_ends("a", 143);
	w.run();
	w.create_pod("b", [&](kube::Pod &p) { p.meta.annotations[from] = w.uid; });
	w.run(Millis(60'000));
	REQUIRE(w.made_again());
	for (const auto &j : w.jobs)
		CHECK((j.request.age == Age{}) == (j.key.name == "b" || j.key.uid == w.uid));
}

TEST_CASE("resubmit: a pod that was made again and deleted while slurmctld was away stays deleted")
{
	BareWorld w;
	w.preempt();
	w.kubelet_ends("a", 143);
	w.run();
	REQUIRE(w.made_again());
	w.watch_delivers = false;
	w.user_deletes("a");
	w.watch_delivers = true;
	w.restart();
	w.run(Millis(60'000));
	CHECK_FALSE(w.exists("a"));
	CHECK(w.nothing_left());
}

TEST_CASE("resubmit: a pod that a backup of etcd brings back before it was bound is not made again, and its job has the age")
{
	BareWorld w;
	kube::Pod waits = w.pod("a");
	waits.node_name.clear();
	waits.phase = "Pending";
	waits.containers.clear();
	waits.meta.finalizers.clear();
	w.preempt();
	w.fail["create"] = {503};
	w.kubelet_ends("a", 143);
	w.run();
	REQUIRE_FALSE(w.exists("a"));
	w.pods.emplace("a", waits);
	w.slurm_forgets("a");
	SECTION("while slurmctld runs")
	{
		w.post([&w] { w.list_pods(); });
	}
	SECTION("and slurmctld starts")
	{
		w.restart();
	}
	w.run(Millis(120'000));
	CHECK(w.nothing_left());
	CHECK(w.pod("a").meta.uid == w.uid);
	CHECK(w.job_of("a")->state == SK8_JOB_PENDING);
	CHECK(w.jobs.back().request.age == Age{4'711, 12});
	CHECK(w.count("create") <= 2); // the one that failed, and one that finds the name taken
}

TEST_CASE("resubmit: a pod whose object vanished before its end was told is not made again, and its owner reads why")
{
	BareWorld w;
	w.preempt();
	w.pod("a").meta.finalizers.clear();
	w.watch_delivers = false;
	w.kubelet_ends("a", 143);
	w.watch_delivers = true;
	w.restart();
	w.run(Millis(60'000));
	CHECK_FALSE(w.exists("a"));
	CHECK(w.count("create") == 0);
}

TEST_CASE("a waiting pod whose job lost its node before the Binding queues again with the job's age")
{
	World w;
	w.create_pod("a");
	w.run();
	w.job_of("a")->age = {4'711, 0};
	w.fail["bind"] = {500};
	w.slurm_starts("a");
	w.slurm_ends("a", SK8_JOB_NODE_FAIL);
	w.run(Millis(60'000));
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs.at(1).request.age == Age{4'711, 0});
}

} // namespace sk8::core::test
