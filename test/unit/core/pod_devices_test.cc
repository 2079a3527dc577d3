// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pod_devices.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;
using Indices = std::vector<std::uint16_t>;

namespace {

constexpr auto gpu = "nvidia.com/gpu";
constexpr auto two_of_four = R"({"ids":{"nvidia.com/gpu":["a","b","c","d"]},"pods":{"p":{"nvidia.com/gpu":[3,1]}}})";

kube::Node node(const std::string &text, const std::map<std::string, std::string> &labels = {})
{
	kube::Node n;
	n.meta.name = "n1";
	n.meta.labels = labels;
	if (!text.empty())
		n.meta.annotations["slurm-k8s.io/devices"] = text;
	return n;
}

ResourceSettings gpus(std::vector<DeviceSettings> devices)
{
	return {gpu, "gpu", "", std::move(devices)};
}

} // namespace

TEST_CASE("devices of pods are Slurm's in the order in which the node tells them")
{
	PodDevices devices({});
	CHECK(!devices.tells("n1", gpu));
	CHECK(devices.read(node(two_of_four)));
	CHECK(!devices.read(node(two_of_four)));
	CHECK(devices.tells("n1", gpu));
	CHECK(!devices.tells("n1", "amd.com/gpu"));
	CHECK(!devices.tells("n2", gpu));
	CHECK(devices.find("n1", "p", gpu) == Indices{1, 3});
	CHECK(devices.find("n1", "other", gpu).empty());
	CHECK(devices.find("n1", "p", "amd.com/gpu").empty());
	CHECK(devices.gres_of("n1", "p", {{gpu, 2}, {"example.com/fpga", 1}}) == GresList{{"gpu", "", 2, {1, 3}}});
	CHECK(devices.gres_of("n1", "p", {{gpu, 3}}) == GresList{{"gpu", "", 3, {1, 3}}});
	CHECK(devices.gres_of("n1", "p", {{gpu, 1}}) == GresList{{"gpu", "", 1, {}}}); // it lies
	CHECK(devices.gres_of("n2", "p", {{gpu, 2}}) == GresList{{"gpu", "", 2, {}}});
	CHECK(devices.read(node("")));
	CHECK(!devices.tells("n1", gpu));
	CHECK(devices.find("n1", "p", gpu).empty());
}

TEST_CASE("settings know better which of Slurm's devices an ID is")
{
	PodDevices devices({gpus({{"host=n1", 0, {"d", "c", "b"}}, {"host=n2", 4, {}}, {"", 1, {}}})});
	CHECK(devices.read(node(two_of_four, {{"host", "n1"}})));
	CHECK(devices.find("n1", "p", gpu) == Indices{0, 2});
	CHECK(devices.read(node(two_of_four, {{"host", "n2"}})));
	CHECK(devices.find("n1", "p", gpu) == Indices{5, 7});
	CHECK(devices.read(node(two_of_four)));
	CHECK(devices.find("n1", "p", gpu) == Indices{2, 4});
	CHECK(devices.read(node(R"({"ids":{"nvidia.com/gpu":["a"]},"pods":{"p":{"nvidia.com/gpu":[0]}}})", {{"host", "n1"}})));
	CHECK(devices.find("n1", "p", gpu).empty()); // the list does not have it: nobody knows
	CHECK(devices.tells("n1", gpu));
}

