// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods whose jobs Slurm preempts. doc/reliability.md names these tests.
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

namespace {

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("a pod of a preempted job is deleted at once with the grace that Slurm gives, and is told so")
{
	World w;
	w.create_running("p");
	w.slurm_preempts("p", 90);
	w.run();
	CHECK(w.pod("p").meta.deleting);
	CHECK(w.last_grace == 90); // more than the 30 s it asks for itself
	CHECK(contains(w.events_text(), "p: SlurmPreempted: Slurm job 100 is preempted; the pod is deleted and has 90 s to end"));
	w.run(Millis(89'000));
	CHECK(w.count("delete") == 1);
	CHECK(w.job_of("p")->running()); // Slurm counts what its processes still use
	CHECK_FALSE(w.masked("n1"));

	w.kubelet_ends("p", 137, "Error");
	w.run();
	CHECK(w.job_of("p")->state == SK8_JOB_PREEMPTED);
	CHECK(contains(w.jobs[0].end.comment, "preempted"));
	CHECK_FALSE(w.exists("p"));
	CHECK_FALSE(w.masked("n1"));
	CHECK(w.controller->size() == 0);
}

TEST_CASE("a pod that ends by itself before it hears of its job's preemption tells how it ended")
{
	World w;
	w.create_running("p");
	w.kubelet_ends("p", 7, "Error");
	w.slurm_preempts("p", 90);
	w.run();
	CHECK(w.job_of("p")->state == SK8_JOB_FAILED);
	CHECK(w.job_of("p")->exit_code == 7 << 8);
	CHECK(w.count("delete") == 0);
}

TEST_CASE("what is left of the grace counts when the API server answers late, or slurmctld starts anew")
{
	World w;
	w.create_running("p");
	w.fail["delete"] = std::deque<int>(2, 503);
	w.slurm_preempts("p", 90);
	w.run();
	SECTION("the API server answers late") { w.run(Millis(5'000)); }
	SECTION("slurmctld starts anew")
	{
		w.fail.clear();
		w.restart();
		w.timer.advance(Millis(5'000));
		w.run();
	}
	CHECK(w.pod("p").meta.deleting);
	CHECK(w.last_grace < 90);
	CHECK(w.last_grace >= 84);
}

TEST_CASE("a pod that its user has given longer to go has no more than the grace")
{
	World w;
	w.create_running("p");
	w.user_deletes("p", 3600);
	w.run();
	w.slurm_preempts("p", 20);
	w.run();
	CHECK(w.last_grace == 20);
	w.slurm_preempts("p", 10);
	w.run();
	CHECK(w.count("delete") == 1);
}

TEST_CASE("a pod that goes within the grace is not deleted once more by a slurmctld that starts in it")
{
	World w;
	w.create_running("p");
	w.slurm_preempts("p", 4);
	w.run();
	w.restart();
	w.timer.advance(Millis(5'000)); // it was killed, and its kubelet is late to say so
	w.run();
	CHECK(w.count("delete") == 1); // else it would seem to have ended before it was deleted
	w.kubelet_ends("p", 137, "Error");
	w.run();
	CHECK(w.job_of("p")->state == SK8_JOB_PREEMPTED);
}

TEST_CASE("of a preempted job whose pod has no node yet nothing runs: it ends at once, and the pod queues again")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(1, 403);
	w.slurm_starts("p");
	w.slurm_preempts("p", 90);
	w.run(Millis(1'000));
	REQUIRE(w.jobs.size() == 2);
	CHECK(w.jobs[0].job.state == SK8_JOB_PREEMPTED);
	CHECK(w.jobs[1].job.state == SK8_JOB_PENDING);
	CHECK_FALSE(w.masked("n1"));
	w.slurm_starts("p");
	w.run(Millis(1'000));
	CHECK(w.pod("p").node_name == "n1");
}

TEST_CASE("a preempted job whose pod's end is not reported ends by Slurm's hand, and what it holds stays masked")
{
	World w;
	w.create_running("p");
	w.slurm_preempts("p", 10);
	w.run(Millis(25'000));
	w.slurm_ends("p", SK8_JOB_PREEMPTED);
	w.run(Millis(60'000));
	CHECK(w.masked("n1"));
	w.kubelet_ends("p", 137, "Error");
	w.run();
	CHECK_FALSE(w.masked("n1"));
}
