// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/dra_objects.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

Json parse(const std::string &text)
{
	auto out = Json::parse(text);
	REQUIRE(out.ok());
	return *out;
}

ResourceSlicePtr slice(const std::string &spec)
{
	return *decode_resource_slice(parse(R"({"metadata":{"name":"s","uid":"u"},"spec":)" + spec + "}"));
}

ResourceClaimPtr claim(const std::string &devices, const std::string &status = "{}")
{
	return *decode_resource_claim(parse(R"({"metadata":{"namespace":"a","name":"c","uid":"u","resourceVersion":"7"},
		"spec":{"devices":)" + devices + R"(},"status":)" + status + "}"));
}

std::string one_request(const std::string &more)
{
	return R"({"requests":[{"name":"r","exactly":{"deviceClassName":"gpu.example.com")" + (more.empty() ? "" : "," + more) + "}}]}";
}

} // namespace

TEST_CASE("a resource slice is decoded: attributes by full name, taints, what Slurm cannot count")
{
	const auto s = slice(R"({"driver":"gpu.example.com","nodeName":"n1","pool":{"name":"p","generation":3,"resourceSliceCount":2},"devices":[
		{"name":"gpu-0","attributes":{"index":{"int":4},"other.org/uuid":{"string":"GPU-1"},"ecc":{"bool":true},
		 "driverVersion":{"version":"1.2.3"}},"capacity":{"memory":{"value":"40Gi"}}},
		{"name":"gpu-1","taints":[{"key":"k","effect":"NoSchedule"}]},
		{"name":"gpu-2","taints":[{"key":"k","effect":"None"}]},
		{"name":"mig","consumesCounters":[{"counterSet":"x"}]},
		{"name":"shared","allowMultipleAllocations":true},
		{"name":"late","bindingConditions":["attached"]},
		{"name":"far","allNodes":true}]})");
	CHECK(s->problem.empty());
	CHECK(s->driver == "gpu.example.com");
	CHECK(s->node == "n1");
	CHECK(s->pool == "p");
	CHECK(s->generation == 3);
	CHECK(s->slices == 2);
	REQUIRE(s->devices.size() == 7);
	const auto &gpu = s->devices[0].attributes;
	CHECK(gpu.at("gpu.example.com/index") == AttributeValue(std::int64_t{4}));
	CHECK(gpu.at("other.org/uuid") == AttributeValue(std::string("GPU-1")));
	CHECK(gpu.at("gpu.example.com/ecc") == AttributeValue(true));
	CHECK(gpu.at("gpu.example.com/driverVersion") == AttributeValue(Version{"1.2.3"}));
	CHECK(s->devices[0].capacity.at("gpu.example.com/memory") == std::int64_t{40} * 1024 * 1024 * 1024 * 1000);
	CHECK(s->devices[0].odd.empty());
	CHECK_FALSE(s->devices[0].tainted);
	CHECK(s->devices[1].tainted);
	CHECK_FALSE(s->devices[2].tainted);
	for (int i = 3; i < 7; i++)
		CHECK_FALSE(s->devices[i].odd.empty());
}

TEST_CASE("an odd resource slice says what is odd, and none is so odd that it is no slice")
{
	CHECK_FALSE(slice("{}")->problem.empty());
	CHECK_FALSE(slice(R"({"driver":"d","pool":{}})")->problem.empty());
	CHECK_FALSE(slice(R"({"driver":"d","pool":{"name":"p"},"devices":[{}]})")->problem.empty());
	CHECK(slice(R"({"driver":"d","pool":{"name":"p"},"devices":{}})")->devices.empty());
	std::string many;
	for (int i = 0; i < 129; i++)
		many += (i ? "," : "") + std::string(R"({"name":"d)") + std::to_string(i) + "\"}";
	CHECK_FALSE(slice(R"({"driver":"d","pool":{"name":"p"},"devices":[)" + many + "]}")->problem.empty());
	// of a type that the API does not have: it is not there
	const auto s = slice(R"({"driver":"d","pool":{"name":"p"},"devices":[{"name":"x","attributes":{"a":{"int":"1"},"b":7,"c":{}}}]})");
	CHECK(s->problem.empty());
	CHECK(s->devices[0].attributes.empty());
	CHECK_FALSE(decode_resource_slice(parse(R"({"kind":"Pod","metadata":{"name":"s","uid":"u"}})")).ok());
	CHECK_FALSE(decode_resource_slice(parse("[]")).ok());
}

