// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A Node object is deleted (kubectl delete node) and its machine is not: kubelet, pods and jobs go on, and it may come back.
#include "lib/core/pinned_cores.h"
#include "test/unit/catch.h"
#include "test/unit/core/node_world.h"
#include "test/unit/core/reservation_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

const std::string pod = "slurm-7-3ef-n1";

// Nodes are mixed, or jobs have pods for their GPUs only; small jobs share one.
struct DeletedWorld : ReservationWorld {
	explicit DeletedWorld(Sharing sharing)
		: ReservationWorld([sharing](ClusterSettings &s) {
			  s.nodes.sharing = sharing;
			  s.resources = {{"example.com/card", "gpu", ""}};
			  s.reservations.shared.max_cpus = 1;
		  })
	{
		allocatable = {{"example.com/card", 4}};
		restart();
		controller->jobs_replaced({});
	}
	NativeJobPtr gpu_job(std::uint32_t id)
	{
		auto with = std::make_shared<NativeJob>(*job(id, 3));
		with->shares[0].gres = {{"gpu", "", 2, {0, 1}}};
		return with;
	}
};

} // namespace

TEST_CASE("deleted node: the pod of a job that runs there stays, also over a restart of slurmctld")
{
	DeletedWorld w(GENERATE(Sharing::mixed, Sharing::dedicated));
	const auto job = w.gpu_job(7);
	w.controller->arrived(job);
	w.run();
	REQUIRE(w.fate(7) == "launched");
	const std::string uid = w.pods.at(pod).meta.uid;
	w.delete_node("n1");
	w.run(Millis(60'000));
	CHECK(w.only_pod() == pod);
	w.restart();
	if (GENERATE(true, false)) { // either may be told first
		w.controller->jobs_replaced({job});
		w.run(Millis(60'000));
	} else {
		w.run(Millis(60'000));
		w.controller->jobs_replaced({job});
		w.run(Millis(60'000));
	}
	CHECK(w.only_pod() == pod);
	w.register_node("n1");
	w.run(Millis(60'000));
	CHECK(w.pods.at(pod).meta.uid == uid);
	CHECK(w.controller->covers(uid));
	w.controller->ended(job->ref);
	w.controller->left(job->ref, {});
	w.run();
	CHECK(w.pods.empty());
}

TEST_CASE("deleted node: so does the pod that small jobs share")
{
	DeletedWorld w(Sharing::mixed);
	const auto job = w.job(7, 1);
	w.controller->arrived(job);
	w.run(Millis(1'000));
	REQUIRE(w.only_pod() == "slurm-shared-n1");
	const std::string uid = w.pods.at("slurm-shared-n1").meta.uid;
	w.delete_node("n1");
	w.restart();
	w.controller->jobs_replaced({job});
	w.run(Millis(60'000));
	w.register_node("n1");
	w.run(Millis(60'000));
	REQUIRE(w.only_pod() == "slurm-shared-n1");
	CHECK(w.pods.at("slurm-shared-n1").meta.uid == uid);
}

TEST_CASE("deleted node: a job in the gate waits for its kubelet, and a pod that Kubernetes has collected is made when the node is back")
{
	DeletedWorld w(Sharing::mixed);
	w.controller->arrived(w.job(7, 3));
	w.run();
	REQUIRE(w.fate(7) == "launched");
	w.delete_node("n1");
	w.end_pod(pod); // kube-controller-manager, which would take the next one, too
	w.controller->arrived(w.job(8, 2));
	w.controller->arrived(w.job(9, 1)); // a small one
	w.run(Millis(10'000));
	CHECK(w.pods.empty());
	CHECK(w.fate(8) == "waits");
	CHECK(w.fate(9) == "waits");
	w.register_node("n1");
	w.run(Millis(10'000));
	CHECK(w.pods.size() == 3);
	CHECK(w.fate(8) == "launched");
	CHECK(w.fate(9) == "launched");
}

TEST_CASE("deleted node: one of Slurm's that Kubernetes never had keeps nobody waiting")
{
	DeletedWorld w(Sharing::mixed);
	w.deleted = {"n1"};
	w.restart();
	w.controller->jobs_replaced({});
	w.controller->arrived(w.job(7, 3));
	w.run();
	CHECK(w.fate(7) == "launched");
	CHECK(w.pods.empty());
}

// Of n1, which is back under a job.
static void waits_for_the_agent(DeletedWorld &w)
{
	w.controller->arrived(w.gpu_job(7));
	w.register_node("n1");
	w.run(Millis(2'000));
	REQUIRE(w.only_pod() == pod);
	CHECK(w.fate(7) == "waits");
	w.tell_devices("n1", pod, "2,3");
	w.run();
	CHECK(w.fate(7) == "launched");
}

TEST_CASE("deleted node: the agent of one that is back has told nothing yet, and no job is launched on devices of which nobody knows")
{
	DeletedWorld w(GENERATE(Sharing::mixed, Sharing::dedicated));
	w.tell_devices("n1", "nobody", "0"); // there is an agent
	w.run();
	w.delete_node("n1");
	w.run();
	waits_for_the_agent(w);
	CHECK(w.given == std::vector<std::string>{"7 n1 gpu 2-3"});
}

TEST_CASE("deleted node: so it is if it goes before slurmctld has told which nodes it has")
{
	DeletedWorld w(GENERATE(Sharing::mixed, Sharing::dedicated));
	w.restart(false);
	w.controller->jobs_replaced({});
	w.list_nodes();
	w.controller->nodes_changed();
	w.tell_devices("n1", "nobody", "0"); // there is an agent
	w.run();
	w.delete_node("n1");
	w.run();
	w.list();
	CHECK(w.nodes->is_or_was_shared("n1"));
	waits_for_the_agent(w);
}

TEST_CASE("deleted node: what its agent has told of cores counts until it tells again, and is forgotten when the agent takes it back")
{
	PinnedCores pinned;
	kube::Node node;
	node.meta.name = "n1";
	node.meta.uid = "first";
	node.meta.annotations["slurm-k8s.io/pinned-cores"] = R"({"a":{"cores":[2,3],"cpus":2}})";
	CHECK(pinned.read(node));
	kube::Node again = node;
	again.meta.uid = "second";
	again.meta.annotations.clear();
	CHECK_FALSE(pinned.read(again));
	REQUIRE(pinned.find("n1", "a"));
	again.meta.annotations = node.meta.annotations;
	CHECK_FALSE(pinned.read(again));
	again.meta.annotations.clear();
	CHECK(pinned.read(again));
	CHECK_FALSE(pinned.find("n1", "a"));
}

TEST_CASE("deleted node: one of which pods hold something was deleted before slurmctld started, and is drained until it is back")
{
	NodeWorld w;
	w.delete_node();
	w.restart();
	w.run();
	CHECK(w.drained().empty()); // as far as is known Kubernetes never had it
	w.controller->deleted_before("n1");
	w.run();
	CHECK(w.drained() == "k8s: deleted: Kubernetes has no such node");
	w.create_node();
	w.run();
	CHECK(w.drained().empty());
	w.controller->deleted_before("n1"); // old news
	w.run();
	CHECK(w.drained().empty());
}
