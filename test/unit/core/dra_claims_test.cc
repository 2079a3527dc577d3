// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/dra_claims.h"

#include <random>
#include <set>

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;

namespace {

constexpr auto driver = "gpu.example.com";

ResourceSettings resource(const std::string &device_class, const std::string &gres, const std::string &type)
{
	ResourceSettings r{"", gres, type};
	r.device_class = device_class;
	return r;
}

const std::vector<ResourceSettings> settings{resource("a100", "gpu", "a100"), resource("t4", "gpu", "t4"), resource("gpu", "gpu", ""),
					     resource("nic", "nic", "")};

// n1: two a100 (0, 1) on root 0 and 1, two t4 (2, 3) on root 1, and two nics.
DraInventory inventory()
{
	DraInventory out(settings);
	auto s = std::make_shared<kube::ResourceSlice>();
	s->meta.name = s->meta.uid = "s";
	s->driver = driver;
	s->pool = s->node = "n1";
	s->slices = 1;
	const auto add = [&](const std::string &name, std::int64_t index, const std::string &kind, std::int64_t root) {
		kube::Device d;
		d.name = name;
		d.attributes = {{"gpu.example.com/index", index}, {"gpu.example.com/kind", kind}, {"x.io/root", root}};
		s->devices.push_back(d);
	};
	add("gpu-0", 0, "a100", 0);
	add("gpu-1", 1, "a100", 1);
	add("gpu-2", 2, "t4", 1);
	add("gpu-3", 3, "t4", 1);
	add("nic-0", 0, "nic", 0);
	add("nic-1", 1, "nic", 1);
	std::vector<kube::DeviceClassPtr> classes;
	for (const char *name : {"a100", "t4", "gpu", "nic"}) {
		auto c = std::make_shared<kube::DeviceClass>();
		c->meta.name = c->meta.uid = name;
		const std::string kind = "device.attributes['gpu.example.com'].kind";
		c->selectors = {name == std::string("gpu") ? kind + " in ['a100', 't4']" : kind + " == '" + name + "'"};
		c->config = *Json::parse(R"([{"opaque":{"driver":"gpu.example.com","parameters":{"of":")" + std::string(name) + R"("}}},
			{"opaque":{"driver":"other.io","parameters":{}}}])");
		classes.push_back(c);
	}
	out.classes_replaced(classes);
	out.slices_replaced({s});
	return out;
}

kube::DeviceRequest request(const std::string &name, const std::string &device_class, std::int64_t count = 1, std::vector<std::string> selectors = {})
{
	return {name, device_class, std::move(selectors), count, ""};
}

kube::ResourceClaimPtr claim(const std::string &name, std::vector<kube::DeviceRequest> requests, std::vector<std::string> matching = {})
{
	auto c = std::make_shared<kube::ResourceClaim>();
	c->meta.ns = "ns";
	c->meta.name = name;
	c->meta.uid = "uid-" + name;
	c->meta.resource_version = "7";
	c->requests = std::move(requests);
	c->matching = std::move(matching);
	return c;
}

std::string objection(const Claims &claims, const std::string &node, const DraInventory &inventory)
{
	return ClaimPlaces(claims).objection(node, inventory);
}

std::string given(const Result<std::vector<ClaimDevices>> &r)
{
	if (!r)
		return r.error().message;
	std::string out;
	for (const auto &c : *r)
		for (const auto &d : c.devices)
			out += (out.empty() ? "" : " ") + c.claim->meta.name + "." + d.request + "=" + d.device;
	return out;
}

} // namespace

TEST_CASE("what claims are together in Slurm")
{
	CHECK(gres_request(*gres_of_claims({claim("c", {request("r", "a100", 2), request("s", "t4")}), claim("d", {request("r", "a100")})}, settings)) ==
	      "gpu:a100:3,gpu:t4:1");
	CHECK(gres_of_claims({claim("c", {})}, settings)->empty());
	CHECK(gres_of_claims({claim("c", {request("r", "unknown")})}, settings).error().message ==
	      "resource claim c, request r: which GRES of Slurm device class unknown is clusters[].resources in slurm-k8s.yaml does not say");
	auto odd = request("r", "a100");
	odd.odd = "it leaves a choice (firstAvailable)";
	CHECK(gres_of_claims({claim("c", {odd})}, settings).error().message ==
	      "resource claim c, request r: it leaves a choice (firstAvailable), which is not supported");
	auto wrong = std::make_shared<kube::ResourceClaim>(*claim("c", {}));
	wrong->problem = "it is odd";
	CHECK(gres_of_claims({wrong}, settings).error().message == "resource claim c: it is odd");
}