TEST_CASE("a claim is decoded: what it wants, what it has, who has it")
{
	const auto c = claim(one_request(R"("count":2,"selectors":[{"cel":{"expression":"true"}}])"),
			     R"({"allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"gpu-0"},
			        {"request":"r","driver":"d","pool":"p","device":"gpu-1","adminAccess":true}]}},
			        "reservedFor":[{"resource":"pods","name":"x","uid":"u1"},{"apiGroup":"b.io","resource":"jobs","name":"x","uid":"u2"}]})");
	CHECK(c->problem.empty());
	REQUIRE(c->requests.size() == 1);
	CHECK(c->requests[0].device_class == "gpu.example.com");
	CHECK(c->requests[0].count == 2);
	CHECK(c->requests[0].selectors == std::vector<std::string>{"true"});
	CHECK(c->requests[0].odd.empty());
	CHECK(c->allocated);
	REQUIRE(c->devices.size() == 2);
	CHECK(c->devices[0] == AllocatedDevice{"r", "d", "p", "gpu-0"});
	CHECK(c->devices[1].shared);
	CHECK(c->reserved_for == std::vector<std::string>{"u1"});
	CHECK(c->reserved_for_other);
	CHECK(claim(one_request(""))->requests[0].count == 1);
	CHECK_FALSE(claim(one_request(""))->allocated);
}

TEST_CASE("what of a claim cannot be honoured is said")
{
	for (const char *more : {R"("adminAccess":true)", R"("allocationMode":"All")", R"("count":0)", R"("count":-1)", R"("count":33)",
				 R"("capacity":{"requests":{"memory":"1Gi"}})"})
		CHECK_FALSE(claim(one_request(more))->requests[0].odd.empty());
	CHECK(claim(one_request(R"("allocationMode":"ExactCount")"))->requests[0].odd.empty());
	CHECK_FALSE(claim(R"({"requests":[{"name":"r","firstAvailable":[{"name":"a","deviceClassName":"x"}]}]})")->requests[0].odd.empty());
	CHECK_FALSE(claim(R"({"requests":[],"constraints":[{"distinctAttribute":"a/b"}]})")->problem.empty());
	CHECK(claim(R"({"requests":[],"constraints":[{"matchAttribute":"a/b"}]})")->matching == std::vector<std::string>{"a/b"});
	CHECK_FALSE(claim(one_request(R"("selectors":[{"future":{}}])"))->problem.empty());
	CHECK_FALSE(claim(one_request(R"("selectors":[{"cel":{"expression":")" + std::string(10241, 'x') + R"("}}])"))->problem.empty());
}

TEST_CASE("a device class is decoded")
{
	const auto c = *decode_device_class(parse(R"({"metadata":{"name":"gpu.example.com","uid":"u"},"spec":{
		"selectors":[{"cel":{"expression":"device.driver == 'x'"}}],"config":[{"opaque":{"driver":"x","parameters":{"a":1}}}]}})"));
	CHECK(c->problem.empty());
	CHECK(c->selectors == std::vector<std::string>{"device.driver == 'x'"});
	CHECK(c->config.size() == 1);
}

TEST_CASE("of an object of which only the name could be read nothing is known, which is not that there is nothing")
{
	const Json named = *Json::parse(R"({"metadata":{"name":"a","namespace":"ns","uid":"u"}})");
	CHECK((*decode_resource_slice(named))->problem == "it has no spec");
	CHECK((*decode_resource_claim(named))->problem == "it has no spec");
	CHECK((*decode_device_class(named))->problem == "it has no spec");
}
