// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/gres_conf.h"

#include <fstream>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::tools;

namespace {

const std::string first = "# Written by slurm-k8s gres --write, which replaces it as a whole: change nothing here.\n";

Json answer(const std::string &nodes, const std::string &state = "running")
{
	auto parsed = Json::parse(R"({"clusters": [{"name": "c", "state": ")" + state + R"(", "nodes": [)" + nodes + "]}]}");
	REQUIRE(parsed);
	return *parsed;
}

// Of one node, without the first line. former: what was written before.
std::string lines(const std::string &kubernetes, const std::string &slurm, const std::string &former = "")
{
	auto conf = gres_conf(answer(R"({"node": "n1", "in_slurm": true, "gres": [)" + kubernetes + R"(], "slurm": [)" + slurm + "]}"), former);
	REQUIRE(conf);
	REQUIRE(conf->text.starts_with(first));
	return conf->text.substr(first.size());
}

std::string gpu(const std::string &resource, const std::string &type, int count)
{
	return R"({"kubernetes": ")" + resource + R"(", "name": "gpu", "type": ")" + type + R"(", "count": )" + std::to_string(count) + "}";
}

// Of a driver: an index and the sockets' cores of each device.
std::string driver(const std::string &type, const std::vector<std::pair<int, std::string>> &devices, const std::string &file = "/dev/nvidia%d")
{
	std::string list;
	for (const auto &[index, cores] : devices)
		list += (list.empty() ? "" : ",") + (R"({"index": )" + std::to_string(index)) + R"(, "socket_cores": ")" + cores + "\"}";
	return R"({"kubernetes": "deviceClass gpu.nvidia.com", "name": "gpu", "type": ")" + type + R"(", "count": )" + std::to_string(devices.size()) +
	       R"(, "file": ")" + file + R"(", "devices": [)" + list + "]}";
}

} // namespace

TEST_CASE("gres.conf: a line for what both sides have, with files where it is known which they are")
{
	const std::string nvidia = "nvidia.com/gpu";
	CHECK(lines(gpu(nvidia, "a100", 4), gpu("", "a100", 4)) == "NodeName=n1 Name=gpu Type=a100 Count=4 File=/dev/nvidia[0-3]\n");
	CHECK(lines(gpu(nvidia, "", 1), gpu("", "", 1)) == "NodeName=n1 Name=gpu Count=1 File=/dev/nvidia0\n");
	CHECK(lines(gpu("amd.com/gpu", "mi300", 2), gpu("", "", 2)) == "NodeName=n1 Name=gpu Type=mi300 Count=2 File=/dev/dri/renderD[128-129]\n");
	CHECK(lines(gpu("gpu.intel.com/xe", "xe", 2), gpu("", "xe", 2)) == "NodeName=n1 Name=gpu Type=xe Count=2 File=/dev/dri/renderD[128-129]\n");
	CHECK(lines(gpu("gpu.intel.com/i915", "i915", 1), gpu("", "i915", 1)) == "NodeName=n1 Name=gpu Type=i915 Count=1 File=/dev/dri/renderD128\n");
	CHECK(lines(gpu("nvidia.com/mig-1g.5gb", "1g.5gb", 7), gpu("", "1g.5gb", 7)) == "NodeName=n1 Name=gpu Type=1g.5gb Count=7\n");
	const std::string counted = R"({"kubernetes": "rdma/hca", "name": "rdma", "type": "hca", "count": 4},
		{"kubernetes": "hugepages-2Mi", "name": "hugepages", "type": "2Mi", "count": 512})";
	CHECK(lines(counted, counted) == "NodeName=n1 Name=hugepages Type=2Mi Count=512\nNodeName=n1 Name=rdma Type=hca Count=4\n");
	CHECK(lines(gpu("nvidia.com/gpu.shared", "a100", 4), gpu("", "a100", 4)) == "NodeName=n1 Name=gpu Type=a100 Count=4\n");
	CHECK(lines(gpu(nvidia, "a100", 5), gpu("", "a100", 4)) == "NodeName=n1 Name=gpu Type=a100 Count=5 File=/dev/nvidia[0-4]\n");
}

TEST_CASE("gres.conf: of devices that only Kubernetes knows Slurm looks for no plugin")
{
	const std::string begin = R"({"kubernetes": "rdma/hca", "name": "k8s", "type": "rdma_hca", "count": )";
	CHECK(lines(begin + "2}", begin + "2}") == "NodeName=n1 Name=k8s Type=rdma_hca Count=2 Flags=CountOnly\n");
}

