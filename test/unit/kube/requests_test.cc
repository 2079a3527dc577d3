// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <string>

#include "lib/kube/requests.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

PodRequest asked(const std::string &spec, const std::string &status = "{}")
{
	Result<Json> s = Json::parse(spec), t = Json::parse(status);
	REQUIRE(s.ok());
	REQUIRE(t.ok());
	return effective_request(*s, *t);
}

std::string container(const std::string &name, const std::string &requests,
		      const std::string &more = "")
{
	return R"({"name":")" + name + R"(","resources":{"requests":{)" + requests + "}}" + more + "}";
}

const std::string always = R"(,"restartPolicy":"Always")";

std::string spec(const std::string &containers, const std::string &init = "",
		 const std::string &more = "")
{
	return R"({"containers":[)" + containers + R"(],"initContainers":[)" + init + "]" + more + "}";
}

std::string cpu(const std::string &amount)
{
	return R"("cpu":")" + amount + "\"";
}

} // namespace

TEST_CASE("the effective request follows Kubernetes' rule for containers, init containers, "
	  "sidecars, overhead and pod-level resources")
{
	struct Row {
		const char *what;
		std::string spec;
		std::int64_t milli_cpu;
	};
	const Row rows[] = {
		{"nothing asked", spec(R"({"name":"a"})"), 0},
		{"one container", spec(container("a", cpu("250m"))), 250},
		{"containers add up", spec(container("a", cpu("250m")) + "," + container("b", cpu("1"))),
		 1250},
		{"a large init container counts alone",
		 spec(container("a", cpu("1")), container("i", cpu("3"))), 3000},
		{"a small init container does not count",
		 spec(container("a", cpu("1")), container("i", cpu("500m"))), 1000},
		{"two init containers run one after the other",
		 spec(container("a", cpu("1")),
		      container("i", cpu("2")) + "," + container("j", cpu("1500m"))),
		 2000},
		{"a sidecar runs beside the containers",
		 spec(container("a", cpu("1")), container("s", cpu("500m"), always)), 1500},
		{"an init container runs beside the sidecars before it",
		 spec(container("a", cpu("1")),
		      container("s", cpu("500m"), always) + "," + container("i", cpu("3"))),
		 3500},
		{"but not beside those after it",
		 spec(container("a", cpu("1")),
		      container("i", cpu("3")) + "," + container("s", cpu("500m"), always)),
		 3000},
		{"a restart policy other than Always is no sidecar",
		 spec(container("a", cpu("1")),
		      container("s", cpu("500m"), R"(,"restartPolicy":"OnFailure")")),
		 1000},
		{"overhead comes on top",
		 spec(container("a", cpu("1")), "", R"(,"overhead":{"cpu":"100m"})"), 1100},
		{"overhead comes on top of the init peak",
		 spec(container("a", cpu("1")), container("i", cpu("2")), R"(,"overhead":{"cpu":"100m"})"),
		 2100},
		{"pod-level requests replace the sum",
		 spec(container("a", cpu("1")), "", R"(,"resources":{"requests":{"cpu":"4"}})"), 4000},
		{"overhead comes on top of pod-level requests",
		 spec(container("a", cpu("1")), "",
		      R"(,"resources":{"requests":{"cpu":"4"}},"overhead":{"cpu":"1"})"),
		 5000},
		{"a pod-level limit counts if no container asks",
		 spec(R"({"name":"a"})", "", R"(,"resources":{"limits":{"cpu":"2"}})"), 2000},
		{"a pod-level limit does not replace what containers ask",
		 spec(container("a", cpu("1")), "", R"(,"resources":{"limits":{"cpu":"2"}})"), 1000},
		{"a container's limit stands for its missing request",
		 spec(R"({"name":"a","resources":{"limits":{"cpu":"3"}}})"), 3000},
		{"a container's request wins over its limit",
		 spec(R"({"name":"a","resources":{"limits":{"cpu":"3"},"requests":{"cpu":"1"}}})"), 1000},
		{"a number without quotes is a quantity", spec(container("a", R"("cpu":2)")), 2000},
	};
	for (const Row &row : rows) {
		INFO(row.what);
		PodRequest got = asked(row.spec);
		CHECK(got.total.milli_cpu == row.milli_cpu);
		CHECK(got.problem == "");
	}
}