TEST_CASE("a node counts if whatever Slurm chooses there will do")
{
	const auto i = inventory();
	const std::string kind = "device.attributes['gpu.example.com'].kind", index = "device.attributes['gpu.example.com'].index";
	const auto why = [&](const kube::ResourceClaimPtr &c, const std::string &node = "n1") { return objection({c}, node, i); };
	CHECK(why(claim("c", {request("r", "a100", 2)})).empty());
	CHECK(why(claim("c", {request("r", "a100", 3)})) == "too few devices of class a100");
	CHECK(why(claim("c", {request("r", "a100")}), "n2") == "too few devices of class a100");
	CHECK(why(claim("c", {request("r", "a100", 1, {index + " < 2"})})).empty());
	CHECK(why(claim("c", {request("r", "a100", 1, {index + " < 1"})})) == "not all devices of class a100 there are as its selector wants");
	CHECK(why(claim("c", {request("r", "gpu", 1, {kind + " == 'a100'"})})) == "not all devices of class gpu there are as its selector wants");
	CHECK(why(claim("c", {request("r", "gpu", 1, {"device.attributes['x.io'].none == 1"})})) == "its selector fails: no such key: x.io/none");
	CHECK(why(claim("c", {request("r", "gpu", 1, {"1 + 1 == 2"})})) == "its selector is not understood: \"+\" is not supported");
	CHECK(why(claim("c", {request("r", "t4", 2)}, {"x.io/root"})).empty());
	CHECK(why(claim("c", {request("r", "a100", 2)}, {"x.io/root"})) == "not all of its devices have the same x.io/root");
	CHECK(why(claim("c", {request("r", "t4", 2)}, {"x.io/absent"})) == "not all of its devices have the same x.io/absent");
}

