// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The life of a pod as stories, against the models of world.h.
#include "lib/core/names.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

void cordon_n1(World &w)
{
	auto cordoned = std::make_shared<kube::Node>(*w.nodes[0]);
	cordoned->unschedulable = true;
	w.controller->node_changed(cordoned);
	w.run();
}

// scontrol update ExcNodeList=, of the first job
void exclude_by_hand(World &w, const std::string &nodes)
{
	w.jobs.at(0).job.excluded_nodes = nodes;
	w.controller->job_changed(w.jobs[0].key, share(w.jobs[0].job), Millis(0));
}

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("a pod's GPUs are asked for, held with the devices that Slurm chose, and told in the Binding")
{
	World w;
	w.create_pod("p", [](kube::Pod &p) { p.request.extended["nvidia.com/gpu"] = 2; });
	w.run(Millis(1000));
	REQUIRE(w.job_of("p"));
	CHECK(w.jobs[0].request.gres == GresList{{"gpu", "", 2, {}}});
	w.jobs[0].job.gres = {{"gpu", "a100", 2, {1, 3}}};
	w.slurm_starts("p", "n2", {3});
	w.run();
	CHECK(w.binding_annotations["slurm-k8s.io/gres-devices"] == "gpu:a100:2(1,3)");
	const auto held = w.holds->held_by(w.jobs[0].key);
	REQUIRE(held);
	CHECK(held->hold.gres == GresList{{"gpu", "a100", 2, {1, 3}}});
}

TEST_CASE("a pod waits in the queue, runs where Slurm chose, and its exit code is the job's")
{
	World w;
	w.create_pod("p");
	w.run(Millis(1000));
	REQUIRE(w.job_of("p"));
	CHECK(w.pod("p").node_name == "");
	CHECK(w.conditions["p"].reason == "SlurmPending");
	CHECK(contains(w.conditions["p"].message, "Slurm job 100 is pending in partition batch: Resources, priority 1000"));
	CHECK(w.jobs[0].request.excluded_nodes == "slurm-only,slurm-only");

	w.slurm_starts("p", "n2", {3, 4, 6});
	w.run();
	CHECK(w.pod("p").node_name == "n2");
	CHECK(w.binding_annotations["slurm-k8s.io/job-id"] == "100");
	CHECK(w.binding_annotations["slurm-k8s.io/cores"] == "3-4,6");
	CHECK(w.journal.holds(w.pod("p").meta.uid));

	w.kubelet_starts("p");
	w.kubelet_ends("p", 7, "Error");
	w.run();
	CHECK(w.jobs[0].end.state == SK8_JOB_FAILED);
	CHECK(w.jobs[0].end.exit_code == 7 << 8);
	CHECK(w.pod("p").meta.finalizers.empty());
	CHECK_FALSE(w.journal.holds(w.pod("p").meta.uid));
	CHECK_FALSE(w.masked("n2"));
	CHECK(w.count("submit") == 1);
	CHECK(w.count("bind") == 1);
	CHECK(w.count("delete") == 0);
}

