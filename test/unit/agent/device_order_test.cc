// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/device_order.h"

#include "test/unit/agent/machine.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::agent;
using List = std::vector<std::string>;

TEST_CASE("devices are in the order of their IDs, numbers in these by value")
{
	CHECK(by_id({"10", "9", "0"}) == List{"0", "9", "10"});
	CHECK(by_id({"gpu10-a", "gpu2-b", "gpu2-a", "gpu"}) == List{"gpu", "gpu2-a", "gpu2-b", "gpu10-a"});
	CHECK(by_id({"0000:83:00.0", "0000:03:00.0", "0000:1b:00.0"}) == List{"0000:1b:00.0", "0000:03:00.0", "0000:83:00.0"});
	CHECK(by_id({"a1", "a01", "a001"}) == List{"a001", "a01", "a1"}); // any, but the same each time
	CHECK(by_id({}).empty());
}

TEST_CASE("GPUs of NVIDIA are in the order of their minor numbers")
{
	const Machine machine;
	const auto gpu = [&](const std::string &bus, const std::string &text) { machine.file("gpus/" + bus + "/information", text); };
	gpu("0000:3b:00.0", "Model: \t\t NVIDIA A100\nIRQ:   \t\t 90\nGPU UUID: \t GPU-c\nDevice Minor: \t 1\nGPU Excluded:\t No");
	gpu("0000:1b:00.0", "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-a\nDevice Minor: \t 10");
	gpu("0000:5e:00.0", "GPU UUID: \t GPU-b\nDevice Minor: \t 0\n");
	gpu("0000:86:00.0", "GPU UUID: \t GPU-?\nDevice Minor: \t none");
	gpu("0000:af:00.0", "GPU UUID");
	CHECK(nvidia_minors(machine.folder.path) == std::map<std::string, unsigned>{{"GPU-a", 10}, {"GPU-b", 0}, {"GPU-c", 1}});
	CHECK(nvidia_minors("/nowhere").empty());
	DeviceOrder order(machine.folder.path);
	CHECK(order({"GPU-a", "GPU-b", "GPU-c"}) == List{"GPU-b", "GPU-c", "GPU-a"});
	CHECK(order({"GPU-a", "GPU-b", "MIG-1"}) == List{"GPU-a", "GPU-b", "MIG-1"}); // the driver does not know all
}

TEST_CASE("GPUs that NVIDIA's driver does not know yet stay in the order in which they were, until it does")
{
	const Machine machine;
	const auto gpu = [&](const std::string &bus, const std::string &text) { machine.file("gpus/" + bus + "/information", text); };
	DeviceOrder order(machine.folder.path);
	const std::set<std::string> ids{"GPU-a", "GPU-b"};
	gpu("0", "GPU UUID: \t GPU-????????\nDevice Minor: \t 1");
	gpu("1", "GPU UUID: \t GPU-b\nDevice Minor: \t 0");
	CHECK(order(ids) == List{"GPU-a", "GPU-b"});
	CHECK(order(ids, {"GPU-b", "GPU-a"}) == List{"GPU-b", "GPU-a"});
	CHECK(order(ids, {"GPU-b", "GPU-c"}) == List{"GPU-a", "GPU-b"}); // of others
	gpu("0", "GPU UUID: \t GPU-a\nDevice Minor: \t 1");
	CHECK(order(ids, {"GPU-a", "GPU-b"}) == List{"GPU-b", "GPU-a"});
	gpu("0", "GPU UUID: \t GPU-????????\nDevice Minor: \t 1");
	CHECK(order(ids) == List{"GPU-b", "GPU-a"}); // a GPU that fails has its number still
}
