// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <string>

#include "lib/kube/objects.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

Result<NodePtr> node(const std::string &text)
{
	Result<Json> j = Json::parse(text);
	REQUIRE(j.ok());
	return decode_node(*j);
}

} // namespace

TEST_CASE("a node is decoded with its taints, readiness and allocatable amounts")
{
	auto n = node(R"({"kind":"Node","metadata":{"name":"n1","uid":"u-1","resourceVersion":"77",
		"labels":{"zone":"a"}},"spec":{"unschedulable":true,"taints":[
		{"key":"k","value":"v","effect":"NoSchedule"},{"key":"e","effect":"NoExecute"}]},
		"status":{"allocatable":{"cpu":"7900m","memory":"31Gi","pods":"110","nvidia.com/gpu":"4"},
		"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}]}})");
	REQUIRE(n.ok());
	const Node &got = **n;
	CHECK(got.meta.name == "n1");
	CHECK(got.meta.resource_version == "77");
	CHECK(got.meta.labels.at("zone") == "a");
	CHECK(got.unschedulable);
	REQUIRE(got.taints.size() == 2);
	CHECK(got.taints[0].value == "v");
	CHECK(got.taints[1].effect == TaintEffect::no_execute);
	CHECK(got.ready);
	CHECK(got.allocatable.milli_cpu == 7900);
	CHECK(got.allocatable.memory_bytes == std::int64_t(31) << 30);
	CHECK(got.allocatable.extended.at("nvidia.com/gpu") == 4);
	CHECK_FALSE(got.allocatable.extended.contains("pods"));
	CHECK(got.allocatable_pods == 110);
	CHECK_FALSE(got.strict_groups);
}

TEST_CASE("a node whose runtime can leave an image's groups out says so")
{
	for (const auto &[features, says] : {std::pair(R"({"supplementalGroupsPolicy":true})", true),
					     std::pair(R"({"supplementalGroupsPolicy":false})", false), std::pair("7", false)})
		CHECK((*node(R"({"metadata":{"name":"n1","uid":"u"},"status":{"features":)" + std::string(features) + "}}"))->strict_groups == says);
}

TEST_CASE("who has cordoned a node is the field manager of that field")
{
	const auto cordoned_by = [](const std::string &managers, const char *value = "true") {
		auto n = node(R"({"metadata":{"name":"n1","uid":"u","managedFields":)" + managers +
			      R"(},"spec":{"unschedulable":)" + value + "}}");
		REQUIRE(n.ok());
		return (*n)->cordoned_by;
	};
	const std::string kubelet = R"({"manager":"kubelet","fieldsV1":{"f:metadata":{"f:labels":{}},"f:spec":{"f:taints":{}}}})";
	const std::string admin = R"({"manager":"kubectl-cordon","operation":"Update","fieldsV1":{"f:spec":{"f:unschedulable":{}}}})";
	CHECK(cordoned_by("[" + kubelet + "," + admin + "]") == "kubectl-cordon");
	CHECK(cordoned_by("[" + kubelet + "," + admin + "]", "false").empty());
	for (const char *none : {"[]", "null", "7", "[7]", R"([{"manager":7,"fieldsV1":{"f:spec":{"f:unschedulable":{}}}}])",
				 R"([{"manager":"m","fieldsV1":{"f:spec":{"f:unschedulable":1}}}])"})
		CHECK(cordoned_by(none).empty());
	CHECK(cordoned_by("[" + kubelet + "]").empty());
}

TEST_CASE("a node that is not ready, or does not say so, is not ready")
{
	for (const char *conditions : {"[]", R"([{"type":"Ready","status":"False"}])",
				       R"([{"type":"Ready","status":"Unknown"}])", "null"}) {
		INFO(conditions);
		auto n = node(R"({"metadata":{"name":"n","uid":"u"},"status":{"conditions":)" +
			      std::string(conditions) + "}}");
		REQUIRE(n.ok());
		CHECK_FALSE((*n)->ready);
	}
}

TEST_CASE("what is no node is an error")
{
	for (const char *text : {"null", "[]", R"({"kind":"Pod","metadata":{"name":"n","uid":"u"}})",
				 R"({"metadata":{"name":"n"}})", R"({"metadata":{"uid":"u"}})"}) {
		INFO(text);
		CHECK_FALSE(node(text).ok());
	}
}
