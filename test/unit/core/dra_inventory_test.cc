// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/dra_inventory.h"

#include "lib/base/text.h"
#include "lib/core/dra.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;
using Indices = std::vector<std::uint16_t>;

namespace {

kube::Device device(const std::string &name, std::optional<std::int64_t> index = {}, const std::string &model = "a100")
{
	kube::Device d;
	d.name = name;
	d.attributes["gpu.example.com/model"] = model;
	if (index)
		d.attributes["gpu.example.com/index"] = *index;
	return d;
}

kube::ResourceSlicePtr slice(const std::string &name, std::vector<kube::Device> devices, std::int64_t generation = 1, std::int64_t of = 1,
			     const std::string &node = "n1")
{
	auto s = std::make_shared<kube::ResourceSlice>();
	s->meta.name = s->meta.uid = name;
	s->driver = "gpu.example.com";
	s->pool = node;
	s->node = node;
	s->generation = generation;
	s->slices = of;
	s->devices = std::move(devices);
	return s;
}

kube::DeviceClassPtr device_class(const std::string &name, std::vector<std::string> selectors)
{
	auto c = std::make_shared<kube::DeviceClass>();
	c->meta.name = c->meta.uid = name;
	c->selectors = std::move(selectors);
	return c;
}

ResourceSettings resource(const std::string &name, const std::string &type = "", const std::string &index = "")
{
	ResourceSettings r{"", "gpu", type};
	r.device_class = name;
	r.index = index;
	return r;
}

DraInventory inventory(std::vector<kube::Device> devices, const std::string &index = "")
{
	DraInventory out({resource("gpu.example.com", "", index)});
	out.classes_replaced({device_class("gpu.example.com", {"device.driver == 'gpu.example.com'"})});
	out.slices_replaced({slice("s", std::move(devices))});
	return out;
}

Indices indices(const DraInventory &of, const std::string &node = "n1", const std::string &name = "gpu.example.com")
{
	Indices out;
	for (const auto &d : of.find(node, name).devices)
		out.push_back(d.index);
	return out;
}

} // namespace

TEST_CASE("a device has the index that its driver says, or that its name ends with")
{
	CHECK(indices(inventory({device("a", 2), device("b", 0)})) == Indices{0, 2});
	CHECK(indices(inventory({device("gpu-10"), device("gpu-2")})) == Indices{2, 10});
	CHECK(indices(inventory({device("7")})) == Indices{7});
	CHECK(indices(inventory({device("gpu-0", 5)})) == Indices{5});
	auto minor = device("x");
	minor.attributes["gpu.example.com/minor"] = std::int64_t{4};
	CHECK(indices(inventory({minor})) == Indices{4});
	// by the settings, and nothing else then
	auto other = device("gpu-0", 5);
	other.attributes["slurm.org/slot"] = std::int64_t{1};
	CHECK(indices(inventory({other}, "slurm.org/slot")) == Indices{1});
	CHECK(indices(inventory({device("gpu-0")}, "slurm.org/slot")).empty());
}

TEST_CASE("NVIDIA's devices have their minor number as index, with each release of its driver")
{
	const auto of_nvidia = [](const std::map<std::string, kube::AttributeValue> &attributes) {
		DraInventory out({resource("gpu.nvidia.com")});
		out.classes_replaced({device_class("gpu.nvidia.com", {"device.driver == 'gpu.nvidia.com'"})});
		auto s = std::make_shared<kube::ResourceSlice>(*slice("s", {{"gpu-3", attributes, {}, false, ""}}));
		s->driver = "gpu.nvidia.com";
		out.slices_replaced({s});
		return indices(out, "n1", "gpu.nvidia.com");
	};
	CHECK(of_nvidia({}) == Indices{3});
	// until 25.3; index is NVML's, by PCI address
	CHECK(of_nvidia({{"gpu.nvidia.com/index", std::int64_t{0}}, {"gpu.nvidia.com/minor", std::int64_t{3}}}) == Indices{3});
}