TEST_CASE("gres.conf: never fewer than slurm.conf has, or other types, for which Slurm would drain the node")
{
	const std::string nvidia = "nvidia.com/gpu", other = "# n1: slurm.conf has other gpu than Kubernetes; slurm-k8s gres shows both\n";
	CHECK(lines(gpu(nvidia, "a100", 3), gpu("", "a100", 4)) == "NodeName=n1 Name=gpu Type=a100 Count=4 File=/dev/nvidia[0-3]\n");
	CHECK(lines(gpu(nvidia, "a100", 3), gpu("", "", 4)) == "NodeName=n1 Name=gpu Type=a100 Count=4 File=/dev/nvidia[0-3]\n");
	CHECK(lines(gpu(nvidia, "a100", 3), gpu("", "v100", 3)) == other);
	CHECK(lines(gpu("x/a", "a100", 1) + "," + gpu("x/b", "h100", 1), gpu("", "", 3)) == other);
	CHECK(lines(gpu("x/a", "a100", 1) + "," + gpu("x/b", "h100", 1), gpu("", "", 2)) ==
	      "NodeName=n1 Name=gpu Type=a100 Count=1\nNodeName=n1 Name=gpu Type=h100 Count=1\n");
	CHECK(lines(gpu(nvidia, "a100", 3), "") == "# n1: Kubernetes has gpu, slurm.conf gives the node none\n");
}

TEST_CASE("gres.conf: a node whose device plugin is down for the moment keeps the lines of what slurm.conf gives it")
{
	const std::string nvidia = "nvidia.com/gpu";
	CHECK(lines(gpu(nvidia, "a100", 0), gpu("", "a100", 4)) == "NodeName=n1 Name=gpu Type=a100 Count=4 File=/dev/nvidia[0-3]\n");
	CHECK(lines(gpu(nvidia, "a100", 0), gpu("", "", 4)) == "NodeName=n1 Name=gpu Type=a100 Count=4 File=/dev/nvidia[0-3]\n");
	const std::string mig = gpu("nvidia.com/mig-1g.5gb", "1g.5gb", 0);
	CHECK(lines(gpu(nvidia, "a100", 3) + "," + mig, gpu("", "", 4)) == "NodeName=n1 Name=gpu Type=a100 Count=4 File=/dev/nvidia[0-3]\n");
	CHECK(lines(gpu(nvidia, "a100", 3) + "," + mig, gpu("", "a100", 3) + "," + gpu("", "1g.5gb", 2)) ==
	      "NodeName=n1 Name=gpu Type=a100 Count=3 File=/dev/nvidia[0-2]\nNodeName=n1 Name=gpu Type=1g.5gb Count=2\n");
	CHECK(lines(gpu(nvidia, "a100", 0) + "," + mig, gpu("", "", 4)) == "# n1: slurm.conf has other gpu than Kubernetes; slurm-k8s gres shows both\n");
	CHECK(lines(gpu(nvidia, "a100", 0), "") == "");
}

TEST_CASE("gres.conf: what a DRA driver has gets no line by number, for no pod's claim could have a device of it")
{
	const std::string of_class = "deviceClass gpu.nvidia.com";
	const std::string kept = "# n1: gpu is of deviceClass gpu.nvidia.com: keep your own lines, in the order of its driver's indices\n";
	CHECK(lines(gpu(of_class, "", 4), gpu("", "", 4)) == kept);
	CHECK(lines(gpu(of_class, "", 0), gpu("", "", 4)) == kept);
	CHECK(lines(gpu(of_class, "a100", 4), gpu("", "h100", 2)) == kept);
	CHECK(lines(gpu(of_class, "a", 2) + "," + gpu("deviceClass other", "b", 2) + "," + gpu("nvidia.com/gpu", "", 2), gpu("", "", 6)) ==
	      "# n1: gpu is of deviceClass gpu.nvidia.com, deviceClass other: keep your own lines, in the order of its driver's indices\n");
	CHECK(lines(gpu("deviceClass a\\nNodeName=n1 Name=gpu", "", 4), gpu("", "", 4)).find("\nNodeName") == std::string::npos);
	CHECK(lines(gpu(of_class, "", 4), "") == "# n1: Kubernetes has gpu, slurm.conf gives the node none\n");
}