TEST_CASE("what the selectors of a pod's claims cost is bounded for all of them together")
{
	const auto i = inventory();
	std::string costly = "true"; // far below what one expression may cost
	for (int n = 0; n < 170; n++)
		costly += " && " + std::string(50, '!') + "true";
	Claims claims{claim("c", {request("r", "nic", 1, {costly})})};
	CHECK(objection(claims, "n1", i).empty());
	SECTION("on one node")
	{
		claims.push_back(claim("d", std::vector<kube::DeviceRequest>(20, request("r", "nic", 1, {costly}))));
		CHECK(objection(claims, "n1", i) == "its selector fails: it costs too much");
	}
	SECTION("on many")
	{
		ClaimPlaces places(claims);
		int good = 0;
		while (places.objection("n1", i).empty() && good < 1'000)
			good++;
		CHECK(good > 10);
		CHECK(good < 100);
	}
	SECTION("but an ordinary one may be asked of any number")
	{
		const Claims plain{claim("c", {request("r", "nic", 1, {"device.attributes['gpu.example.com'].kind == 'nic'"})})};
		ClaimPlaces places(plain);
		for (int node = 0; node < 10'000; node++)
			REQUIRE(places.objection("n1", i).empty());
	}
	SECTION("and their texts, before they are read")
	{
		for (int n = 0; n < 30; n++)
			claims.push_back(claim("d", {request("r", "nic", 1, {costly})}));
		CHECK(objection(claims, "n1", i) == "its selectors are longer than 256 KiB together");
	}
}

TEST_CASE("claims that want the same are one wish")
{
	const auto c = claim("c", {request("r", "a100", 2, {"true"})}, {"x.io/root"}), d = claim("d", {request("s", "a100", 2, {"true"})}, {"x.io/root"});
	CHECK(wishes_text({c}) == wishes_text({d}));
	std::set<std::string> texts;
	for (const Claims &claims : {Claims{c}, Claims{c, d}, Claims{claim("c", {request("r", "a100", 1, {"true"})}, {"x.io/root"})},
				     Claims{claim("c", {request("r", "t4", 2, {"true"})}, {"x.io/root"})},
				     Claims{claim("c", {request("r", "a100", 2, {"false"})}, {"x.io/root"})},
				     Claims{claim("c", {request("r", "a100", 2, {"true"})}, {})}, Claims{}})
		CHECK(texts.insert(wishes_text(claims)).second);
}

TEST_CASE("no device that its driver wants left alone is given to a claim")
{
	auto s = std::make_shared<kube::ResourceSlice>();
	s->meta.uid = "s";
	s->driver = driver;
	s->pool = s->node = "n1";
	s->slices = 1;
	s->devices.push_back({"nic-0", {}, {}, true, ""});
	auto c = std::make_shared<kube::DeviceClass>();
	c->meta.name = "nic";
	DraInventory i(settings);
	i.classes_replaced({c});
	i.slices_replaced({s});
	CHECK(objection({claim("c", {request("r", "nic")})}, "n1", i) == "a device of class nic there is tainted");
	CHECK(given(share_out({claim("c", {request("r", "nic")})}, {{"nic", "", 1, {0}}}, "n1", i)) ==
	      "the drivers of node n1 have other devices than Slurm's nic(0)");
}

TEST_CASE("claims get just the devices of the job")
{
	const auto i = inventory();
	const auto share = [&](const Claims &claims, const GresList &job) { return given(share_out(claims, job, "n1", i)); };
	CHECK(share({claim("c", {request("r", "a100")})}, {{"gpu", "a100", 1, {1}}}) == "c.r=gpu-1");
	CHECK(share({claim("c", {request("r", "a100", 2)})}, {{"gpu", "a100", 2, {0, 1}}}) == "c.r=gpu-0 c.r=gpu-1");
	CHECK(share({claim("c", {request("r", "a100"), request("s", "t4")}), claim("d", {request("r", "t4")})},
		    {{"gpu", "a100", 1, {1}}, {"gpu", "t4", 2, {2, 3}}}) == "c.r=gpu-1 c.s=gpu-2 d.r=gpu-3");
	// The first would take what only the second can have.
	CHECK(share({claim("c", {request("r", "gpu")}), claim("d", {request("r", "a100")})}, {{"gpu", "", 2, {0, 3}}}) == "c.r=gpu-3 d.r=gpu-0");
	CHECK(share({claim("c", {request("r", "a100"), request("n", "nic")})}, {{"gpu", "a100", 1, {0}}, {"nic", "", 1, {1}}}) ==
	      "c.r=gpu-0 c.n=nic-1");
	CHECK(share({claim("c", {request("r", "a100")})}, {{"gpu", "a100", 2, {0, 1}}}) == "the claims want 1 devices, and the job has gpu(0-1)");
	CHECK(share({claim("c", {request("r", "a100")})}, {{"gpu", "", 1, {3}}}) ==
	      "the drivers of node n1 have other devices than Slurm's gpu(3)");
	CHECK(share({claim("c", {request("r", "a100", 2)}, {"x.io/root"})}, {{"gpu", "a100", 2, {0, 1}}}) ==
	      "resource claim c: not all of its devices have the same x.io/root");
	CHECK(share({claim("c", {})}, {}).empty());
}

TEST_CASE("whatever is claimed, each of the job's devices goes to one request of its kind")
{
	const auto i = inventory();
	std::mt19937 random(1);
	for (int round = 0; round < 500; round++) {
		std::vector<std::uint16_t> all{0, 1, 2, 3}, has;
		std::ranges::shuffle(all, random);
		Claims claims;
		for (std::size_t n = 0; n < 1 + random() % 4; n++) {
			const bool any = random() % 2;
			claims.push_back(claim("c" + std::to_string(n), {request("r", any ? "gpu" : all[n] < 2 ? "a100" : "t4")}));
			has.push_back(all[n]);
		}
		std::ranges::shuffle(claims, random);
		std::ranges::sort(has);
		const auto out = share_out(claims, {{"gpu", "", has.size(), has}}, "n1", i);
		REQUIRE(out.ok());
		std::set<std::string> names;
		for (const auto &c : *out) {
			REQUIRE(c.devices.size() == 1);
			names.insert(c.devices[0].device);
			const std::string wanted = c.claim->requests[0].device_class;
			CHECK((wanted == "gpu" || (wanted == "a100") == (c.devices[0].device < "gpu-2")));
		}
		CHECK(names.size() == has.size());
	}
}

TEST_CASE("what is written into claims names their version, and Kubernetes' own scheduler would write it so")
{
	auto c = std::make_shared<kube::ResourceClaim>(*claim("c", {request("r", "a100"), request("s", "t4")}));
	c->meta.finalizers = {"a/b"};
	c->config = *Json::parse(R"([{"requests":["s","absent"],"opaque":{"driver":"gpu.example.com","parameters":{"of":"claim"}}},
		{"requests":["absent"],"opaque":{"driver":"gpu.example.com","parameters":{}}}])");
	CHECK_FALSE(is_protected(*c));
	CHECK(protecting_patch(*c).dump() ==
	      R"({"metadata":{"uid":"uid-c","resourceVersion":"7","finalizers":["a/b","resource.kubernetes.io/delete-protection"]}})");
	CHECK(freeing_patch(*c).dump() ==
	      R"({"metadata":{"uid":"uid-c","resourceVersion":"7"},"status":{"allocation":null,"reservedFor":null}})");
	const ClaimDevices wanted{c, {{"r", driver, "n1", "gpu-0"}, {"s", driver, "n1", "gpu-2"}}};
	CHECK(allocating_patch(wanted, "n1", "pod", "uid-p", inventory()).dump() ==
	      R"({"metadata":{"uid":"uid-c","resourceVersion":"7"},"status":{"allocation":{"devices":{"results":[)"
	      R"({"request":"r","driver":"gpu.example.com","pool":"n1","device":"gpu-0"},)"
	      R"({"request":"s","driver":"gpu.example.com","pool":"n1","device":"gpu-2"}],"config":[)"
	      R"({"source":"FromClass","requests":["r"],"opaque":{"driver":"gpu.example.com","parameters":{"of":"a100"}}},)"
	      R"({"source":"FromClass","requests":["s"],"opaque":{"driver":"gpu.example.com","parameters":{"of":"t4"}}},)"
	      R"({"source":"FromClaim","requests":["s"],"opaque":{"driver":"gpu.example.com","parameters":{"of":"claim"}}}]},)"
	      R"("nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}},)"
	      R"("reservedFor":[{"resource":"pods","name":"pod","uid":"uid-p"}]}})");
}
