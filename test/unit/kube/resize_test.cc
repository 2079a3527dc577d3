// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <string>

#include "lib/kube/resize.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

const std::string initialized = R"({"type":"Initialized","status":"True"})";

// A pod of 3 CPUs whose spec was changed once. status: members after phase and startTime.
Resize seen(const std::string &status, const std::string &phase = "Running", const std::string &conditions = initialized)
{
	auto object = Json::parse(
		R"({"metadata":{"name":"a","uid":"u","generation":2},"spec":{"containers":[{"name":"c","resources":)"
		R"({"requests":{"cpu":"3","memory":"300Mi"}}}]},"status":{"phase":")" + phase +
		R"(","startTime":"2026-11-21T07:00:00Z","conditions":[)" + conditions + "]" + status + "}}");
	REQUIRE(object.ok());
	return decode_resize(*object);
}

const std::string has_two = R"(,"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"2","memory":"200Mi"}}])";

std::string pending(const std::string &reason, int observed)
{
	return initialized + R"(,{"type":"PodResizePending","status":"True","reason":")" + reason +
	       R"(","message":"no room","observedGeneration":)" + std::to_string(observed) + "}";
}

} // namespace

TEST_CASE("resize: what the kubelet has set aside is known when it has seen the spec")
{
	const Resize r = seen(R"(,"observedGeneration":2)" + has_two);
	CHECK(r.generation == 2);
	CHECK(r.asked.milli_cpu == 3000);
	CHECK(r.asked.memory_bytes == 300 << 20);
	REQUIRE(r.allocated);
	CHECK(r.allocated->milli_cpu == 2000);
	CHECK(r.allocated->memory_bytes == 200 << 20);
	CHECK_FALSE(seen(R"(,"observedGeneration":1)" + has_two).allocated);
	CHECK_FALSE(seen(has_two).allocated); // a kubelet that does not tell
	CHECK_FALSE(seen(has_two).observed);
	CHECK_FALSE(seen(R"(,"observedGeneration":2)" + has_two, "Failed").allocated);
	CHECK_FALSE(seen(R"(,"observedGeneration":2)", "Pending", "").allocated); // one that will refuse it
}

TEST_CASE("resize: of a container that does not run yet all is set aside that is not put off")
{
	CHECK(seen(R"(,"observedGeneration":2)", "Pending").allocated->milli_cpu == 3000);
	CHECK_FALSE(seen(R"(,"observedGeneration":1)", "Pending").allocated);
	CHECK_FALSE(seen(R"(,"observedGeneration":2)", "Pending", pending("Deferred", 2)).allocated);
}

TEST_CASE("resize: the kubelet's refusal counts for the spec that it is about")
{
	const std::string seen_it = R"(,"observedGeneration":2)" + has_two;
	CHECK(seen(seen_it, "Running", pending("Deferred", 2)).pending == Resize::Pending::deferred);
	CHECK(seen(seen_it, "Running", pending("Deferred", 2)).message == "no room");
	CHECK(seen(seen_it, "Running", pending("Infeasible", 2)).pending == Resize::Pending::infeasible);
	CHECK(seen(seen_it, "Running", pending("Deferred", 1)).pending == Resize::Pending::no);
	CHECK(seen(seen_it).pending == Resize::Pending::no);
}

TEST_CASE("resize: a kubelet may have what was requested before until it has come to the spec and has put nothing off")
{
	const auto unheard = [](const std::string &status, int generation = 2) {
		auto object = Json::parse(R"({"metadata":{"generation":)" + std::to_string(generation) + R"(},"status":{)" + status + "}}");
		REQUIRE(object.ok());
		return is_resize_unheard(*object);
	};
	const std::string running = R"({"name":"c","state":{"running":{}}})", waiting = R"({"name":"d","state":{"waiting":{}}})";
	CHECK(unheard(R"("observedGeneration":1)"));
	CHECK_FALSE(unheard(R"("observedGeneration":2)"));
	CHECK_FALSE(unheard(R"("phase":"Running")")); // it counts none
	CHECK_FALSE(unheard(R"("observedGeneration":1)", 0)); // nor does its API server
	const auto put_off = [&](const std::string &containers) {
		return R"("observedGeneration":2,"conditions":[)" + pending("Deferred", 2) + R"(],"containerStatuses":[)" + containers + "]";
	};
	CHECK_FALSE(unheard(put_off(running))); // what it has it tells
	CHECK(unheard(put_off(running + "," + waiting)));
	CHECK(unheard(put_off("")));
	CHECK_FALSE(unheard(R"("observedGeneration":2,"conditions":[)" + initialized + R"(],"containerStatuses":[)" + waiting + "]"));
}