TEST_CASE("another pod that has a device is found by Slurm's name and index of it, whichever resource it is")
{
	PodDevices devices({{"x/a100", "gpu", "a100", {{"", 2, {}}}}, {"x/h100", "gpu", "h100", {}}, {"x/nic", "nic", "", {}}});
	CHECK(devices.read(node(R"({"ids":{"x/a100":["a","b"],"x/h100":["c","d"],"x/nic":["e"]},
		"pods":{"p":{"x/a100":[1]},"q":{"x/h100":[0],"x/nic":[0]}}})")));
	CHECK(devices.find_holder("n1", "gpu", 3, "") == "p");
	CHECK(devices.find_holder("n1", "gpu", 0, "p") == "q");
	CHECK(devices.find_holder("n1", "nic", 0, "") == "q");
	CHECK(devices.find_holder("n1", "gpu", 3, "p").empty());
	CHECK(devices.find_holder("n1", "gpu", 1, "").empty());
	CHECK(devices.find_holder("n1", "nic", 3, "").empty());
	CHECK(devices.find_holder("n2", "gpu", 3, "").empty());
}

TEST_CASE("of devices of two plugins that have one index nobody knows which is Slurm's, and that is said")
{
	const std::string both = R"({"ids":{"x/a100":["a","b"],"x/h100":["c","d","e"]},"pods":{"p":{"x/a100":[1]},"q":{"x/h100":[0,2]}}})";
	PodDevices devices({{"x/a100", "gpu", "a100", {}}, {"x/h100", "gpu", "h100", {}}});
	CHECK(devices.read(node(both)));
	CHECK(devices.gres_of("n1", "p", {{"x/a100", 1}}) == GresList{{"gpu", "a100", 1, {}}});
	CHECK(devices.gres_of("n1", "q", {{"x/h100", 2}}) == GresList{{"gpu", "h100", 2, {2}}});
	CHECK(devices.find_holder("n1", "gpu", 1, "").empty());
	REQUIRE(devices.problems("n1").size() == 2);
	CHECK(devices.problems("n1")[1] == "index 1 of gpu is device b of x/a100 and device d of x/h100; which of Slurm's devices they are is not "
					   "known: say it by devices under resources in slurm-k8s.yaml");
	CHECK(devices.read(node("")));
	CHECK(devices.problems("n1").empty());
	PodDevices said({{"x/a100", "gpu", "a100", {}}, {"x/h100", "gpu", "h100", {{"", 2, {}}}}}), numbers({{"x/a100", "k8s", "a", {}}, {"x/h100", "k8s", "b", {}}});
	CHECK(said.read(node(both)));
	CHECK(said.problems("n1").empty());
	CHECK(numbers.read(node(both)));
	CHECK(numbers.problems("n1").empty());
}

TEST_CASE("a share says nothing of what Slurm counts, nor does what is no GRES")
{
	PodDevices devices({{"nvidia.com/shard", "shard", "", {}}});
	CHECK(devices.read(node(R"({"ids":{"nvidia.com/shard":["a::0","a::1"],"x/y":["z"]},"pods":{"p":{"nvidia.com/shard":[0],"x/y":[0]}}})")));
	CHECK(devices.gres_of("n1", "p", {{"nvidia.com/shard", 1}, {"x/y", 1}}) == GresList{{"shard", "", 1, {}}});
}

TEST_CASE("what a node says of devices may be anything")
{
	PodDevices devices({});
	for (const std::string text : {"x", "[]", "7", "{}", R"({"ids":{}})", R"({"ids":{},"pods":7})", R"({"ids":{"r":7},"pods":{}})",
				       R"({"ids":{"r":[7]},"pods":{}})", R"({"ids":{"r":[""]},"pods":{}})", R"({"ids":{"":["a"]},"pods":{}})",
				       R"({"ids":{"r":["a"]},"pods":{"p":7}})", R"({"ids":{"r":["a"]},"pods":{"p":{"s":[0]}}})",
				       R"({"ids":{"r":["a"]},"pods":{"p":{"r":[1]}}})", R"({"ids":{"r":["a"]},"pods":{"p":{"r":[-1]}}})",
				       R"({"ids":{"r":["a"]},"pods":{"p":{"r":["0"]}}})", R"({"ids":{"r":["a"]},"pods":{"p":{"r":7}}})",
				       R"({"ids":{"r":["a"]},"pods":{},"ill":7})", R"({"ids":{"r":["a"]},"pods":{},"ill":{"r":[1]}})",
				       R"({"ids":{"r":["a"]},"pods":{},"ill":{"s":[0]}})"}) {
		INFO(text);
		CHECK(!parse_devices(text));
		CHECK(devices.read(node(text)));
		CHECK(!devices.read(node(text)));
		CHECK(!devices.tells("n1", "r"));
	}
	std::string many;
	for (std::size_t i = 0; i <= max_devices; i++)
		many += "\"" + std::to_string(i) + "\",";
	CHECK(!parse_devices(R"({"ids":{"r":[)" + many + R"("x"]},"pods":{}})"));
	CHECK(!parse_devices(R"({"ids":{"r":[")" + std::string(129, 'x') + R"("]},"pods":{}})"));
	CHECK(!parse_devices(R"({"ids":{"r":["a"]},"pods":{")" + std::string(65, 'u') + R"(":{}}})"));
	CHECK(!parse_devices(std::string(300'000, ' ') + R"({"ids":{},"pods":{}})"));
	CHECK(parse_devices("")->ids.empty());
	CHECK(devices_text({}).empty());
	CHECK(devices_text({{}, {{"p", {}}}}).empty());
}