TEST_CASE("devices without an index, two with one, and those that Slurm cannot count are left out and said")
{
	auto odd = device("gpu-4", 4);
	odd.odd = "it is a part of a device";
	const auto i = inventory({device("a", 0), device("b", 0), device("c", 1), device("no-number"), device("d", -1), device("e", 4096), odd});
	CHECK(indices(i) == Indices{1});
	const auto problems = join(i.find("n1", "gpu.example.com").problems, "\n");
	CHECK(i.find("n1", "gpu.example.com").twins == std::map<std::uint16_t, std::string>{
		{0, "index 0 of gpu is device a of gpu.example.com (deviceClass gpu.example.com) and device b of gpu.example.com (deviceClass "
		    "gpu.example.com); nobody gets them: name the attribute that is Slurm's index under resources in slurm-k8s.yaml"}});
	CHECK(problems.find("device no-number of gpu.example.com is left out: it has no index") != problems.npos);
	CHECK(problems.find("it is a part of a device") != problems.npos);
	std::vector<kube::Device> many;
	for (int n = 0; n < 100; n++)
		many.push_back(device("x" + std::string(1, static_cast<char>('a' + n % 26)), {}));
	CHECK(inventory(many).find("n1", "gpu.example.com").problems.size() == 16);
}

TEST_CASE("a name that more than one device of a pool has is nobody's: an allocation is by name")
{
	const auto i = inventory({device("gpu-0"), device("gpu-0"), device("b", 1), device("b", 2), device("gpu-3")});
	CHECK(indices(i) == Indices{3});
	const auto problems = join(i.find("n1", "gpu.example.com").problems, "\n");
	CHECK(problems.find("device gpu-0 of gpu.example.com is left out: more than one of pool n1 has that name") != problems.npos);
	CHECK(problems.find("device b of gpu.example.com is left out") != problems.npos);
	CHECK(i.place("gpu.example.com", "n1", "b")->gres.empty());

	SECTION("on two nodes, too, until one is gone")
	{
		DraInventory two({resource("gpu.example.com")});
		two.classes_replaced({device_class("gpu.example.com", {})});
		const auto of = [](const std::string &name, const std::string &node, std::int64_t generation, std::int64_t slices) {
			auto s = std::make_shared<kube::ResourceSlice>(*slice(name, {device("gpu-0")}, generation, slices));
			s->node = node;
			return s;
		};
		two.slices_replaced({of("s1", "n1", 1, 2), of("s2", "n2", 1, 2)});
		CHECK(indices(two, "n1").empty());
		CHECK(indices(two, "n2").empty());
		two.slice_changed(of("s2", "n2", 2, 1));
		CHECK(indices(two, "n2") == Indices{0});
	}
}

TEST_CASE("of devices of one GRES that have one index, be they of several classes and drivers, nobody knows which is Slurm's")
{
	ResourceSettings nic = resource("nic");
	nic.gres = "nic";
	DraInventory i({resource("a100", "a100"), resource("h100", "h100"), resource("all"), nic});
	i.classes_replaced({device_class("a100", {"device.driver == 'gpu.example.com'"}), device_class("h100", {"device.driver == 'other.example.com'"}),
			    device_class("all", {"device.driver == 'gpu.example.com'"}), device_class("nic", {"device.driver == 'nic.example.com'"})});
	auto of = [](const std::string &driver, std::vector<kube::Device> devices) {
		auto s = std::make_shared<kube::ResourceSlice>(*slice(driver, std::move(devices)));
		s->driver = driver;
		return s;
	};
	i.slices_replaced({of("gpu.example.com", {device("gpu-0"), device("gpu-1")}), of("other.example.com", {device("gpu-1"), device("gpu-2")}),
			   of("nic.example.com", {device("nic-1")})});
	CHECK(indices(i, "n1", "h100") == Indices{2});
	CHECK(indices(i, "n1", "a100") == Indices{0});
	CHECK(indices(i, "n1", "all") == Indices{0}); // the same devices as those of a100
	CHECK(indices(i, "n1", "nic") == Indices{1});
	std::string said;
	for (const char *name : {"a100", "h100", "all"}) {
		const auto &twins = i.find("n1", name).twins;
		REQUIRE(twins.size() == 1);
		said += twins.at(1);
	}
	CHECK(said.starts_with("index 1 of gpu is device gpu-1 of gpu.example.com (deviceClass a100) and device gpu-1 of other.example.com "
			       "(deviceClass h100); nobody gets them"));
	CHECK(said.rfind("index 1") == 0); // once
	CHECK(i.place("other.example.com", "n1", "gpu-1")->gres.empty());
	CHECK(i.place("other.example.com", "n1", "gpu-2")->gres == "gpu");
}