TEST_CASE("gres.conf: a DRA driver's devices have their files, and the cores of their sockets, a line for those that have the same")
{
	struct Row {
		const char *what;
		std::string kubernetes, slurm, wanted;
	};
	const std::string line = "NodeName=n1 Name=gpu ";
	const Row rows[] = {
		{"all near the same", driver("a100", {{0, "0-15"}, {1, "0-15"}, {2, "0-15"}, {3, "0-15"}}), gpu("", "a100", 4),
		 line + "Type=a100 Count=4 File=/dev/nvidia[0-3] Cores=0-15\n"},
		{"two sockets", driver("", {{0, "0-15"}, {1, "0-15"}, {2, "16-31"}}), gpu("", "", 3),
		 line + "Count=2 File=/dev/nvidia[0-1] Cores=0-15\n" + line + "Count=1 File=/dev/nvidia2 Cores=16-31\n"},
		{"of one it is not known, so that none has any", driver("", {{0, "0-15"}, {1, ""}}), gpu("", "", 2), line + "Count=2 File=/dev/nvidia[0-1]\n"},
		{"no list of cores", driver("", {{0, "0-15 Name=x"}}), gpu("", "", 1), line + "Count=1 File=/dev/nvidia0\n"},
		{"Slurm alone has a type", driver("", {{0, ""}, {1, ""}}), gpu("", "a100", 2), line + "Type=a100 Count=2 File=/dev/nvidia[0-1]\n"},
		{"Kubernetes alone has types", driver("a", {{0, ""}}) + "," + driver("b", {{1, ""}}), gpu("", "", 2), line + "Count=2 File=/dev/nvidia[0-1]\n"},
		{"types in slurm.conf's order", driver("a100", {{2, "0-7"}, {3, "0-7"}}, "/dev/a%d") + "," + driver("t4", {{0, "0-7"}, {1, "0-7"}}, "/dev/t%d"),
		 gpu("", "t4", 2) + "," + gpu("", "a100", 2),
		 line + "Type=t4 Count=2 File=/dev/t[0-1] Cores=0-7\n" + line + "Type=a100 Count=2 File=/dev/a[2-3] Cores=0-7\n"},
		{"more than slurm.conf says", driver("", {{0, ""}, {1, ""}, {2, ""}}), gpu("", "", 2), line + "Count=3 File=/dev/nvidia[0-2]\n"},
		{"with what a device plugin has left", driver("", {{0, ""}}) + "," + gpu("nvidia.com/gpu", "nvidia-a100", 0), gpu("", "", 1),
		 line + "Count=1 File=/dev/nvidia0\n"},
	};
	for (const Row &row : rows) {
		INFO(row.what);
		CHECK(lines(row.kubernetes, row.slurm) == row.wanted);
	}
}

TEST_CASE("gres.conf: where a driver's devices would have other indices in Slurm there is no line, and it says why")
{
	struct Row {
		std::string kubernetes, slurm, why;
	};
	const std::string order = "; Slurm would take its devices in the order ", types = "; slurm.conf has other types of it than slurm-k8s.yaml";
	const Row rows[] = {
		{driver("", {{0, ""}, {2, ""}}), gpu("", "", 2), order + "0,2 and count them from 0 on"},
		{driver("", {{1, ""}, {2, ""}}), gpu("", "", 2), order + "1-2 and count them from 0 on"},
		{driver("a100", {{0, ""}, {1, ""}}) + "," + driver("t4", {{2, ""}, {3, ""}}), gpu("", "t4", 2) + "," + gpu("", "a100", 2),
		 order + "2-3,0-1 and count them from 0 on"},
		{driver("a100", {{0, ""}, {1, ""}}) + "," + driver("t4", {{2, ""}}), gpu("", "a100", 1) + "," + gpu("", "t4", 1),
		 order + "0,2 and count them from 0 on"}, // a slurmd leaves out the second A100
		{driver("a100", {{0, ""}, {1, ""}}), gpu("", "h100", 2), types},
		{driver("", {{0, ""}, {1, ""}}), gpu("", "a100", 1) + "," + gpu("", "h100", 1), types},
		{driver("", {{0, ""}, {1, ""}, {2, ""}}), gpu("", "", 4), "; slurm.conf has 4, and of 3 a driver tells"},
		{driver("", {{0, ""}}, ""), gpu("", "", 1), ""},
		{driver("", {{0, ""}}, "/dev/nvidia0 Name=x%d"), gpu("", "", 1), ""},
		{driver("", {{0, ""}}, "/etc/%d"), gpu("", "", 1), ""},
		{driver("", {{-1, ""}}), gpu("", "", 1), ""},
		{driver("", {{0, ""}}) + "," + gpu("nvidia.com/gpu", "", 1), gpu("", "", 2), ""},
	};
	for (const Row &row : rows) {
		CAPTURE(&row - rows);
		CHECK(lines(row.kubernetes, row.slurm) == "# n1: gpu is of deviceClass gpu.nvidia.com: keep your own lines, in the order of its driver's indices" + row.why + "\n");
	}
}

