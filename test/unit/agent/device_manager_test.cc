// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/device_manager.h"

#include "lib/base/text.h"
#include "test/unit/agent/answers.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::agent;

static constexpr auto gpu = "nvidia.com/gpu";

TEST_CASE("the kubelet's device manager: what its checkpoint says of pods with devices, as kubelets before and after 1.20 write it")
{
	const DeviceManager manager = parse_device_manager(R"({"Data":{"PodDeviceEntries":[
		{"PodUID":"a","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"0":["GPU-2"],"-1":["GPU-1","GPU-2"]},"AllocResp":"Cg=="},
		{"PodUID":"a","ContainerName":"side","ResourceName":"nvidia.com/gpu","DeviceIDs":["GPU-0"],"AllocResp":null},
		{"PodUID":"b","ContainerName":"main","ResourceName":"example.com/hca","DeviceIDs":{"1":["mlx"]}},
		{"PodUID":"c","ContainerName":"main","ResourceName":"gone.com/x","DeviceIDs":{"1":["y"]}}],
		"RegisteredDevices":{"nvidia.com/gpu":["GPU-0","GPU-1","GPU-2","GPU-3"],"example.com/hca":[]}},"Checksum":7})");
	CHECK(manager.healthy == IdsByResource{{gpu, {"GPU-0", "GPU-1", "GPU-2", "GPU-3"}}, {"example.com/hca", {}}});
	CHECK(manager.pods == std::map<std::string, IdsByResource>{
				      {"a", {{gpu, {"GPU-0", "GPU-1", "GPU-2"}}}}, {"b", {{"example.com/hca", {"mlx"}}}}});
}

TEST_CASE("the kubelet's device manager: what plugins answered, of all containers of a pod together")
{
	const auto entry = [](const std::string &uid, const std::string &container, const std::string &answer) {
		return R"({"PodUID":")" + uid + R"(","ContainerName":")" + container + R"(","ResourceName":"rdma/hca","DeviceIDs":["x"],"AllocResp":")" +
		       base64_encode(answer) + R"("})";
	};
	const auto manager = parse_device_manager(R"({"Data":{"PodDeviceEntries":[)" + entry("a", "one", test::variable("A", "1") + test::device("", "/dev/x", "")) + "," +
						  entry("a", "two", test::variable("A", "2") + test::variable("B", "3")) + "," + entry("b", "one", "\xff") +
						  R"(],"RegisteredDevices":{"rdma/hca":["x"]}}})");
	CHECK(manager.answers == std::map<std::string, std::map<std::string, DeviceAnswer>>{{"a", {{"rdma/hca", {{{"A", "1"}, {"B", "3"}}, {"/dev/x"}}}}}});
	CHECK(manager.pods.size() == 2);
}

TEST_CASE("the kubelet's device manager: a file that makes no sense says nothing")
{
	for (const char *text : {"", "{", "[]", "7", R"({"Data":7})", R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":[]}})",
				 R"({"Data":{"PodDeviceEntries":[7,null,{"PodUID":7}],"RegisteredDevices":{}}})",
				 R"({"Data":{"RegisteredDevices":{"":["a"],"a b":["a"]}}})",
				 R"({"Data":{"PodDeviceEntries":[{"PodUID":"a","ResourceName":"r/r","DeviceIDs":["x"]}]}})"}) {
		INFO(text);
		CHECK(parse_device_manager(text) == DeviceManager{});
	}
	const auto odd = parse_device_manager(R"({"Data":{"RegisteredDevices":{"r/r":["good",7,"","a b","\u0000","\u00e4",")" + std::string(129, 'x') +
					      R"("]},"PodDeviceEntries":[{"PodUID":"a","ResourceName":"r/r","DeviceIDs":7}]}})");
	CHECK(odd.healthy == IdsByResource{{"r/r", {"good"}}});
	CHECK(odd.pods == std::map<std::string, IdsByResource>{{"a", {{"r/r", {}}}}});
}

TEST_CASE("the kubelet's device manager: of more than anybody has only the beginning counts")
{
	std::string entries, resources;
	for (int i = 0; i < 3000; i++) {
		const std::string n = std::to_string(i);
		entries += R"({"PodUID":")" + n + R"(","ResourceName":"r/0","DeviceIDs":[]},)";
		resources += R"("r/)" + n + R"(":[],)";
	}
	const auto many = parse_device_manager(R"({"Data":{"PodDeviceEntries":[)" + entries + R"({}],"RegisteredDevices":{)" + resources + R"("z":[]}}})");
	CHECK(many.healthy.size() == core::max_device_resources);
	CHECK(many.pods.size() == 1024);
}

TEST_CASE("what is told of devices: all that there are in order, and the positions of pods' there")
{
	DeviceOrder order("/nowhere");
	DeviceManager now{{{gpu, {"2", "10", "1"}}, {"no/devices", {}}}, {{"a", {{gpu, {"10", "1"}}}}, {"b", {{gpu, {"2"}}}}}};
	const core::NodeDevices told = devices_to_tell(now, {}, {{gpu, 3}}, order);
	CHECK(told == core::NodeDevices{{{gpu, {"1", "2", "10"}}}, {{"a", {{gpu, {0, 2}}}}, {"b", {{gpu, {1}}}}}});
	CHECK(*core::parse_devices(core::devices_text(told)) == told);
	CHECK(devices_to_tell({}, told, {{gpu, 3}}, order) == core::NodeDevices{}); // the plugin has gone

	SECTION("a device that falls ill keeps its number and those behind it theirs")
	{
		now.healthy[gpu].erase("1");
		now.healthy[gpu].erase("2");
		now.pods.erase("b");
		now.pods["a"][gpu] = {"10"};
		CHECK(devices_to_tell(now, told, {{gpu, 3}}, order) == core::NodeDevices{{{gpu, {"1", "2", "10"}}}, {{"a", {{gpu, {2}}}}}, {{gpu, {0, 1}}}});
	}
	SECTION("the kubelet starts again, and its plugin has not come yet")
	{
		now.healthy[gpu].clear();
		core::NodeDevices ill = told;
		ill.ill[gpu] = {0, 1, 2};
		CHECK(devices_to_tell(now, told, {{gpu, 0}}, order) == ill);
		CHECK(*core::parse_devices(core::devices_text(ill)) == ill);
	}
	SECTION("one was replaced")
	{
		now.healthy[gpu] = {"1", "2", "11"};
		now.pods.clear();
		CHECK(devices_to_tell(now, told, {{gpu, 3}}, order) == core::NodeDevices{{{gpu, {"1", "2", "11"}}}, {}});
	}
	SECTION("one is ill of which nobody has heard yet: numbers would be wrong")
	{
		const core::NodeDevices unknown{{{gpu, {}}}, {}};
		CHECK(devices_to_tell(now, {}, {{gpu, 4}}, order) == unknown);
		CHECK(*core::parse_devices(core::devices_text(unknown)) == unknown);
		now.healthy[gpu].insert("3");
		CHECK(devices_to_tell(now, unknown, {{gpu, 4}}, order).ids.at(gpu) == std::vector<std::string>{"1", "2", "3", "10"});
	}
	SECTION("more than can be told")
	{
		CHECK(devices_to_tell(now, {}, {{gpu, core::max_devices + 1}}, order) == core::NodeDevices{}); // whoever is ill
		for (std::size_t i = 0; i <= core::max_devices; i++)
			now.healthy[gpu].insert(std::to_string(i));
		CHECK(devices_to_tell(now, {}, {}, order) == core::NodeDevices{});
	}
}