TEST_CASE("classes tell devices apart, one that is not understood has none, and one whose selector fails has not that one")
{
	DraInventory i({resource("a100", "a100"), resource("t4", "t4"), resource("odd"), resource("absent")});
	i.classes_replaced({device_class("a100", {"device.attributes['gpu.example.com'].model == 'a100'"}),
			    device_class("t4", {"device.attributes['gpu.example.com'].model == 't4'", "device.attributes['gpu.example.com'].index > 1"}),
			    device_class("odd", {"1 + 1 == 2"}), device_class("nobody's", {})});
	i.slices_replaced({slice("s", {device("a", 0), device("b", 1, "t4"), device("c", 2, "t4"), device("gpu-3", {}, "t4")})});
	CHECK(indices(i, "n1", "a100") == Indices{0});
	CHECK(indices(i, "n1", "t4") == Indices{2});
	CHECK(indices(i, "n1", "odd").empty());
	CHECK(i.class_problem("a100").empty());
	CHECK(i.class_problem("odd").starts_with("device class odd: its selector is not understood: "));
	CHECK(i.class_problem("absent") == "Kubernetes has no device class absent");
	CHECK(i.device_class("nobody's") == nullptr);
	CHECK(i.gres_of("t4") == "gpu");
	CHECK(i.gres_of("nobody's").empty());
	const auto place = i.place("gpu.example.com", "n1", "c");
	REQUIRE(place);
	CHECK(place->node == "n1");
	CHECK(place->gres == "gpu");
	CHECK(place->type == "t4");
	CHECK(place->index == 2);
	CHECK(i.place("gpu.example.com", "n1", "gpu-3")->gres.empty());
	CHECK_FALSE(i.place("gpu.example.com", "n1", "z"));
	CHECK_FALSE(i.place("other.io", "n1", "a"));
	i.class_changed(device_class("a100", {"false"}));
	CHECK(indices(i, "n1", "a100").empty());
	i.class_removed(device_class("t4", {}));
	CHECK(indices(i, "n1", "t4").empty());
}

TEST_CASE("a pool counts when all of its newest generation is there, and until then as it was")
{
	auto i = inventory({device("a", 0)});
	i.slice_changed(slice("s2", {device("a", 1)}, 2, 2));
	CHECK(indices(i) == Indices{0});
	i.slice_changed(slice("s3", {device("b", 2)}, 2, 2));
	CHECK(indices(i) == Indices{1, 2});
	i.slice_removed(slice("s", {}));
	CHECK(indices(i) == Indices{1, 2});
	i.slice_removed(slice("s2", {}));
	CHECK(indices(i) == Indices{1, 2});
	i.slice_removed(slice("s3", {}));
	CHECK(indices(i).empty());
	CHECK_FALSE(i.place("gpu.example.com", "n1", "a"));
	i.slice_removed(slice("s3", {}));
}

TEST_CASE("a driver that writes its slice again, with more to come, keeps what it had until then")
{
	auto i = inventory({device("a", 0)});
	i.slice_changed(slice("s", {device("a", 3)}, 2, 2));
	CHECK(indices(i) == Indices{0});
	i.slice_changed(slice("s2", {device("b", 4)}, 2, 2));
	CHECK(indices(i) == Indices{3, 4});
}

TEST_CASE("only nodes whose devices may have changed are named, and all where a class did")
{
	using Nodes = std::set<std::string>;
	auto i = inventory({device("a", 0)});
	CHECK(i.take_changed().all);
	CHECK_FALSE(i.take_changed().any());
	i.slice_changed(slice("other", {device("a", 0)}, 1, 1, "n2"));
	CHECK(i.take_changed().nodes == Nodes{"n2"});
	i.slice_changed(slice("s", {device("a", 1)}));
	CHECK(indices(i) == Indices{1});
	CHECK(i.take_changed().nodes == Nodes{"n1"});
	i.slice_removed(slice("s", {}));
	CHECK(indices(i).empty());
	CHECK(i.take_changed().nodes == Nodes{"n1"});
	i.slice_changed(slice("s", {device("a", 1)}));
	i.slice_changed(slice("s", {device("a", 1)}, 1, 1, "n3"));
	CHECK(i.take_changed().nodes == Nodes{"n1", "n3"});
	i.class_changed(device_class("gpu.example.com", {"false"}));
	CHECK(i.take_changed().all);
	CHECK(indices(i, "n3").empty());
}