TEST_CASE("pod_is_deleted_when_its_job_is_cancelled, and its cores are masked until it is gone")
{
	World w;
	w.create_running("p");
	w.slurm_ends("p", SK8_JOB_CANCELLED, 0);
	CHECK(w.masked("n1")); // at once: before anything else could run
	w.run();
	CHECK(w.pod("p").meta.deleting);
	CHECK(w.last_grace == 30);
	CHECK(contains(w.events_text(), "SlurmJobEnded: Slurm job 100 ended: CANCELLED by root (uid 0)"));
	REQUIRE(w.masked("n1"));
	CHECK(w.mask("n1")->cores == std::vector<std::uint16_t>{0});
	CHECK(w.mask("n1")->memory_mb == 100);

	w.run(Millis(20'000));
	CHECK(w.count("delete") == 1);
	CHECK(w.masked("n1"));

	w.kubelet_ends("p", 143, "Error");
	w.run();
	CHECK_FALSE(w.exists("p"));
	CHECK_FALSE(w.masked("n1"));
	CHECK(w.woken > 0);
	CHECK(w.controller->size() == 0);
}

TEST_CASE("a pending pod is deleted when its job is cancelled")
{
	World w;
	w.create_pod("p");
	w.run();
	w.slurm_ends("p", SK8_JOB_CANCELLED, 0);
	w.run();
	CHECK_FALSE(w.exists("p"));
	CHECK(w.count("submit") == 1);
	CHECK(w.controller->size() == 0);
}

TEST_CASE("a pending job is cancelled when its pod is deleted")
{
	World w;
	w.create_pod("p");
	w.run();
	w.user_deletes("p");
	w.run();
	CHECK(w.jobs[0].end.state == SK8_JOB_CANCELLED);
	CHECK(w.count("delete") == 0);
	CHECK(w.controller->size() == 0);
}

TEST_CASE("the job of a deleted pod ends only when its containers are gone")
{
	World w;
	w.create_running("p");
	const bool force = GENERATE(false, true);
	CAPTURE(force);
	w.user_deletes("p", 30, force);
	w.run(Millis(10'000));
	REQUIRE(w.exists("p")); // our finalizer keeps the object even from --force
	CHECK(w.job_of("p")->running());

	w.kubelet_ends("p", 137, "Error");
	w.run();
	CHECK(w.jobs[0].end.state == SK8_JOB_CANCELLED);
	CHECK_FALSE(w.exists("p"));
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("the Bindings of all that start together go before the first finalizer")
{
	World w;
	for (const char *name : {"p", "q"})
		w.create_pod(name);
	w.run();
	w.calls.clear();
	for (const char *name : {"p", "q"})
		w.slurm_starts(name);
	w.run();
	std::erase(w.calls, "event");
	CHECK(w.calls == std::vector<std::string>{"bind", "bind", "finalizer", "finalizer"});
}

TEST_CASE("a pod that was not bound gets no finalizer")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = {422};
	w.slurm_starts("p");
	w.run();
	CHECK(w.count("bind") == 1);
	CHECK(w.count("finalizer") == 0);
	w.run(Millis(5'000));
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.pod("p").meta.finalizers.size() == 1);
}

TEST_CASE("a bound pod whose finalizer could not be set gets it later")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["finalizer"] = {500, 403};
	w.slurm_starts("p");
	w.run();
	REQUIRE(w.pod("p").node_name == "n1");
	CHECK(w.pod("p").meta.finalizers.empty());
	w.run(Millis(2'000));
	CHECK(w.pod("p").meta.finalizers.size() == 1);
	w.run(Millis(600'000));
	CHECK(w.count("finalizer") == 3);
}

TEST_CASE("a finalizer that cannot be set delays no DELETE")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["finalizer"] = std::deque<int>(20, 403);
	w.slurm_starts("p");
	w.run();
	w.kubelet_starts("p");
	w.run(Millis(60'000));
	CHECK(w.count("finalizer") < 10);
	w.slurm_ends("p", SK8_JOB_CANCELLED, 0);
	w.run();
	CHECK(w.count("delete") == 1);
}

TEST_CASE("a pod that lost its node to a backup of etcd is bound there again and keeps what it holds")
{
	World w;
	w.create_running("p");
	w.pod("p").node_name.clear();
	w.pod("p").meta.finalizers.clear();
	w.list_pods();
	w.run();
	CHECK(w.count("bind") == 2);
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.pod("p").meta.finalizers.size() == 1);
	CHECK(w.jobs.size() == 1);
	CHECK(w.job_of("p")->running());
}

TEST_CASE("... also if the server does not tell at once, and the watch tells of a change of it")
{
	World w;
	w.create_running("p");
	w.pod("p").node_name.clear();
	w.fail["get"] = {503};
	w.list_pods();
	w.run();
	w.controller->pod_changed(std::make_shared<kube::Pod>(w.pod("p")));
	w.run(Millis(5'000));
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.count("bind") == 2);
}

TEST_CASE("what a pod held that lost its node to a backup of etcd is not free when it is deleted")
{
	World w;
	w.create_running("p");
	w.pod("p").node_name.clear();
	w.pod("p").meta.finalizers.clear();
	w.fail["bind"] = std::deque<int>(20, 403);
	w.list_pods();
	w.run();
	const bool slurmctld_restarts = GENERATE(false, true);
	if (slurmctld_restarts) {
		w.restart();
		w.run();
	}
	w.user_deletes("p", 0);
	w.run();
	w.slurm_ends("p", SK8_JOB_CANCELLED);
	w.run();
	CHECK(w.masked("n1"));
}

TEST_CASE("a pod whose deletion is not in a backup of etcd is deleted again")
{
	World w;
	w.create_pod("p", [](kube::Pod &pod) { pod.meta.finalizers = {"example.com/keep"}; });
	w.run();
	w.slurm_ends("p", SK8_JOB_CANCELLED, 0);
	w.run();
	REQUIRE(w.pod("p").meta.deleting);
	w.pod("p").meta.deleting = false;
	w.list_pods();
	w.run();
	CHECK(w.count("delete") == 2);
	CHECK(w.pod("p").meta.deleting);
}

TEST_CASE("what vanished without proof stays masked")
{
	World w;
	w.create_running("p");
	kube::Pod last = w.pod("p");
	w.pods.erase("p"); // somebody removed our finalizer
	w.controller->pod_removed(std::make_shared<kube::Pod>(last));
	w.run();
	CHECK(w.count("get") == 1);
	CHECK(w.job_of("p")->state == SK8_JOB_CANCELLED);
	CHECK(w.masked("n1"));
	CHECK(contains(w.events_text(), "p: SlurmContainersUnproven: the object vanished"));
	w.run(Millis(100'000));
	CHECK(w.masked("n1"));
	w.restart();
	w.run();
	CHECK(w.masked("n1"));
}

TEST_CASE("a pod that is deleted before its Binding could arrive leaves nothing masked")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(20, 0);
	w.slurm_starts("p");
	w.run(Millis(2'000));
	REQUIRE(w.job_of("p")->running());
	kube::Pod last = w.pod("p");
	REQUIRE(last.node_name.empty());
	w.pods.erase("p");
	SECTION("its last state says that it never had a node")
	{
		w.controller->pod_removed(std::make_shared<kube::Pod>(last));
		w.run(Millis(60'000));
		CHECK(!w.masked("n1"));
		w.restart();
		w.run();
		CHECK(!w.masked("n1"));
	}
	SECTION("of its last state only the name could be read")
	{
		kube::Pod rescued;
		rescued.meta = last.meta;
		w.controller->pod_removed(std::make_shared<kube::Pod>(rescued));
		w.run(Millis(60'000));
		CHECK(w.masked("n1"));
	}
	CHECK(w.job_of("p")->state == SK8_JOB_CANCELLED);
}

TEST_CASE("a garbage collector's word is no proof")
{
	World w;
	w.create_running("p");
	w.pod("p").phase = "Failed"; // but the container runs, as far as its kubelet has said
	w.pod("p").meta.deleting = true;
	w.controller->pod_changed(std::make_shared<kube::Pod>(w.pod("p")));
	w.run();
	CHECK(w.job_of("p")->running());
	w.slurm_ends("p", SK8_JOB_NODE_FAIL);
	w.run();
	CHECK(w.masked("n1"));
}

TEST_CASE("a Binding without an answer is asked about, not repeated blindly")
{
	World w;
	w.create_pod("p");
	w.run();
	w.binding_arrives_without_answer = GENERATE(true, false);
	w.fail["bind"] = w.binding_arrives_without_answer ? std::deque<int>{} : std::deque<int>{0};
	const int expected = w.binding_arrives_without_answer ? 1 : 2;
	w.watch_delivers = false;
	w.slurm_starts("p");
	w.run(Millis(5'000));
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.count("bind") == expected);
	CHECK(w.count("get") >= 1);
	CHECK(w.job_of("p")->running());
}

TEST_CASE("a Binding that never succeeds ends the job, keeps the pod, and tries again later")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(20, 403);
	w.slurm_starts("p");
	w.run(Millis(120'000));
	CHECK(w.jobs[0].end.state == SK8_JOB_CANCELLED);
	CHECK(contains(w.jobs[0].end.comment, "cannot be bound"));
	CHECK(w.exists("p"));
	CHECK(w.count("delete") == 0);
	REQUIRE(w.jobs.size() == 2);
	CHECK_FALSE(w.jobs[1].job.ended());
	w.restart(); // the ended job is still known to Slurm: it must not end the pod
	w.run(Millis(10'000));
	CHECK(w.exists("p"));
}

TEST_CASE("a Binding that may have arrived ends no job before the pod was looked at, bindTimeout or not")
{
	World w;
	const bool arrives = GENERATE(true, false);
	const int status = GENERATE(500, 504);
	CAPTURE(arrives, status);
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(100, arrives ? 403 : status);
	w.slurm_starts("p");
	w.run(Millis(50'000));
	REQUIRE(w.job_of("p")->running());
	w.answer_of_that = status;
	w.binding_arrives_without_answer = arrives; // the next one, which is after bindTimeout
	w.run(Millis(150'000));
	CHECK(w.jobs[0].job.ended() == !arrives);
	CHECK((w.pod("p").node_name == "n1") == arrives);
}

TEST_CASE("a pod whose Binding may still arrive goes back to the node that is kept for it")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(20, 0);
	w.slurm_starts("p", "n2");
	w.run(Millis(1'000));
	SECTION("its job was preempted") { w.slurm_ends("p", SK8_JOB_PREEMPTED); }
	SECTION("slurmctld was killed and has forgotten the job")
	{
		w.slurm_forgets("p");
		w.restart();
	}
	SECTION("slurmctld was killed and has forgotten that the job had started")
	{
		w.slurm_forgets_start("p");
		w.restart();
	}
	w.fail.clear();
	w.run(Millis(60'000));
	CHECK(w.pod("p").node_name == "n2");
	CHECK(w.job_of("p")->running());
	CHECK(w.job_of("p")->node == "n2");
	CHECK_FALSE(w.masked("n2")); // its own job could start although its own mask was there
}

TEST_CASE("what no Binding can reach is not kept")
{
	World w;
	w.create_pod("p");
	w.run();
	SECTION("the API server refused it")
	{
		w.fail["bind"] = std::deque<int>(20, 403);
		w.slurm_starts("p", "n2");
		w.run(Millis(1'000));
		w.slurm_ends("p", SK8_JOB_PREEMPTED);
		w.run(Millis(30'000));
		REQUIRE(w.jobs.size() == 2);
		CHECK(w.jobs[1].request.required_node.empty());
	}
	SECTION("the pod was deleted before it was bound")
	{
		w.fail["bind"] = w.fail["finalizer"] = std::deque<int>(20, 0);
		w.slurm_starts("p", "n2");
		w.run(Millis(1'000));
		w.user_deletes("p");
		w.run(Millis(1'000));
		CHECK(w.controller->size() == 0);
	}
	CHECK_FALSE(w.masked("n2"));
	CHECK(w.journal.text.find("\"free\"") != std::string::npos);
}

TEST_CASE("a collision with another writer is no reason to give up")
{
	World w;
	SECTION("when the finalizer is taken off")
	{
		w.create_running("p");
		w.fail["unfinalizer"] = {409, 422};
		w.kubelet_ends("p", 0);
		w.run(Millis(10'000));
		CHECK(w.pod("p").meta.finalizers.empty());
	}
	SECTION("when the pod is deleted")
	{
		w.create_pod("p");
		w.run();
		w.fail["delete"] = {409};
		w.slurm_ends("p", SK8_JOB_CANCELLED, 0);
		w.run(Millis(10'000));
		CHECK_FALSE(w.exists("p"));
	}
	CHECK(w.count("get") >= 1);
}

TEST_CASE("a pod's finalizer goes only when the ledger says on disk that nothing is held")
{
	World w;
	w.create_running("p");
	w.journal.fail = true;
	w.kubelet_ends("p", 0);
	w.run(Millis(3'000));
	CHECK(w.count("unfinalizer") == 0);
	CHECK_FALSE(w.masked("n1")); // in memory it is free at once
	w.journal.fail = false;
	w.run(Millis(10'000));
	CHECK(w.count("unfinalizer") == 1);
	CHECK(w.pod("p").meta.finalizers.empty());
}

TEST_CASE("nothing is bound when the ledger cannot be written")
{
	World w;
	w.create_pod("p");
	w.run();
	w.journal.fail = true;
	w.slurm_starts("p");
	w.run(Millis(3'000));
	CHECK(w.count("bind") == 0);
	w.journal.fail = false;
	w.run(Millis(10'000));
	CHECK(w.count("bind") == 1);
}

TEST_CASE("a ledger that cannot be written is tried once a second, and forgets what was not bound")
{
	World w;
	const std::string uid = w.create_pod("p");
	w.run();
	w.slurm_starts("p");
	w.journal.fail = true;
	w.journal.flushes = 0;
	w.run(Millis(5'000));
	CHECK(w.journal.flushes >= 3);
	CHECK(w.journal.flushes <= 6); // of 50 turns
	w.user_deletes("p");
	w.run(Millis(2'000));
	w.journal.fail = false;
	w.run(Millis(2'000));
	CHECK(w.count("bind") == 0);
	CHECK_FALSE(w.journal.holds(uid));
}

TEST_CASE("nothing is written to the ledger before pods, nodes and jobs are known")
{
	World w;
	w.controller->end_of_turn();
	CHECK(w.journal.flushes == 0); // it may be damaged: an empty one would say that nothing is held
	w.run();
	CHECK(w.journal.flushes > 0);
}

TEST_CASE("pods that were made while nobody listened are queued in the order of their age")
{
	World w;
	for (int n = 0; n < 20; n++)
		w.create_pod("p" + std::to_string(n), [n](kube::Pod &p) { p.meta.creation_time = 1000 + n * 7 % 20; });
	w.run();
	w.jobs.clear(); // whatever order the events had
	w.restart();
	w.run();
	REQUIRE(w.jobs.size() == 20);
	for (std::size_t i = 0; i < 20; i++)
		CHECK(w.pod(w.jobs[i].key.name).meta.creation_time == 1000 + static_cast<std::int64_t>(i));
}

TEST_CASE("blocked nodes are not opened before what the lists tell is masked")
{
	World w;
	w.run();
	w.create_pod("p", [](kube::Pod &p) { p.meta.ns = "other"; }); // nobody's: no job will cover it
	w.pod("p").node_name = "n1";
	w.restart(); // no ledger
	w.holds->block_nodes("c", {"n1", "n2"});
	w.journal.completed = false;
	CHECK(w.holds->ledger("c").partial);
	w.woken = 0;
	w.run();
	REQUIRE(w.woken > 0);
	CHECK(w.masked_at_first_wake);
	CHECK(w.journal.completed); // else they are blocked again at the next start
	CHECK_FALSE(w.holds->ledger("c").partial);
	CHECK_FALSE(w.masked("n2"));
}

TEST_CASE("unknown nodes are opened at the end of a turn, when whoever masks foreign pods has heard of the last list, too")
{
	World w;
	w.run();
	w.holds->block_nodes("c", {"n1"});
	w.woken = 0;
	w.controller->expect_foreign(true);
	CHECK(w.woken == 0);
	CHECK(w.masked("n1"));
	w.controller->end_of_turn();
	CHECK(w.woken == 1);
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("what a running pod holds is known again although the ledger was lost")
{
	World w;
	w.create_running("p");
	w.journal.text.clear();
	const bool leaving = GENERATE(false, true);
	if (leaving)
		w.slurm_ends("p", SK8_JOB_CANCELLED);
	w.restart();
	CHECK_FALSE(w.masked("n1"));
	w.run(Millis(1'000));
	CHECK(w.journal.holds(w.pod("p").meta.uid));
	if (!leaving)
		w.slurm_ends("p", SK8_JOB_CANCELLED);
	CHECK(w.masked("n1"));
	w.run(Millis(1'000));
	CHECK(w.pod("p").meta.deleting);
	w.kubelet_ends("p", 143, "Error");
	w.run();
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("a job that ends while its Binding is under way takes the pod with it")
{
	World w;
	w.create_pod("p");
	w.run();
	w.slurm_starts("p");
	w.slurm_ends("p", SK8_JOB_TIMEOUT);
	w.run();
	CHECK_FALSE(w.exists("p"));
	CHECK(w.count("bind") == 0);
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("a pod whose node failed before it was bound queues again")
{
	World w;
	w.create_pod("p");
	w.run();
	w.slurm_ends("p", SK8_JOB_NODE_FAIL);
	w.run(Millis(5'000));
	CHECK(w.exists("p"));
	CHECK(w.count("submit") == 2);
}

TEST_CASE("after a restart everything goes on where it was")
{
	World w;
	w.create_pod("queued");
	w.create_pod("starting");
	w.create_pod("running");
	w.create_pod("ending");
	w.create_pod("leaving");
	w.run();
	for (const char *name : {"running", "ending", "leaving"}) {
		w.slurm_starts(name);
		w.run();
		w.kubelet_starts(name);
	}
	w.run();
	w.slurm_starts("starting", "n2");           // the hook ran, nothing else did
	w.kubelet_ends("ending", 0);                // the watch event is lost
	w.slurm_ends("leaving", SK8_JOB_CANCELLED); // as is the DELETE
	const std::size_t jobs = w.jobs.size();

	w.restart();
	CHECK(w.masked("n1")); // "leaving", before any answer of Kubernetes
	w.run(Millis(5'000));

	CHECK(w.jobs.size() == jobs);
	CHECK_FALSE(w.job_of("queued")->ended());
	CHECK(w.pod("starting").node_name == "n2");
	CHECK(w.job_of("running")->running());
	CHECK(w.job_of("ending")->state == SK8_JOB_COMPLETED);
	CHECK(w.pod("leaving").meta.deleting);
	w.kubelet_ends("leaving", 143, "Error");
	w.run();
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("a running pod whose job Slurm lost is masked and adopted, not killed")
{
	World w;
	w.create_running("p");
	w.slurm_forgets("p"); // saved up to 5 s late
	w.nodes_last = GENERATE(false, true);
	w.restart();
	CHECK(w.masked("n1"));
	w.run(Millis(2'000));
	CHECK(w.exists("p"));
	CHECK_FALSE(w.pod("p").meta.deleting);
	REQUIRE(w.job_of("p"));
	CHECK(w.job_of("p")->running());
	CHECK(w.jobs[0].request.required_node == "n1");
	CHECK_FALSE(w.masked("n1")); // its job covers it
	CHECK(contains(w.events_text(), "SlurmAdopted"));
}

TEST_CASE("a running pod whose job Slurm saved before it started goes on with that very job")
{
	World w;
	w.create_running("p");
	const JobRef before = w.job_of("p")->ref;
	w.slurm_forgets_start("p");
	w.nodes_take_jobs = false; // its node has not registered yet
	w.restart();
	w.run(Millis(2'000));
	CHECK(w.masked("n1"));
	CHECK(w.job_of("p")->state == SK8_JOB_PENDING);
	w.nodes_take_jobs = true;
	w.run(Millis(5'000));
	CHECK(w.job_of("p")->running());
	CHECK(w.job_of("p")->node == "n1");
	CHECK(w.job_of("p")->ref == before);
	CHECK_FALSE(w.masked("n1"));
	w.kubelet_ends("p", 7, "Error");
	w.run();
	CHECK(w.jobs.size() == 1);
	CHECK(w.jobs[0].end.exit_code == 7 << 8);
	CHECK(w.count("delete") == 0);
}

TEST_CASE("the exit code of a pod that ended while slurmctld was dead is its job's, though Slurm forgot that it had started")
{
	World w;
	w.create_running("p");
	w.slurm_forgets_start("p");
	w.kubelet_ends("p", 7, "Error");
	w.nodes_take_jobs = false;
	w.restart();
	w.run(Millis(10'000));
	CHECK(w.masked("n1")); // the room that its job needs
	CHECK(w.job_of("p")->state == SK8_JOB_PENDING);
	w.nodes_take_jobs = true;
	w.run(Millis(20'000));
	CHECK(w.job_of("p")->state == SK8_JOB_FAILED);
	CHECK(w.job_of("p")->exit_code == 7 << 8);
	CHECK(w.job_of("p")->node == "n1");
	CHECK(w.jobs.size() == 1);
	CHECK(w.pod("p").meta.finalizers.empty());
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("if its node never takes it such a job is cancelled, and its comment says how the pod ended")
{
	const int code = GENERATE(0, 7);
	World w;
	w.create_running("p");
	w.slurm_forgets_start("p");
	w.kubelet_ends("p", code, code ? "Error" : "Completed");
	w.nodes_take_jobs = false;
	w.restart();
	w.run(Millis(120'000));
	CHECK(w.job_of("p")->state == SK8_JOB_CANCELLED);
	CHECK(w.jobs[0].end.comment ==
	      (code ? "container main: Error, exit code 7" : "the pod ended with exit code 0"));
	CHECK(w.jobs.size() == 1);
	CHECK(w.pod("p").meta.finalizers.empty());
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("a pod that was deleted while slurmctld was dead needs no job that ran")
{
	World w;
	w.create_running("p");
	w.slurm_forgets_start("p");
	w.user_deletes("p");
	w.run(Millis(100));
	w.kubelet_ends("p", 143, "Error");
	w.nodes_take_jobs = false;
	w.restart();
	w.run(Millis(1'000));
	CHECK(w.job_of("p")->state == SK8_JOB_CANCELLED);
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("a pod that somebody else bound is adopted where it is")
{
	World w;
	w.create_pod("p");
	w.run();
	w.pod("p").node_name = "n2";
	w.slurm_starts("p", "n1");
	w.controller->pod_changed(std::make_shared<kube::Pod>(w.pod("p")));
	w.run(Millis(2'000));
	CHECK(w.exists("p"));
	CHECK_FALSE(w.pod("p").meta.deleting);
	CHECK(w.job_of("p")->node == "n2");
	CHECK(w.jobs[0].job.ended());
	CHECK(w.pod("p").meta.finalizers.size() == 1);
}

TEST_CASE("a pod of an unmapped namespace gets an event and no job")
{
	World w;
	w.create_pod("p", [](kube::Pod &p) { p.meta.ns = "other"; });
	w.run(Millis(1'000));
	CHECK(w.jobs.empty());
	CHECK(w.conditions["p"].reason == "SlurmRefused");
	CHECK(contains(w.events_text(), "namespace other is not mapped to a Slurm user"));
	w.run(Millis(600'000));
	CHECK(w.events.size() == 1); // told once, not every minute
}

TEST_CASE("a pod that runs and can have no job tells its owner so, once, and goes on")
{
	World w;
	w.create_pod("p", [](kube::Pod &p) {
		p.meta.ns = "other";
		p.node_name = "n1";
		p.phase = "Running";
	});
	w.run(Millis(600'000));
	CHECK(w.jobs.empty());
	CHECK_FALSE(w.pod("p").meta.deleting);
	CHECK(w.masked("n1"));
	REQUIRE(w.events.size() == 1);
	CHECK(w.events[0].starts_with("p: SlurmRefused: it runs on node n1 without a Slurm job: namespace other is not mapped to a Slurm user"));
}

TEST_CASE("a pod that claims more than its namespace may gets an event and no job")
{
	World w;
	w.create_pod("p", [](kube::Pod &p) { p.meta.annotations["slurm-k8s.io/account"] = "physics"; });
	w.run();
	CHECK(w.jobs.empty());
	CHECK(contains(w.events_text(), "namespace team-a may not use account \"physics\""));
}

TEST_CASE("a pod whose job can never run gets one warning for each reason, beside its condition")
{
	World w;
	w.create_pod("p");
	w.run();
	CHECK(w.count("event") == 1); // queued
	auto says = [&](const char *reason) {
		w.slurm_says("p", reason);
		w.run(Millis(20'000));
	};
	says("Priority");
	CHECK(w.count("event") == 1);
	says("PartitionConfig");
	says("PartitionConfig");
	CHECK(w.count("event") == 2);
	CHECK(contains(w.events_text(), "p: SlurmNeverRuns: Slurm job 100 cannot run in partition batch as it is: "
					"PartitionConfig (no node of it is large enough, or its limits forbid the job)"));
	CHECK(contains(w.conditions["p"].message, "PartitionConfig (no node"));
	w.timer.advance(Millis(600'000));
	says("Resources");
	CHECK(w.count("event") == 2);
	const std::string reason = GENERATE("BadConstraints", "PartitionNodeLimit", "PartitionTimeLimit", "InvalidAccount");
	says(reason.c_str());
	CHECK(w.count("event") == 3);
	CHECK(contains(w.events_text(), "as it is: " + reason + " ("));
}

TEST_CASE("scheduling gates keep a pod out of the queue")
{
	World w;
	w.create_pod("p", [](kube::Pod &p) { p.scheduling_gated = true; });
	w.run(Millis(5'000));
	CHECK(w.jobs.empty());
	w.pod("p").scheduling_gated = false;
	w.controller->pod_changed(std::make_shared<kube::Pod>(w.pod("p")));
	w.run();
	CHECK(w.jobs.size() == 1);
}

TEST_CASE("a node that becomes unfit is excluded from waiting jobs")
{
	World w;
	w.create_pod("p");
	w.run();
	cordon_n1(w);
	CHECK(w.jobs[0].request.excluded_nodes == "n1,slurm-only,n1");
	CHECK(w.count("exclude") == 1);
}

TEST_CASE("where a pod's volumes are is read anew when slurmctld has started, before anything is told or bound")
{
	World w;
	w.volumes.terms = {{{{"metadata.name", "In", {"n1"}, true}}}};
	w.create_pod("p", [](kube::Pod &p) { p.claims = {"data"}; });
	w.run();
	const std::string excluded = w.excluded("p");
	REQUIRE(excluded == "n2,slurm-only,n2");
	SECTION("while its job waits")
	{
		w.restart();
		w.run(Millis(10'000));
		CHECK(w.count("exclude") == 0);
		CHECK(w.excluded("p") == excluded);
		w.slurm_starts("p", "n1");
		w.run();
		CHECK(w.pod("p").node_name == "n1");
	}
	SECTION("when its job has started meanwhile where somebody else wanted it to")
	{
		w.jobs.back().job.excluded_nodes = "slurm-only";
		w.slurm_starts("p", "n2");
		w.restart();
		w.run(Millis(10'000));
		CHECK(w.count("bind") == 0);
		CHECK(w.excluded("p") == excluded); // of its next job
	}
	SECTION("and if they cannot be read the job does not keep its node for ever")
	{
		w.volumes.error = "PersistentVolumeClaim data does not exist";
		w.volumes.retry = GENERATE(false, true);
		w.slurm_starts("p", "n1");
		w.restart();
		w.run(Millis(20'000));
		CHECK(w.count("bind") == 0);
		CHECK(w.job_of("p")->running());
		CHECK(w.conditions.at("p").message == w.volumes.error);
		w.run(Millis(600'000));
		CHECK(w.jobs.front().job.running() == w.volumes.retry); // that nobody answers ends no job
		CHECK(w.count("bind") == 0);
	}
}

TEST_CASE("a pod that no node fits says so and waits for a node that does")
{
	World w;
	w.create_pod("p", [](kube::Pod &p) { p.node_selector["gpu"] = "yes"; });
	w.run();
	CHECK(w.jobs.empty());
	CHECK(contains(w.events_text(), "no node fits this pod: 2 nodeSelector, 1 not a shared node of this cluster"));
	auto gpu = std::make_shared<kube::Node>(*w.nodes[1]);
	gpu->meta.labels["gpu"] = "yes";
	w.controller->node_changed(gpu);
	w.run();
	REQUIRE(w.jobs.size() == 1);
	CHECK(w.jobs[0].request.excluded_nodes == "n1,slurm-only,n1");
}

TEST_CASE("a host port is given once per node, also to two pods that start together")
{
	World w;
	auto wants_port = [](kube::Pod &p) { p.host_ports = {{"", "TCP", 8080}}; };
	w.create_pod("a", wants_port);
	w.create_pod("b", wants_port);
	w.create_pod("c", wants_port);
	w.run();
	w.slurm_starts("a", "n1", {0});
	w.slurm_starts("b", "n1", {1});
	w.run(Millis(2'000));
	CHECK(w.pod("a").node_name == "n1");
	CHECK(w.pod("b").node_name == "");
	CHECK(w.exists("b")); // its job went back to the queue
	REQUIRE(w.job_of("b"));
	CHECK(w.job_of("b")->state == SK8_JOB_PENDING);
	CHECK(w.excluded("b") == "n1,slurm-only,n1");
	CHECK(w.job_of("c")->state == SK8_JOB_PENDING);
	CHECK(w.excluded("c") == "n1,slurm-only,n1");

	w.kubelet_starts("a");
	w.kubelet_ends("a", 0);
	w.run(Millis(1'000));
	CHECK(w.excluded("c") == "slurm-only,slurm-only");
}

TEST_CASE("a host port that is taken on a node that Slurm does not have excludes nothing")
{
	World w;
	const std::vector<kube::HostPort> ports{{"", "TCP", 8080}};
	w.controller->use().add("foreign", "another", ports);
	w.create_pod("p", [&](kube::Pod &p) { p.host_ports = ports; });
	w.run();
	CHECK(w.excluded("p") == "slurm-only,slurm-only"); // of a node that it does not know Slurm says that the job is invalid
}

// ---- ephemeral-storage ----

static constexpr std::int64_t mib = 1 << 20;

static void nodes_have_storage(World &w, std::int64_t megabytes)
{
	for (auto &n : w.nodes) {
		auto other = std::make_shared<kube::Node>(*n);
		other->allocatable.extended["ephemeral-storage"] = megabytes * mib;
		n = other;
	}
}

static std::function<void(kube::Pod &)> wants_storage(std::int64_t megabytes)
{
	return [=](kube::Pod &p) { p.request.extended["ephemeral-storage"] = megabytes * mib; };
}

TEST_CASE("pods whose ephemeral storage does not fit together share no node, also where their jobs start together")
{
	World w;
	nodes_have_storage(w, 100);
	w.create_pod("a", wants_storage(60));
	w.create_pod("b", wants_storage(60));
	w.create_pod("c", wants_storage(30));
	w.run();
	w.slurm_starts("a", "n1", {0});
	w.slurm_starts("b", "n1", {1});
	w.run(Millis(20'000)); // conditions are written seldom
	CHECK(w.pod("a").node_name == "n1");
	CHECK(w.pod("b").node_name == "");
	REQUIRE(w.jobs.size() == 4); // b has another one, and no third
	CHECK(w.jobs[1].end.comment == "node n1: its pods leave 40 MiB of its ephemeral-storage, and this one requests 60");
	CHECK(w.job_of("b")->state == SK8_JOB_PENDING);
	CHECK(w.excluded("b") == "n1,slurm-only,n1");
	CHECK(contains(w.conditions["b"].message, "; 1 node lacks ephemeral-storage"));
	CHECK(w.excluded("c") == "slurm-only,slurm-only");
	w.slurm_starts("c", "n1", {1});
	w.run();
	CHECK(w.pod("c").node_name == "n1");

	w.kubelet_starts("a");
	w.slurm_ends("a", SK8_JOB_CANCELLED, 0); // its pod leaves, and has what it has
	w.run(Millis(6'000));
	CHECK(w.excluded("b") == "n1,slurm-only,n1");
	w.kubelet_ends("a", 143, "Error");
	w.run(Millis(20'000));
	CHECK(w.excluded("b") == "slurm-only,slurm-only");
	CHECK_FALSE(contains(w.conditions["b"].message, "ephemeral-storage"));
	w.slurm_starts("b", "n1", {0});
	w.run();
	CHECK(w.pod("b").node_name == "n1");
}

TEST_CASE("what pods of others request of a node's ephemeral storage is none for pods for Slurm, until they are gone")
{
	World w;
	nodes_have_storage(w, 100);
	w.create_pod("p", wants_storage(60));
	w.create_pod("small", wants_storage(20));
	w.create_pod("none");
	w.run();
	w.controller->use().add("foreign", "n1", {}, 80 * mib);
	w.run(Millis(6'000));
	CHECK(w.excluded("p") == "n1,slurm-only,n1");
	CHECK(w.excluded("small") == "slurm-only,slurm-only");
	CHECK(w.excluded("none") == "slurm-only,slurm-only");
	CHECK(w.count("exclude") == 1);
	w.controller->use().remove("foreign");
	w.run(Millis(6'000));
	CHECK(w.excluded("p") == "slurm-only,slurm-only");
	CHECK(w.count("exclude") == 2);
}

TEST_CASE("a pod for whose ephemeral storage no node has room has no job that Slurm would refuse, until one has")
{
	World w;
	nodes_have_storage(w, 100);
	for (const char *node : {"n1", "n2"})
		w.controller->use().add(std::string("foreign on ") + node, node, {}, 80 * mib);
	w.create_pod("p", wants_storage(60));
	w.run(Millis(120'000));
	CHECK(w.jobs.empty());
	CHECK(w.conditions["p"].reason == "SlurmPending");
	CHECK(w.conditions["p"].message == "no node has room for it now: 2 nodes lack ephemeral-storage");
	CHECK_FALSE(contains(w.events_text(), "SlurmRefused"));
	w.controller->use().remove("foreign on n2");
	w.run(Millis(6'000));
	REQUIRE(w.jobs.size() == 1);
	CHECK(w.excluded("p") == "n1,slurm-only,n1");
}

TEST_CASE("a job that Slurm refuses while nodes lack room for it is made as soon as others do")
{
	World w;
	nodes_have_storage(w, 100);
	w.controller->use().add("foreign", "n1", {}, 80 * mib);
	w.submit_reply = {.ok = false, .fatal = true, .text = "no node of the partition could ever run this"};
	w.create_pod("p", wants_storage(60));
	w.run(Millis(6'000));
	CHECK(w.jobs.empty());
	CHECK(w.conditions["p"].message ==
	      "Slurm refused the job: no node of the partition could ever run this; 1 node lacks ephemeral-storage");
	w.submit_reply = {.ok = true};
	w.controller->use().remove("foreign");
	w.run(Millis(6'000));
	REQUIRE(w.jobs.size() == 1);
	CHECK(w.excluded("p") == "slurm-only,slurm-only");
}

TEST_CASE("jobs that wait hear seldom of storage that comes and goes, and at last of how it is")
{
	World w;
	nodes_have_storage(w, 100);
	for (int i = 0; i < 10; i++)
		w.create_pod("p" + std::to_string(i), wants_storage(60));
	w.run();
	for (int i = 0; i < 50; i++) {
		w.controller->use().add("foreign", "n1", {}, 80 * mib);
		w.run(Millis(100));
		w.controller->use().remove("foreign");
		w.run(Millis(100));
	}
	w.controller->use().add("foreign", "n1", {}, 80 * mib);
	w.run(Millis(6'000));
	CHECK(w.count("exclude") <= 4 * 10);
	for (int i = 0; i < 10; i++)
		CHECK(w.excluded("p" + std::to_string(i)) == "n1,slurm-only,n1");
}

// "runs" does on n1. Slurm has its jobs sooner than we have our settings, and starts "older" there, too, while we are away.
static void starts_beside_one_that_runs(World &w)
{
	w.run();
	w.slurm_starts("runs", "n1", {0});
	w.run();
	w.kubelet_starts("runs");
	w.run();
	w.slurm_starts("older", "n1", {1});
	w.restart();
}

static void older_goes_back(World &w)
{
	CHECK(w.pod("older").node_name == "");
	CHECK(w.job_of("older")->state == SK8_JOB_PENDING);
	CHECK(w.job_of("runs")->running());
}

TEST_CASE("ephemeral storage of pods on their nodes counts at a start before the first one is bound")
{
	World w;
	nodes_have_storage(w, 100);
	w.create_pod("older", [](kube::Pod &p) {
		wants_storage(60)(p);
		p.meta.creation_time = 1;
	});
	w.create_pod("runs", [](kube::Pod &p) {
		wants_storage(60)(p);
		p.meta.creation_time = 2;
	});
	starts_beside_one_that_runs(w);
	w.run(Millis(6'000));
	older_goes_back(w);
}

// Its Binding is answered so; then a foreign pod has its port.
static void loses_its_port(World &w, int answer)
{
	const std::vector<kube::HostPort> ports{{"", "TCP", 8080}};
	w.create_pod("p", [&](kube::Pod &p) { p.host_ports = ports; });
	w.run();
	w.fail["bind"] = {answer};
	w.slurm_starts("p");
	w.run();
	w.controller->use().add("foreign", "n1", ports);
	w.run(Millis(120'000));
}

TEST_CASE("a pod whose Binding may still arrive keeps its job while another pod has its port")
{
	World w;
	loses_its_port(w, 0);
	CHECK(w.jobs.size() == 1);
	CHECK(w.jobs[0].job.running());
	CHECK(w.count("bind") == 1);
	w.controller->use().remove("foreign");
	w.run(Millis(60'000));
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.jobs.size() == 1);
}

TEST_CASE("a pod whose Binding was refused queues again when another pod has its port by then")
{
	World w;
	loses_its_port(w, 429);
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[1].request.required_node.empty());
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("a node whose pod slots are taken is full, and not excluded for ever")
{
	World w;
	auto small = std::make_shared<kube::Node>(*w.nodes[0]);
	small->allocatable_pods = 1;
	w.run();
	w.controller->node_changed(small);
	w.create_running("a");
	w.create_pod("b");
	w.run();
	CHECK(w.controller->use().full() == std::set<std::string>{"n1"});
	CHECK(w.excluded("b") == "slurm-only,slurm-only");
	w.kubelet_ends("a", 0);
	w.run();
	CHECK(w.controller->use().full().empty());
}

TEST_CASE("a pod that may be bound to a node has one of its pod slots, until it is known not to be")
{
	World w;
	auto small = std::make_shared<kube::Node>(*w.nodes[0]);
	small->allocatable_pods = 1;
	w.nodes[0] = small;
	w.run();
	w.controller->node_changed(small);
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(40, 0);
	w.slurm_starts("p", "n1");
	w.run(Millis(1'000));
	w.nodes_take_jobs = false;
	w.slurm_ends("p", SK8_JOB_PREEMPTED);
	w.run(Millis(10'000));
	CHECK(w.controller->use().full() == std::set<std::string>{"n1"});
	w.restart();
	w.run(Millis(10'000));
	CHECK(w.controller->use().full() == std::set<std::string>{"n1"});
	w.user_deletes("p");
	w.run(Millis(10'000));
	CHECK(w.controller->use().full().empty());
}

TEST_CASE("what a pod for Slurm held while its scheduler was none of ours is the hold of a pod for Slurm from then on")
{
	World w;
	const std::string uid = w.create_running("p");
	const bool job = GENERATE(true, false);
	Hold hold = w.journal.saved().holds.at(0);
	hold.foreign = true;
	hold.cores.clear();
	hold.milli_cpu = 500;
	w.journal.hold(hold);
	REQUIRE(w.journal.flush());
	w.nodes_take_jobs = false;
	if (!job)
		w.jobs.clear();
	w.restart();
	REQUIRE(w.holds->ledger("c").holds.at(0).foreign);
	w.run(Millis(5'000));
	for (const auto &known : {w.holds->ledger("c"), w.journal.saved()}) {
		REQUIRE(known.holds.size() == 1);
		CHECK(known.holds[0].key.uid == uid);
		CHECK_FALSE(known.holds[0].foreign);
		CHECK(known.holds[0].milli_cpu == 0);
		CHECK(known.holds[0].core_count() == 1);
	}
}

TEST_CASE("a pod whose scheduler is none of ours any more ends its job, and what it held is free, when another watch tells its end")
{
	World w;
	const std::string uid = w.create_running("p");
	w.controller->pods_replaced("slurm", {});
	w.run();
	REQUIRE(w.job_of("p")->state == SK8_JOB_RUNNING);
	SECTION("while its object is there")
	{
		w.pod("p").containers.at(0).state = kube::ContainerStatus::State::terminated;
		w.pod("p").phase = "Succeeded";
	}
	SECTION("with its object")
	{
		w.pods.erase("p");
	}
	w.controller->over_elsewhere({"c", "team-a", "p", uid});
	w.run(Millis(5'000));
	CHECK(w.job_of("p")->state != SK8_JOB_RUNNING);
	CHECK(w.journal.saved().holds.empty());
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("what pods use that are on their nodes counts at a start before the first one is bound")
{
	World w;
	const bool slots = GENERATE(false, true);
	if (slots)
		for (auto &n : w.nodes) {
			auto small = std::make_shared<kube::Node>(*n);
			small->allocatable_pods = 1;
			n = small;
		}
	const auto at = [&](std::int64_t created) {
		return [=](kube::Pod &p) {
			p.meta.creation_time = created;
			if (!slots)
				p.host_ports = {{"", "TCP", 8080}};
		};
	};
	w.create_pod("older", at(1));
	w.create_pod("runs", at(2));
	starts_beside_one_that_runs(w);
	w.run(Millis(2'000));
	older_goes_back(w);
}

TEST_CASE("a suspended job's pod is kept")
{
	World w;
	w.create_running("p");
	Job job = *w.job_of("p");
	job.state = SK8_JOB_SUSPENDED;
	w.controller->job_changed(w.jobs[0].key, share(job), Millis(0));
	w.run(Millis(5'000));
	CHECK(w.count("delete") == 0);
	CHECK(w.count("end") == 0);
}

TEST_CASE("one DELETE per ended job, however often its end is told")
{
	World w;
	w.create_running("p");
	w.watch_delivers = false;
	w.slurm_ends("p", SK8_JOB_CANCELLED, 0);
	w.run();
	w.controller->job_changed(w.jobs[0].key, share(w.jobs[0].job), Millis(0));
	w.controller->jobs_replaced({{w.jobs[0].key, share(w.jobs[0].job)}});
	w.run(Millis(5'000));
	CHECK(w.count("delete") == 1);
}

TEST_CASE("late news that a started job is pending are not believed")
{
	World w;
	w.create_pod("p");
	w.run();
	const Job pending = *w.job_of("p");
	w.fail["bind"] = {500};
	w.slurm_starts("p");
	w.run();
	w.controller->job_changed(w.jobs[0].key, share(pending), Millis(0)); // a scan that a hook overtook
	w.run(Millis(5'000));
	CHECK(w.pod("p").node_name == "n1");
}

TEST_CASE("an administrator's list of excluded nodes is left alone")
{
	World w;
	w.create_pod("p");
	w.run();
	exclude_by_hand(w, "n2");
	cordon_n1(w);
	CHECK(w.count("exclude") == 0);
}

TEST_CASE("an administrator's list of excluded nodes is left alone also after a restart")
{
	World w;
	w.create_pod("p");
	w.run();
	w.jobs[0].job.excluded_nodes = "n2";
	w.restart();
	w.run();
	cordon_n1(w);
	CHECK(w.count("exclude") == 0);
}

TEST_CASE("a pod is not bound where somebody's list of excluded nodes lets its job go, and the pod must not")
{
	World w;
	const std::string list = GENERATE("", "n2");
	CAPTURE(list);
	w.create_pod("p", [](kube::Pod &p) { p.node_selector["disk"] = "ssd"; });
	auto labelled = std::make_shared<kube::Node>(*w.nodes[1]);
	labelled->meta.labels["disk"] = "ssd";
	w.nodes[1] = labelled;
	w.controller->node_changed(labelled);
	w.run();
	REQUIRE(w.jobs.size() == 1);
	SECTION("known all the time") {}
	SECTION("or given while slurmctld was away") { w.restart(); }
	exclude_by_hand(w, list);
	w.slurm_starts("p", "n1");
	w.run(Millis(2'000));
	CHECK(w.count("bind") == 0);
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[0].end.comment == "node n1 is none that its pod may have");
	CHECK(w.jobs[1].request.excluded_nodes == "n1,slurm-only,n1");
	w.slurm_starts("p", "n2");
	w.run();
	CHECK(w.pod("p").node_name == "n2");
}

// update_job() of 24.11 forgets the list that it goes on showing, if a node of it is none any more.
TEST_CASE("a pod is not bound where its job must not go and goes all the same, as Slurm has refused or forgotten its list")
{
	World w;
	w.create_pod("p");
	w.run();
	const std::string node = GENERATE("n1", "slurm-only");
	CAPTURE(node);
	w.refuses_exclusion = true;
	cordon_n1(w);
	CHECK(w.excluded("p") == "slurm-only,slurm-only");
	w.refuses_exclusion = false;
	w.slurm_starts("p", node);
	w.run(Millis(2'000));
	CHECK(w.count("bind") == 0);
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[0].end.comment == "node " + node + " is none that its pod may have");
	CHECK(w.jobs[1].request.excluded_nodes == "n1,slurm-only,n1");
}

TEST_CASE("an administrator's list of excluded nodes keeps no pod from a node that it may have")
{
	World w;
	w.create_pod("p");
	w.run();
	exclude_by_hand(w, "n2");
	w.slurm_starts("p", "n1");
	w.run();
	CHECK(w.pod("p").node_name == "n1");
}

TEST_CASE("a pod whose job got several nodes is not bound, and gets another job")
{
	World w;
	w.create_pod("p");
	w.run();
	w.slurm_starts("p", "n[1-2]");
	w.run(Millis(2'000));
	CHECK(w.count("bind") == 0);
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[0].end.comment == "its job is not on one node, but on n[1-2]");
	CHECK_FALSE(w.masked("n[1-2]"));
}

TEST_CASE("our list of excluded nodes is kept right also after a restart")
{
	World w;
	w.create_pod("p");
	w.run();
	w.restart();
	w.run();
	cordon_n1(w);
	CHECK(w.excluded("p") == "n1,slurm-only,n1");
}

TEST_CASE("a job that starts when its pod has just gone leaves nothing masked")
{
	World w;
	w.create_pod("p");
	w.run();
	w.watch_delivers = false;
	const kube::Pod last = w.pod("p");
	w.user_deletes("p");
	w.slurm_starts("p");
	// in one turn: the job's start, then the news that the pod is gone
	w.controller->job_changed(w.jobs[0].key, share(w.jobs[0].job), Millis(0));
	w.controller->pod_removed(std::make_shared<kube::Pod>(last));
	w.controller->end_of_turn();
	w.run(Millis(5'000));
	CHECK(w.job_of("p")->ended());
	CHECK_FALSE(w.masked("n1"));
	CHECK(w.controller->size() == 0);
}

TEST_CASE("a job that Slurm remembers as running where another pod holds the cores binds nothing")
{
	World w;
	w.create_running("p"); // on core 0 of n1
	w.slurm_ends("p", SK8_JOB_CANCELLED, 0);
	w.run();
	REQUIRE(w.masked("n1"));
	w.create_pod("q");
	w.run();
	w.slurm_starts("q", "n1", {0}); // as after a kill of slurmctld, whose state was older
	w.run();
	CHECK(w.pod("q").node_name.empty());
	w.run(Millis(5'000));
	REQUIRE(w.job_of("q"));
	CHECK_FALSE(w.job_of("q")->running()); // it queues again
}

TEST_CASE("a pod that was proved over and vanishes while its finalizer is taken off is not lost")
{
	World w;
	w.create_running("p");
	w.watch_delivers = false;
	w.fail["unfinalizer"] = {409}; // a collision with another writer
	w.kubelet_ends("p", 0);
	w.controller->pod_changed(std::make_shared<kube::Pod>(w.pod("p")));
	w.pods.erase("p"); // whoever it was
	w.run(Millis(5'000));
	CHECK(w.job_of("p")->state == SK8_JOB_COMPLETED);
	CHECK_FALSE(contains(w.events_text(), "SlurmContainersUnproven"));
	CHECK(w.controller->size() == 0);
}

TEST_CASE("duplicates and replays change nothing")
{
	World w;
	w.create_running("p");
	const auto calls = w.calls.size();
	for (int i = 0; i < 3; i++) {
		w.controller->pod_changed(std::make_shared<kube::Pod>(w.pod("p")));
		w.controller->job_changed(w.jobs[0].key, share(w.jobs[0].job), Millis(0));
		w.controller->jobs_replaced({{w.jobs[0].key, share(w.jobs[0].job)}});
	}
	w.run(Millis(1'000));
	CHECK(w.calls.size() == calls);
}

TEST_CASE("a mask that comes and goes before the end of its job is heard of wakes the scheduler")
{
	World w;
	w.create_running("p");
	w.woken = 0;
	// job_fini masks at once; the engine hears the kubelet first
	w.kubelet_ends("p", 0);
	w.slurm_ends("p", SK8_JOB_CANCELLED, 1000);
	REQUIRE(w.masked("n1"));
	w.run();
	CHECK_FALSE(w.masked("n1"));
	CHECK(w.woken > 0);
}

TEST_CASE("what was kept for a pod wakes the scheduler when the pod is found on another node")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(20, 0);
	w.slurm_starts("p", "n1");
	w.run(Millis(1'000));
	w.nodes_take_jobs = false;
	w.slurm_ends("p", SK8_JOB_PREEMPTED);
	w.run();
	REQUIRE(w.masked("n1"));
	w.woken = 0;
	auto elsewhere = std::make_shared<kube::Pod>(w.pod("p"));
	elsewhere->node_name = "n2"; // by somebody else
	w.controller->pod_changed(elsewhere);
	CHECK_FALSE(w.masked("n1"));
	CHECK(w.masked("n2"));
	CHECK(w.woken > 0);
}

TEST_CASE("the owner of a pod that may have been bound reads where its job must start and cannot, and what he can do")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(20, 0);
	w.slurm_starts("p", "n1");
	w.run(Millis(1'000));
	w.nodes_take_jobs = false;
	w.slurm_ends("p", SK8_JOB_NODE_FAIL);
	w.run(Millis(60'000));
	CHECK(w.conditions.at("p").message == "it may have been bound to node n1, so its job can start only there, and now it cannot: Requested nodes "
					      "are busy; who deletes the pod frees what it holds");
	REQUIRE(w.masked("n1"));
	w.user_deletes("p");
	w.run(Millis(10'000));
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("a Binding that never left keeps nothing for its pod")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(20, World::not_sent);
	w.slurm_starts("p", "n2");
	w.run(Millis(1'000));
	REQUIRE(w.count("bind") > 0);
	REQUIRE_FALSE(w.masked("n2"));
	w.nodes_take_jobs = false; // it need not go back there
	w.slurm_ends("p", SK8_JOB_PREEMPTED);
	w.run(Millis(10'000));
	CHECK_FALSE(w.masked("n2"));
	CHECK_FALSE(w.journal.holds(w.pod("p").meta.uid));
	w.fail.clear();
	w.run(Millis(60'000));
	REQUIRE(w.job_of("p"));
	CHECK(w.job_of("p")->state == SK8_JOB_PENDING);
}

TEST_CASE("a pod that was never bound and vanished unseen is not lost")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = w.fail["finalizer"] = std::deque<int>(20, 403);
	w.slurm_starts("p");
	w.run(Millis(1'000));
	w.watch_delivers = false;
	w.user_deletes("p");
	w.controller->pods_replaced("slurm", {});
	w.run(Millis(60'000));
	CHECK_FALSE(w.masked("n1"));
	CHECK_FALSE(w.journal.holds(w.jobs[0].key.uid));
	CHECK(w.controller->size() == 0);
}

namespace {

// Released by hand, and its object gone, before the watch tells of either. What it was.
kube::PodPtr gone_before_the_watch_says_so(World &w)
{
	const std::string uid = w.create_running("p");
	auto ran = std::make_shared<kube::Pod>(w.pod("p"));
	w.watch_delivers = false;
	REQUIRE(w.controller->release_by_hand(uid, "root (uid 0)", true));
	w.pods.erase("p");
	w.run(Millis(2'000));
	REQUIRE(w.controller->size() == 0);
	return ran;
}

} // namespace

TEST_CASE("late news of a pod that a GET did not find brings nothing of it back")
{
	World w;
	const auto ran = gone_before_the_watch_says_so(w);
	w.controller->pod_changed(ran);
	CHECK_FALSE(w.masked("n1"));
	const bool removed_while_it_looks = GENERATE(true, false);
	if (removed_while_it_looks)
		w.controller->pod_removed(ran);
	w.run(Millis(2'000));
	CHECK(w.controller->size() == 0);
	CHECK_FALSE(w.journal.holds(ran->meta.uid));
}

TEST_CASE("a pod that a GET did not find and that is there again is adopted")
{
	World w;
	const auto ran = gone_before_the_watch_says_so(w);
	w.pods.emplace("p", *ran); // out of a backup
	w.controller->pod_changed(ran);
	w.run(Millis(2'000));
	CHECK(w.journal.holds(ran->meta.uid));
	CHECK(w.count("submit") == 2);
}

TEST_CASE("a pod that was over, that a backup of etcd brings back and that is lost then is known as lost")
{
	World w;
	const std::string uid = w.create_running("p");
	w.kubelet_ends("p", 0);
	w.run(Millis(2'000));
	kube::Pod &p = w.pod("p");
	p.phase = "Pending";
	p.node_name.clear();
	p.started_at = 0;
	p.containers.clear();
	w.list_pods();
	w.run(Millis(2'000));
	w.slurm_starts("p", "n2");
	w.run();
	REQUIRE(w.journal.holds(uid));
	w.pods.erase("p"); // another backup, which does not know it
	w.list_pods();
	w.run(Millis(5'000));
	CHECK(w.controller->size() == 1);
	CHECK(w.controller->release_by_hand(uid, "root (uid 0)", true));
}

TEST_CASE("what an adopted pod's job got is what the saved ledger says it holds")
{
	World w;
	w.create_running("p"); // on core 0
	w.slurm_forgets("p");
	w.restart();
	w.run(Millis(2'000));
	REQUIRE(w.job_of("p")->cores == std::vector<std::uint16_t>{5});
	const auto saved = w.journal.saved().holds;
	REQUIRE(saved.size() == 1);
	CHECK(saved[0].cores == std::vector<std::uint16_t>{5});
}

TEST_CASE("what the job of an adopted pod got that started by itself is in the saved ledger while it runs")
{
	World w;
	w.create_running("p"); // on core 0
	w.slurm_forgets_start("p");
	w.nodes_take_jobs = false;
	w.restart();
	w.run(Millis(20'000));
	REQUIRE(w.job_of("p")->state == SK8_JOB_PENDING);
	w.slurm_starts("p", "n1", {6});
	w.run(Millis(100));
	const auto saved = w.journal.saved().holds;
	REQUIRE(saved.size() == 1);
	CHECK(saved[0].cores == std::vector<std::uint16_t>{6});
	CHECK(saved[0].more_cores == 0);
	const std::string text = w.journal.text;
	w.run(Millis(60'000));
	CHECK(w.journal.text == text); // once
}

namespace {

std::string note(World &w, const std::string &pod, std::string_view name)
{
	const auto &notes = w.pod(pod).meta.annotations;
	const auto it = notes.find(std::string(name));
	return it == notes.end() ? "" : it->second;
}

} // namespace

TEST_CASE("an adopted pod names the job that is its own now")
{
	World w;
	w.create_running("p"); // on core 0
	REQUIRE(note(w, "p", names::job_id) == "100");
	w.pod("p").meta.annotations[std::string(names::job_gres)] = "gpu:1(0)"; // of a former job
	w.slurm_forgets("p");
	w.restart();
	w.run(Millis(2'000));
	const Job &job = *w.job_of("p");
	REQUIRE(job.cores == std::vector<std::uint16_t>{5});
	CHECK(note(w, "p", names::job_id) == std::to_string(job.ref.id));
	CHECK(note(w, "p", names::job_submit_time) == std::to_string(job.ref.submit_time));
	CHECK(note(w, "p", names::job_node) == "n1");
	CHECK(note(w, "p", names::job_cores) == "5");
	CHECK(note(w, "p", names::job_gres) == "");
	CHECK(w.count("annotate") == 1);
	w.run(Millis(600'000));
	CHECK(w.count("annotate") == 1);
}

TEST_CASE("a pod that was bound through Slurm is not annotated again")
{
	World w;
	w.create_running("p");
	w.restart();
	w.run(Millis(60'000));
	CHECK(w.count("annotate") == 0);
}

TEST_CASE("a pod's annotations are tried again if they cannot be put right, and put right more and more seldom")
{
	World w;
	w.create_running("p");
	w.slurm_forgets("p");
	w.fail["annotate"] = {500, 0};
	w.restart();
	w.run(Millis(10'000));
	REQUIRE(w.count("annotate") == 3);
	CHECK(note(w, "p", names::job_id) == std::to_string(w.job_of("p")->ref.id));

	const int before = w.count("annotate");
	for (int second = 0; second < 120; second++) { // somebody does not give in
		w.pod("p").meta.annotations[std::string(names::job_id)] = "7";
		w.controller->pod_changed(std::make_shared<kube::Pod>(w.pod("p")));
		w.run(Millis(1'000));
	}
	CHECK(w.count("annotate") > before);
	CHECK(w.count("annotate") < before + 10);
}

TEST_CASE("that a pod's annotations may not be put right is told, and its life goes on")
{
	World w;
	w.create_running("p");
	w.slurm_forgets("p");
	w.fail["annotate"] = std::deque<int>(100, 403);
	w.restart();
	w.run(Millis(60'000));
	CHECK(contains(w.events_text(), "SlurmMissingRight"));
	w.kubelet_ends("p", 3);
	w.run(Millis(2'000));
	CHECK(w.job_of("p")->ended());
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("late news of a pod whose end a GET has told masks nothing again")
{
	World w;
	const std::string uid = w.create_running("p");
	const auto late = std::make_shared<kube::Pod>(w.pod("p"));
	w.watch_delivers = false; // it is behind
	w.kubelet_ends("p", 3);
	w.list_pods();
	w.run(Millis(2'000));
	REQUIRE(w.job_of("p")->ended());
	REQUIRE_FALSE(w.journal.holds(uid));
	if (GENERATE(false, true))
		late->node_name.clear(); // from before its Binding
	if (GENERATE(false, true))
		w.controller->pod_changed(late);
	else
		w.controller->pods_replaced("slurm", {late});
	w.run(Millis(2'000));
	CHECK_FALSE(w.masked("n1"));
	CHECK_FALSE(w.journal.holds(uid));
	CHECK(w.count("submit") == 1);
}

TEST_CASE("a pod that was over, that a backup of etcd brings back running and that is lost then is known as lost")
{
	World w;
	const std::string uid = w.create_running("p");
	const kube::Pod before = w.pod("p");
	w.fail["unfinalizer"] = std::deque<int>(3, 500);
	w.kubelet_ends("p", 0);
	w.run(Millis(1'000));
	REQUIRE_FALSE(w.journal.holds(uid));
	w.pods.erase("p");
	w.pods.emplace("p", before);
	w.list_pods();
	w.run(Millis(2'000));
	REQUIRE(w.journal.holds(uid));
	w.pods.erase("p"); // another backup, which does not know it
	w.list_pods();
	w.run(Millis(5'000));
	CHECK(w.masked("n1"));
	CHECK(w.controller->release_by_hand(uid, "root (uid 0)", true));
	CHECK_FALSE(w.journal.holds(uid));
}

TEST_CASE("a GET that read a pod before the watch told of its end does not bring it back")
{
	World w;
	const std::string uid = w.create_running("p");
	const kube::Pod before = w.pod("p");
	w.kubelet_ends("p", 0);
	w.run(Millis(1'000));
	REQUIRE_FALSE(w.journal.holds(uid));
	auto again = std::make_shared<kube::Pod>(w.pod("p"));
	w.pod("p") = before; // etcd from a backup ...
	w.list_pods();       // it looks
	again->meta.resource_version = "1000";
	w.controller->pod_changed(again); // ... and its kubelet tells, before that is answered
	w.run(Millis(2'000));
	CHECK_FALSE(w.masked("n1"));
	CHECK_FALSE(w.journal.holds(uid));
}

TEST_CASE("what a list has told of a pod's end before the start counts when it is gone by then")
{
	World w;
	const std::string uid = w.create_running("p");
	w.watch_delivers = false;
	w.fail["unfinalizer"] = std::deque<int>(3, 500);
	w.kubelet_ends("p", 0);
	const auto over = std::make_shared<kube::Pod>(w.pod("p"));
	w.pods.erase("p");
	w.nodes_last = true; // it starts when they are known, too
	w.restart();
	w.controller->pods_replaced("slurm", {over});
	w.controller->pods_replaced("slurm", {});
	w.run(Millis(5'000));
	CHECK(w.controller->size() == 0);
	CHECK_FALSE(w.masked("n1"));
	CHECK_FALSE(w.journal.holds(uid));
	CHECK_FALSE(contains(w.events_text(), "SlurmContainersUnproven"));
}

TEST_CASE("a pod whose job starts by itself after its adoption has failed is deleted at once when that is preempted")
{
	World w;
	w.create_running("p");
	w.slurm_forgets_start("p");
	w.nodes_take_jobs = false;
	w.restart();
	w.run(Millis(20'000)); // the pauses grow
	REQUIRE(w.job_of("p")->state == SK8_JOB_PENDING);
	w.slurm_starts("p");
	w.run(Millis(100));
	w.slurm_preempts("p", 40);
	w.run(Millis(300));
	CHECK(w.pod("p").meta.deleting);
}

TEST_CASE("a GET that read a pod before it was removed does not bring it back")
{
	World w;
	w.create_pod("p");
	w.run();
	const auto last = std::make_shared<kube::Pod>(w.pod("p"));
	w.watch_delivers = false;
	w.controller->pods_replaced("slurm", {}); // it looks, and finds it
	w.pods.erase("p");
	w.controller->pod_removed(last);
	w.run(Millis(2'000));
	CHECK(w.job_of("p")->ended());
	CHECK(w.controller->size() == 0);
}

// Beside n1 and n2, m0 to m99: all that Slurm and Kubernetes have.
static void add_a_hundred_nodes(World &w)
{
	for (int n = 0; n < 100; n++) {
		auto node = std::make_shared<kube::Node>(*w.nodes[0]);
		node->meta.name = node->meta.uid = "m" + std::to_string(n);
		w.nodes.push_back(node);
		w.slurm_nodes.push_back({node->meta.name, 1});
	}
	w.controller->nodes_replaced(w.nodes);
	w.controller->slurm_nodes(w.slurm_nodes);
	w.run();
}

static kube::NodePtr tainted(const kube::Node &node)
{
	auto out = std::make_shared<kube::Node>(node);
	out->taints.push_back({"maintenance", "", kube::TaintEffect::no_schedule});
	return out;
}

TEST_CASE("taints of a hundred nodes that come in one turn let each waiting pod be looked at once, with all of them")
{
	World w;
	w.run();
	add_a_hundred_nodes(w);
	for (int n = 0; n < 100; n++)
		w.create_pod("p" + std::to_string(n));
	w.run();
	REQUIRE(w.jobs.size() == 100);
	for (const auto &node : w.nodes)
		if (node->meta.name[0] == 'm')
			w.post([&w, node = tainted(*node)] { w.controller->node_changed(node); });
	w.run();
	CHECK(w.count("exclude") == 100);
	for (int n = 0; n < 100; n++)
		CHECK(w.excluded("p" + std::to_string(n)) == "m[0-99],slurm-only,m0");
}

TEST_CASE("a pod whose job starts after the taint of its node, or before it in the same turn, is not bound there")
{
	const bool first = GENERATE(true, false);
	World w;
	w.create_pod("p");
	w.run();
	const auto taint = [&] { w.post([&w, node = tainted(*w.nodes[0])] { w.controller->node_changed(node); }); };
	if (first)
		taint();
	w.slurm_starts("p");
	if (!first)
		taint();
	w.run();
	CHECK(w.count("bind") == 0);
	CHECK(w.jobs[0].job.ended());
	CHECK(w.jobs[0].end.comment == "node n1 is none that its pod may have");
	w.run(Millis(5'000));
	CHECK(w.excluded("p") == "n1,slurm-only,n1");
}

TEST_CASE("a pod that no node fits gets its job at the end of the turn that tells of one that does")
{
	World w;
	w.create_pod("p", [](kube::Pod &p) { p.node_selector["gpu"] = "yes"; });
	w.run();
	auto gpu = std::make_shared<kube::Node>(*w.nodes[1]);
	gpu->meta.labels["gpu"] = "yes";
	w.controller->node_changed(gpu);
	w.controller->end_of_turn();
	CHECK(w.count("submit") == 1);
}

TEST_CASE("Bindings of a hundred pods that are tried again in one turn wait for the disk once")
{
	World w;
	for (int n = 0; n < 100; n++)
		w.create_pod("p" + std::to_string(n));
	w.run();
	w.fail["bind"] = std::deque<int>(100, 429); // surely not bound: no look comes first
	for (std::uint16_t n = 0; n < 100; n++)
		w.slurm_starts("p" + std::to_string(n), "n1", {n});
	w.run();
	REQUIRE(w.count("bind") == 100);
	const int writes = w.journal.writes;
	w.timer.advance(Millis(1'000)); // all their pauses are over
	w.controller->end_of_turn();
	CHECK(w.count("bind") == 200);
	CHECK(w.journal.writes - writes <= 1);
	w.run();
	for (int n = 0; n < 100; n++)
		CHECK(w.pod("p" + std::to_string(n)).node_name == "n1");
}

TEST_CASE("nodes that follow each other are one range in what a job excludes, and are told as ours by its first name")
{
	CHECK(our_excluded_nodes({}).empty());
	CHECK(our_excluded_nodes({"n2"}) == "n2,n2");
	CHECK(our_excluded_nodes({"n10", "n9", "n11", "x"}) == "n[9-11],x,n9");
	for (const char *ours : {"", "n2,n2", "n[9-11],x,n9", "n[1,3],n1", "n1,n2,n3,n1", "n[007,009],n007"}) {
		INFO(ours);
		CHECK(are_our_excluded_nodes(ours));
	}
	for (const char *others : {"n2", "n[1-3]", "n[1,1]", "n1,n2", "n[9-11],n10", "n[1-3],n[1-3]", "n[,n", "[1-2],1"}) {
		INFO(others);
		CHECK_FALSE(are_our_excluded_nodes(others));
	}
}

TEST_CASE("a job that has each node in its list, by a former release, gets it in short once")
{
	World w;
	w.run();
	add_a_hundred_nodes(w);
	w.create_pod("p", [](kube::Pod &p) { p.node_selector["gpu"] = "yes"; });
	w.run();
	CHECK(w.jobs.empty());
	auto gpu = std::make_shared<kube::Node>(*w.nodes[1]);
	gpu->meta.labels["gpu"] = "yes";
	w.nodes[1] = gpu;
	w.controller->node_changed(gpu);
	w.run();
	REQUIRE(w.jobs.size() == 1);
	CHECK(w.excluded("p") == "m[0-99],n1,slurm-only,m0");

	std::string each = "m0";
	for (int n = 1; n < 100; n++)
		each += ",m" + std::to_string(n);
	w.jobs[0].job.excluded_nodes = w.jobs[0].request.excluded_nodes = each + ",n1,slurm-only,m0";
	w.restart();
	w.run(Millis(60'000));
	CHECK(w.count("exclude") == 1);
	CHECK(w.excluded("p") == "m[0-99],n1,slurm-only,m0");
	w.jobs[0].job.excluded_nodes = w.jobs[0].request.excluded_nodes;
	w.restart();
	w.run(Millis(60'000));
	CHECK(w.count("exclude") == 1);
	CHECK(w.jobs.size() == 1);
}
