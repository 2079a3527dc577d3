// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What becomes of pods whose requests the API server refuses. doc/reliability.md
// names these tests.
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

TEST_CASE("a missing right is told in the pod's event once, and the pod goes on when it is given")
{
	World w;
	const std::string verb = GENERATE("finalizer", "bind");
	w.create_pod("p");
	w.run();
	w.fail[verb] = std::deque<int>(7, 403);
	w.slurm_starts("p");
	w.run(Millis(60'000));
	const std::string told = w.events_text();
	CHECK(contains(told, "p: SlurmMissingRight: HTTP status 403"));
	CHECK(told.find("SlurmMissingRight") == told.rfind("SlurmMissingRight"));
	w.run(Millis(60'000));
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.jobs.size() == 1);
}

TEST_CASE("a server that refuses what it allows some seconds later, as one that starts does, is no missing right")
{
	World w;
	w.create_pod("p");
	w.run();
	for (const char *verb : {"finalizer", "bind"})
		w.fail[verb] = std::deque<int>(4, 403); // the last one 4 s after the first
	w.slurm_starts("p");
	w.run(Millis(3'600'000));
	REQUIRE(w.pod("p").node_name == "n1");
	REQUIRE(w.pod("p").meta.finalizers.size() == 1);
	w.kubelet_starts("p");
	w.fail["delete"] = std::deque<int>(3, 403);
	w.slurm_ends("p", SK8_JOB_CANCELLED, 1000);
	w.run(Millis(60'000));
	CHECK(w.pod("p").meta.deleting);
	CHECK_FALSE(contains(w.events_text(), "SlurmMissingRight"));
}

TEST_CASE("without the right to delete, the pod of a cancelled job is told so and goes when it is given")
{
	World w;
	w.create_running("p");
	w.fail["delete"] = std::deque<int>(7, 403);
	w.slurm_ends("p", SK8_JOB_CANCELLED, 1000);
	w.run(Millis(25'000));
	CHECK(contains(w.events_text(), "SlurmMissingRight"));
	CHECK(w.masked("n1"));
	w.run(Millis(60'000));
	CHECK(w.pod("p").meta.deleting);
	CHECK(w.masked("n1")); // its container runs
}

TEST_CASE("whatever refuses a Binding for a while, the pod is bound once and its job is the same")
{
	World w;
	const int status = GENERATE(0, 401, 403, 409, 410, 422, 429, 500, 502, 503, 504);
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(4, status);
	w.slurm_starts("p");
	w.run(Millis(2'000));
	CHECK(w.count("bind") <= 3); // no hot loop
	w.run(Millis(30'000));
	INFO(status);
	CHECK(w.pod("p").node_name == "n1");
	CHECK(w.jobs.size() == 1);
	CHECK(w.job_of("p")->running());
	CHECK(w.count("bind") == 5);
}

TEST_CASE("whatever refuses the finalizer, the DELETE or the look for a while, all comes to its end")
{
	const int status = GENERATE(0, 401, 403, 410, 429, 500, 503);
	World w;
	INFO(status);
	for (const char *verb : {"finalizer", "unfinalizer", "delete", "get"})
		w.fail[verb] = std::deque<int>(3, status);
	w.create_pod("p");
	w.run();
	w.slurm_starts("p");
	w.run(Millis(30'000));
	REQUIRE(w.pod("p").node_name == "n1");
	w.kubelet_starts("p");
	w.run();
	w.slurm_ends("p", SK8_JOB_TIMEOUT);
	w.run(Millis(30'000));
	REQUIRE(w.pod("p").meta.deleting);
	w.kubelet_ends("p", 143, "Error");
	w.run(Millis(30'000));
	CHECK_FALSE(w.exists("p"));
	CHECK_FALSE(w.masked("n1"));
	CHECK(w.controller->size() == 0);
}

TEST_CASE("after an outage all that failed meanwhile is tried within two seconds, however long it was")
{
	const int status = GENERATE(0, 302, 401, 403, 429, 500, 503);
	World w;
	INFO(status);
	w.create_running("ends");
	w.create_pod("starts");
	w.create_pod("binds");
	w.run();
	for (const char *verb : {"delete", "get", "finalizer", "bind"})
		w.fail[verb] = std::deque<int>(1000, status);
	w.slurm_ends("ends", SK8_JOB_TIMEOUT);
	w.slurm_starts("starts", "n1", {1});
	w.run(Millis(25'000));
	w.fail["bind"].clear(); // only the finalizer is missing still
	w.slurm_starts("binds", "n1", {2});
	w.run(Millis(270'000));
	REQUIRE_FALSE(w.pod("ends").meta.deleting);
	const auto asked = w.calls.size();
	w.run(Millis(10'000));
	CHECK(w.calls.size() - asked <= 6); // long pauses by now

	w.fail.clear();
	w.controller->hurry();
	w.run(Millis(2'000));
	CHECK(w.pod("ends").meta.deleting);
	for (const char *name : {"starts", "binds"}) {
		CHECK(w.pod(name).node_name == "n1");
		CHECK(w.pod(name).meta.finalizers.size() == 1);
	}
	CHECK(w.jobs.size() == 3);
}

TEST_CASE("what goes on failing after an outage is not asked hot, however often the server comes back")
{
	World w;
	w.create_pod("p");
	w.run();
	w.fail["bind"] = std::deque<int>(10'000, 503);
	w.slurm_starts("p");
	w.run(Millis(20'000));
	const int before = w.count("bind");
	for (int i = 0; i < 20; i++) {
		w.controller->hurry();
		w.run(Millis(1'000));
	}
	CHECK(w.count("bind") - before <= 30);
}