TEST_CASE("gres.conf: while a driver is away its devices keep the lines that were written for them")
{
	const std::string line = "NodeName=n1 Name=gpu Count=2 File=/dev/nvidia[0-1] Cores=0-7\n";
	const std::string former = first + "NodeName=n1 Name=gpu2 Count=2 File=/dev/x[0-1]\nNodeName=n10 Name=gpu Count=2 File=/dev/nvidia[0-1]\n" + line +
				   "NodeName=n1 Name=fpga Count=2\n";
	const std::string two = gpu("", "", 2), one_left = driver("", {{0, "0-7"}});
	CHECK(lines(one_left, two, former) ==
	      "# n1: gpu is of deviceClass gpu.nvidia.com: its lines stay as they were; slurm.conf has 2, and of 1 a driver tells\n" + line);
	CHECK(lines("", two, former) == "# n1: Kubernetes knows no gpu there now: its lines stay as they were\n" + line);
	CHECK(lines("", gpu("", "a", 1) + "," + gpu("", "b", 1), former) == "# n1: Kubernetes knows no gpu there now: its lines stay as they were\n" + line);
	CHECK(lines("", R"({"name": "fpga", "type": "", "count": 2})", former).empty()); // slurm.conf alone will do
	CHECK(lines("", "", former).empty());
	CHECK(lines(driver("", {{0, "0-7"}, {1, "0-7"}}), two, former) == line);
	CHECK(lines(driver("", {{0, ""}}, ""), two, former) == "# n1: gpu is of deviceClass gpu.nvidia.com: keep your own lines, in the order of its driver's indices\n");
}

TEST_CASE("gres.conf: nodes that Slurm does not know, or whose names it cannot have, have no lines")
{
	const std::string devices = R"("gres": [)" + gpu("x/a", "", 1) + R"(], "slurm": [)" + gpu("", "", 1) + "]}";
	auto conf = gres_conf(answer(R"({"node": "n1", "in_slurm": false, )" + devices + R"(, {"node": "n2\nName=gpu", "in_slurm": true, )" + devices));
	REQUIRE(conf);
	CHECK(conf->text == first);
	CHECK(conf->nodes == 0);
}

TEST_CASE("gres.conf: while a cluster's nodes are not known there is none")
{
	auto conf = gres_conf(answer("", "hanging"));
	REQUIRE(!conf);
	CHECK(conf.error().message == "cluster c is hanging; nothing is known of its nodes, and their lines would be missing");
}

TEST_CASE("gres.conf: is written whole, for everybody to read, and only over itself")
{
	const TempFolder dir;
	const std::string path = dir.path + "/gres-k8s.conf", text = first + "NodeName=n1 Name=gpu Count=1\n";
	auto written = write_gres_conf(path, text);
	REQUIRE(written);
	CHECK(*written);
	struct stat status;
	REQUIRE(::stat(path.c_str(), &status) == 0);
	CHECK((status.st_mode & 07777) == 0644);
	CHECK(*read_file(path, 1000) == text);
	CHECK(*former_gres_conf(path) == text);
	CHECK(former_gres_conf(path + ".not")->empty());
	CHECK_FALSE(*write_gres_conf(path, text));
	CHECK(*write_gres_conf(path, first));
	dir.write("gres-k8s.conf", "NodeName=n1 Name=gpu File=/dev/nvidia0\n");
	auto refused = write_gres_conf(path, text);
	REQUIRE(!refused);
	CHECK(refused.error().message == path + " is not of slurm-k8s gres --write: name another file, which gres.conf includes");
	CHECK(*read_file(path, 1000) == "NodeName=n1 Name=gpu File=/dev/nvidia0\n");
	CHECK(!former_gres_conf(path));
	CHECK(!write_gres_conf(dir.path + "/nowhere/gres.conf", text));
}