TEST_CASE("a slice that moves to another node or pool leaves nothing where it was")
{
	auto i = inventory({device("a", 0)});
	i.slice_changed(slice("s", {device("a", 0)}, 1, 1, "n2"));
	CHECK(indices(i).empty());
	CHECK(indices(i, "n2") == Indices{0});
	auto nobodys = std::make_shared<kube::ResourceSlice>(*slice("t", {device("x", 1)}));
	nobodys->node = "";
	nobodys->pool = "net";
	i.slice_changed(nobodys);
	CHECK(indices(i, "").empty());
	CHECK(i.place("gpu.example.com", "net", "x")->gres.empty());
}

TEST_CASE("what pods' claims have is known with its devices, and other claims of them")
{
	Dra dra({resource("gpu.example.com")});
	CHECK(dra.wanted());
	CHECK_FALSE(dra.synced());
	dra.inventory.classes_replaced({device_class("gpu.example.com", {})});
	dra.inventory.slices_replaced({slice("s", {device("a", 0), device("b", 1)})});
	const auto claim = [](const std::string &name, const std::string &device, const std::string &pod, const std::string &rv = "1") {
		auto c = std::make_shared<kube::ResourceClaim>();
		c->meta.ns = "ns";
		c->meta.name = name;
		c->meta.uid = "uid-" + name;
		c->meta.resource_version = rv;
		c->allocated = true;
		c->devices = {{"r", "gpu.example.com", "n1", device}};
		c->reserved_for = {pod};
		return c;
	};
	dra.claims_replaced({claim("c", "a", "p")});
	CHECK(dra.synced());
	const std::vector<kube::PodResourceClaim> claims{{"x", "c"}, {"y", "absent"}, {"z", ""}};
	CHECK(dra.held("ns", claims, "p", "n1") == GresList{{"gpu", "", 1, {0}}});
	CHECK(dra.held("ns", claims, "q", "n1").empty());
	CHECK(dra.held("ns", claims, "p", "n2").empty());
	CHECK(dra.held("other", claims, "p", "n1").empty());
	CHECK(dra.holder({"r", "gpu.example.com", "n1", "a"}, *claim("d", "a", "q")) == "ns/c");
	CHECK(dra.holder({"r", "gpu.example.com", "n1", "a"}, *claim("c", "a", "p")).empty());
	CHECK(dra.holder({"r", "gpu.example.com", "n1", "b"}, *claim("d", "b", "q")).empty());
	auto watcher = claim("w", "b", "m");
	watcher->devices[0].shared = true;
	CHECK(dra.claim_changed(watcher));
	CHECK(dra.holder({"r", "gpu.example.com", "n1", "b"}, *claim("d", "b", "q")).empty());
	CHECK(dra.held("ns", {{"x", "w"}}, "m", "n1").empty());
	CHECK(dra.claim_changed(claim("c", "b", "p", "5")));
	CHECK_FALSE(dra.claim_changed(claim("c", "a", "p", "4")));
	CHECK(dra.holder({"r", "gpu.example.com", "n1", "a"}, *claim("d", "a", "q")).empty());
	CHECK(dra.holder({"r", "gpu.example.com", "n1", "b"}, *claim("d", "b", "q")) == "ns/c");
	dra.inventory.slice_removed(slice("s", {}));
	CHECK(dra.held("ns", claims, "p", "n1").empty());
	dra.claim_removed(claim("c", "b", "p"));
	CHECK(dra.find("ns", "c") == nullptr);
	CHECK(dra.holder({"r", "gpu.example.com", "n1", "b"}, *claim("d", "b", "q")).empty());
	CHECK_FALSE(Dra({}).wanted());
	CHECK(Dra({}).synced());
}
