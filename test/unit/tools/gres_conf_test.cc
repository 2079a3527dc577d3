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

// Of one node, without the first line.
std::string lines(const std::string &kubernetes, const std::string &slurm)
{
	auto conf = gres_conf(answer(R"({"node": "n1", "in_slurm": true, "gres": [)" + kubernetes + R"(], "slurm": [)" + slurm + "]}"));
	REQUIRE(conf);
	REQUIRE(conf->text.starts_with(first));
	return conf->text.substr(first.size());
}

std::string gpu(const std::string &resource, const std::string &type, int count)
{
	return R"({"kubernetes": ")" + resource + R"(", "name": "gpu", "type": ")" + type + R"(", "count": )" + std::to_string(count) + "}";
}

} // namespace

TEST_CASE("gres.conf: a line for what both sides have, with files where it is known which they are")
{
	const std::string nvidia = "nvidia.com/gpu";
	CHECK(lines(gpu(nvidia, "a100", 4), gpu("", "a100", 4)) == "NodeName=n1 Name=gpu Type=a100 Count=4 File=/dev/nvidia[0-3]\n");
	CHECK(lines(gpu(nvidia, "", 1), gpu("", "", 1)) == "NodeName=n1 Name=gpu Count=1 File=/dev/nvidia0\n");
	CHECK(lines(gpu("amd.com/gpu", "mi300", 2), gpu("", "", 2)) == "NodeName=n1 Name=gpu Type=mi300 Count=2 File=/dev/dri/renderD[128-129]\n");
	CHECK(lines(gpu("gpu.intel.com/xe", "xe", 2), gpu("", "xe", 2)) == "NodeName=n1 Name=gpu Type=xe Count=2 File=/dev/dri/renderD[128-129]\n");
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
	const std::string kept = "# n1: gpu is of deviceClass gpu.nvidia.com: keep its File= or AutoDetect= line\n";
	CHECK(lines(gpu(of_class, "", 4), gpu("", "", 4)) == kept);
	CHECK(lines(gpu(of_class, "", 0), gpu("", "", 4)) == kept);
	CHECK(lines(gpu(of_class, "a100", 4), gpu("", "h100", 2)) == kept);
	CHECK(lines(gpu(of_class, "a", 2) + "," + gpu("deviceClass other", "b", 2) + "," + gpu("nvidia.com/gpu", "", 2), gpu("", "", 6)) ==
	      "# n1: gpu is of deviceClass gpu.nvidia.com, deviceClass other: keep its File= or AutoDetect= line\n");
	CHECK(lines(gpu("deviceClass a\\nNodeName=n1 Name=gpu", "", 4), gpu("", "", 4)).find("\nNodeName") == std::string::npos);
	CHECK(lines(gpu(of_class, "", 4), "") == "# n1: Kubernetes has gpu, slurm.conf gives the node none\n");
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
	CHECK_FALSE(*write_gres_conf(path, text));
	CHECK(*write_gres_conf(path, first));
	dir.write("gres-k8s.conf", "NodeName=n1 Name=gpu File=/dev/nvidia0\n");
	auto refused = write_gres_conf(path, text);
	REQUIRE(!refused);
	CHECK(refused.error().message == path + " is not of slurm-k8s gres --write: name another file, which gres.conf includes");
	CHECK(*read_file(path, 1000) == "NodeName=n1 Name=gpu File=/dev/nvidia0\n");
	CHECK(!write_gres_conf(dir.path + "/nowhere/gres.conf", text));
}
