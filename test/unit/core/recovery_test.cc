// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What slurmctld may find when it starts, see "Recovery" in doc/reliability.md: the cells
// that no other test has.
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

// Another live job with the pod's mark, made a second later.
static World::SlurmJob second_job(const World &w)
{
	World::SlurmJob out = w.jobs.at(0);
	out.job.ref.id += 1000;
	out.job.ref.submit_time++;
	out.job.state = SK8_JOB_PENDING;
	out.job.node.clear();
	out.job.cores.clear();
	return out;
}

TEST_CASE("of two jobs for one pod the one that runs where the pod is stands for it, the other one ends")
{
	World w;
	w.create_running("p");
	SECTION("and it was told of while slurmctld was running")
	{
		w.jobs.push_back(second_job(w));
		w.controller->job_changed(w.jobs[1].key, share(w.jobs[1].job), Millis(0));
	}
	SECTION("and slurmctld finds both when it starts")
	{
		w.jobs.push_back(second_job(w));
		w.restart();
	}
	SECTION("and it runs elsewhere")
	{
		w.jobs.push_back(second_job(w));
		w.jobs[1].job.state = SK8_JOB_RUNNING;
		w.jobs[1].job.node = "n2";
		w.controller->job_changed(w.jobs[1].key, share(w.jobs[1].job), Millis(0));
	}
	w.run(Millis(5'000));
	CHECK(w.jobs.at(0).job.running());
	CHECK(w.jobs.at(1).job.ended());
	CHECK(w.jobs.size() == 2);
	CHECK(w.count("delete") == 0);
	w.kubelet_ends("p", 3);
	w.run(Millis(5'000));
	CHECK(w.jobs.at(0).job.state == SK8_JOB_FAILED);
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("of two jobs that run where the pod is the older one stands for it")
{
	World w;
	w.create_running("p");
	w.jobs.push_back(second_job(w));
	w.jobs[1].job.state = SK8_JOB_RUNNING;
	w.jobs[1].job.node = "n1";
	w.jobs[1].job.cores = {1};
	SECTION("and it was told of while slurmctld was running")
	{
		w.controller->job_changed(w.jobs[1].key, share(w.jobs[1].job), Millis(0));
	}
	SECTION("and slurmctld finds both when it starts")
	{
		w.restart();
	}
	w.run(Millis(5'000));
	CHECK(w.jobs.at(0).job.running());
	CHECK(w.jobs.at(1).job.ended());
	CHECK(w.count("delete") == 0);
}

TEST_CASE("a job that is being ended for another one of its pod does not stand again when it starts before that")
{
	World w;
	w.create_pod("p");
	w.run();
	w.jobs.push_back(second_job(w));
	Job starts = w.jobs[0].job;
	starts.state = SK8_JOB_RUNNING;
	starts.node = "n1";
	starts.cores = {0};
	w.controller->job_changed(w.jobs[1].key, share(w.jobs[1].job), Millis(0));
	w.controller->end_of_turn();
	REQUIRE(w.count("end") == 1); // and the news of it come after those of its start
	w.controller->job_changed(w.jobs[0].key, share(std::move(starts)), Millis(0));
	w.run(Millis(5'000));
	CHECK(w.jobs.at(0).job.ended());
	CHECK(w.jobs.at(1).job.state == SK8_JOB_PENDING);
	CHECK(w.count("end") == 1);
	CHECK(w.count("bind") == 0);
}

TEST_CASE("a second job that Slurm does not end at once is to end all the same")
{
	World w;
	w.create_running("p");
	w.jobs.push_back(second_job(w));
	w.ends_refused = 1;
	w.controller->job_changed(w.jobs[1].key, share(w.jobs[1].job), Millis(0));
	w.run(Millis(1'000));
	CHECK_FALSE(w.jobs.at(1).job.ended());
	w.controller->pod_changed(std::make_shared<kube::Pod>(w.pod("p")));
	w.run(Millis(1'000));
	CHECK(w.jobs.at(1).job.ended());
	CHECK(w.jobs.at(0).job.running());
}

TEST_CASE("of two running jobs the one that runs where the pod is stands for it also if jobs are listed first")
{
	World w;
	w.create_running("p");
	w.journal.text.clear(); // only Kubernetes knows where the pod is
	w.jobs.push_back(second_job(w));
	w.jobs[1].job.state = SK8_JOB_RUNNING;
	w.jobs[1].job.node = "n2";
	w.jobs[1].job.cores = {0};
	w.restart();
	w.controller->jobs_replaced({{w.jobs[0].key, share(w.jobs[0].job)}, {w.jobs[1].key, share(w.jobs[1].job)}});
	w.run(Millis(5'000));
	CHECK(w.jobs.at(0).job.running());
	CHECK(w.jobs.at(1).job.ended());
	CHECK(w.count("delete") == 0);
}

TEST_CASE("of two jobs for a pod that waits the newer one stands for it")
{
	World w;
	w.create_pod("p");
	w.run();
	w.jobs.push_back(second_job(w));
	w.restart();
	w.run(Millis(5'000));
	CHECK(w.jobs.at(0).job.ended());
	CHECK(w.jobs.at(1).job.state == SK8_JOB_PENDING);
	CHECK(w.jobs.size() == 2);
	CHECK(w.exists("p"));
}

TEST_CASE("a second job of a pod that comes while the first one is being ended is ended, too")
{
	World w;
	w.create_pod("p");
	w.run();
	auto last = std::make_shared<kube::Pod>(w.pod("p"));
	last->meta.deleting = true;
	w.watch_delivers = false;
	w.user_deletes("p");
	w.controller->pod_removed(last);
	REQUIRE(w.count("end") == 1); // and not answered
	w.jobs.push_back(second_job(w));
	w.jobs[1].job.ended_by_us = false;
	w.controller->job_changed(w.jobs[1].key, share(w.jobs[1].job), Millis(0));
	w.run(Millis(5'000));
	CHECK(w.jobs.at(0).job.ended());
	CHECK(w.jobs.at(1).job.ended());
	CHECK(w.controller->size() == 0);
}

TEST_CASE("a job that was to end for another one of its pod stands for it when that has ended before")
{
	World w;
	w.create_running("p");
	w.jobs.push_back(second_job(w));
	w.jobs[1].job.state = SK8_JOB_RUNNING;
	w.jobs[1].job.node = "n1";
	w.jobs[1].job.cores = {1};
	w.restart(); // and Kubernetes does not answer yet
	w.controller->jobs_replaced({{w.jobs[0].key, share(w.jobs[0].job)}, {w.jobs[1].key, share(w.jobs[1].job)}});
	w.jobs[1].job.state = SK8_JOB_CANCELLED;
	w.holds->job_ended(w.jobs[1].key, w.jobs[1].job.ref);
	w.controller->job_changed(w.jobs[1].key, share(w.jobs[1].job), Millis(0));
	w.run(Millis(5'000));
	CHECK(w.jobs.at(0).job.running());
	CHECK(w.count("end") == 0);
	CHECK(w.count("delete") == 0);
	CHECK_FALSE(w.masked("n1"));
}

TEST_CASE("a job that Slurm forgets while it is being ended is no job any more")
{
	World w;
	w.create_pod("p");
	w.run();
	auto last = std::make_shared<kube::Pod>(w.pod("p"));
	last->meta.deleting = true;
	w.watch_delivers = false;
	w.user_deletes("p");
	const JobRef ref = w.jobs.at(0).job.ref;
	const PodKey key = w.jobs.at(0).key;
	w.jobs.clear(); // its end has no hook: it was pending
	w.controller->pod_removed(last);
	REQUIRE(w.count("end") == 1);
	w.controller->job_purged(key, ref);
	w.run(Millis(5'000));
	CHECK(w.controller->size() == 0);
}

TEST_CASE("a pod that was made anew under its name while slurmctld was away has a job of its own")
{
	World w;
	const std::string former = w.create_running("p");
	w.watch_delivers = false;
	w.pods.erase("p");
	const std::string now = w.create_pod("p");
	w.watch_delivers = true;
	w.restart();
	w.run(Millis(5'000));
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[0].key.uid == former);
	CHECK(w.jobs[0].job.ended());
	CHECK(w.jobs[1].key.uid == now);
	CHECK(w.jobs[1].job.state == SK8_JOB_PENDING);
	CHECK(w.count("delete") == 0);
	CHECK(w.masked("n1")); // nobody saw the end of the former one
}

TEST_CASE("a node that Kubernetes has no more, since slurmctld was away, is named if a pod for Slurm holds something there")
{
	World w;
	w.create_running("p");
	CHECK(w.controller->take_deleted_nodes().empty());
	std::erase_if(w.nodes, [](const auto &node) { return node->meta.name == "n1"; });
	w.restart();
	w.run(Millis(5'000));
	CHECK(w.controller->take_deleted_nodes() == std::set<std::string>{"n1"});
	CHECK(w.controller->take_deleted_nodes().empty());
	CHECK(w.masked("n1") == false); // its job runs, and has the cores
	CHECK(w.job_of("p")->running());
}

TEST_CASE("what runs of a namespace that the configuration has no more goes on to its end")
{
	World w;
	w.create_running("runs");
	w.create_pod("waits");
	w.run();
	w.settings.namespaces.clear();
	w.restart();
	w.run(Millis(5'000));
	CHECK(w.count("delete") == 0);
	CHECK(w.job_of("runs")->running());
	w.kubelet_ends("runs", 0);
	w.run(Millis(5'000));
	CHECK(w.job_of("runs")->state == SK8_JOB_COMPLETED);
	CHECK_FALSE(w.masked("n1"));
}
