// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/kubelet_files.h"

#include <filesystem>

#include "test/unit/agent/machine.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::agent;

TEST_CASE("a file that is the same as before is not read again, one that was replaced is")
{
	const Machine machine;
	const std::string path = machine.folder.path + "/state";
	ReplacedFile file(path);
	CHECK(file.news() == ""); // there is none
	CHECK(!file.news());
	machine.file("state", "one");
	CHECK(file.news() == "one\n");
	CHECK(!file.news());
	machine.file("next", "two");
	std::filesystem::rename(machine.folder.path + "/next", path);
	CHECK(file.news() == "two\n");
	CHECK(!file.news());
	CHECK(file.reads() == 3);
	std::filesystem::remove(path);
	CHECK(file.news() == "");
}

TEST_CASE("the kubelet's files are read anew when they change, and what is gone counts no more")
{
	const Machine machine;
	KubeletFiles files(machine.folder.path, machine.folder.path + "/device-plugins");
	files.look();
	CHECK(files.cpus().policy.empty());
	CHECK(files.devices() == DeviceManager{});
	machine.file("cpu_manager_state", R"({"policyName":"static","entries":{"a":{"main":"1"}}})");
	machine.file("device-plugins/kubelet_internal_checkpoint", R"({"Data":{"RegisteredDevices":{"r/r":["x"]}}})");
	files.look();
	CHECK(files.cpus().pins());
	CHECK(files.devices().healthy == IdsByResource{{"r/r", {"x"}}});
	std::filesystem::remove(machine.folder.path + "/device-plugins/kubelet_internal_checkpoint");
	files.look();
	CHECK(files.cpus().pins());
	CHECK(files.devices() == DeviceManager{});
}

TEST_CASE("a kubelet's file that is there and cannot be read changes nothing, and is read as soon as it can be")
{
	const Machine machine;
	const std::string path = machine.folder.path + "/cpu_manager_state";
	ReplacedFile file(path);
	KubeletFiles files(machine.folder.path, machine.folder.path + "/device-plugins");
	const std::string text = R"({"policyName":"static","entries":{"a":{"main":"1"}}})";
	machine.file("cpu_manager_state", text);
	CHECK(file.news() == text + "\n");
	files.look();
	REQUIRE(files.cpus().pins());
	std::filesystem::resize_file(path, 9 << 20); // more than is read of any
	for (int i = 0; i < 2; i++) {
		CHECK(!file.news());
		files.look();
		CHECK(files.cpus().pins());
	}
	std::filesystem::resize_file(path, text.size());
	CHECK(file.news() == text);
}