TEST_CASE("memory and extended resources are counted beside cpu")
{
	PodRequest got = asked(spec(
		container("a", R"("cpu":"1","memory":"1Gi","nvidia.com/gpu":"2","hugepages-2Mi":"4Mi")") +
			"," + container("b", R"("memory":"512Mi","nvidia.com/gpu":"1")"),
		container("i", R"("memory":"4Gi")"),
		R"(,"resources":{"requests":{"nvidia.com/gpu":"9","hugepages-2Mi":"8Mi"}})"));
	CHECK(got.problem == "");
	CHECK(got.total.milli_cpu == 1000);
	CHECK(got.total.memory_bytes == std::int64_t(4) << 30);
	CHECK(got.total.extended.at("nvidia.com/gpu") == 3); // may not be named at pod level
	CHECK(got.total.extended.at("hugepages-2Mi") == 8 << 20);
	CHECK(got.has_cpu);
	CHECK(got.has_memory);
}

TEST_CASE("a request of zero is a request, overhead alone is none")
{
	CHECK(asked(spec(container("a", cpu("0")))).has_cpu);
	CHECK_FALSE(asked(spec(container("a", ""), "", R"(,"overhead":{"cpu":"1"})")).has_cpu);
	CHECK_FALSE(asked("{}").has_memory);
}

TEST_CASE("while a container is resized the larger of old and new counts")
{
	const std::string one = spec(container("a", cpu("1")));
	auto status = [](const std::string &now, const std::string &more = "") {
		return R"({"containerStatuses":[{"name":"a",)" + now + "}]" + more + "}";
	};
	CHECK(asked(one, status(R"("allocatedResources":{"cpu":"3"})")).total.milli_cpu == 3000);
	CHECK(asked(one, status(R"("resources":{"requests":{"cpu":"2"}})")).total.milli_cpu == 2000);
	CHECK(asked(one, status(R"("resources":{"requests":{"cpu":"500m"}})")).total.milli_cpu == 1000);
	// a new amount that will never be granted does not count
	CHECK(asked(one, status(R"("resources":{"requests":{"cpu":"500m"}})",
				R"(,"conditions":[{"type":"PodResizePending","status":"True",)"
				R"("reason":"Infeasible"}])"))
		      .total.milli_cpu == 500);
}

TEST_CASE("malformed, negative and absurd amounts become a problem, not a number")
{
	for (const char *amount : {"-1", "abc", "", "1e30", "9223372036854775807", "2000000"}) {
		INFO(amount);
		PodRequest got = asked(spec(container("a", cpu(amount))));
		CHECK(got.problem != "");
		CHECK(got.total.milli_cpu >= 0);
		CHECK(got.total.milli_cpu <= max_milli_cpu);
	}
	CHECK(asked(spec(container("a", R"("memory":"8Ei")"))).problem != "");
	CHECK(asked(spec(container("a", R"("memory":{"x":1})"))).problem != "");

	std::string many, kinds;
	for (int i = 0; i < 513; i++)
		many += (i ? "," : "") + container("c" + std::to_string(i), cpu("1"));
	CHECK(asked(spec(many)).problem != "");
	for (int i = 0; i < 65; i++)
		kinds += (i ? ",\"x" : "\"x") + std::to_string(i) + R"(":"1")";
	CHECK(asked(spec(container("a", kinds))).problem != "");
	// too many to be right, and yet it has them
	CHECK(asked(spec(many)).total.milli_cpu == 513'000);
	const PodRequest odd = asked(spec(container("a", kinds + R"(,"cpu":"8","nvidia.com/gpu":"1")")));
	CHECK(odd.total.milli_cpu == 8'000);
	CHECK(odd.total.extended.at("nvidia.com/gpu") == 1);
	// each amount possible, the sum not
	std::string full = container("a", cpu("900000")) + "," + container("b", cpu("900000"));
	CHECK(asked(spec(full)).problem != "");
	CHECK(asked(spec(full)).total.milli_cpu == max_milli_cpu);
}

TEST_CASE("nonsense in place of a spec asks for nothing")
{
	for (const char *text : {"null", "[]", "3", R"({"containers":{}})", R"({"containers":[null,1,[]]})",
				 R"({"containers":[{"resources":[]}],"overhead":"x"})"}) {
		INFO(text);
		PodRequest got = asked(text, text);
		CHECK(got.total.milli_cpu == 0);
		CHECK(got.total.extended.empty());
	}
}
