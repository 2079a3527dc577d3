// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/gres.h"

#include "test/unit/catch.h"
#include "tools/check.h"

using namespace sk8;
using namespace sk8::tools;

namespace {

Json answer(const std::string &nodes, const std::string &state = "running")
{
	auto parsed = Json::parse(R"({"clusters": [{"name": "c", "state": ")" + state + R"(", "nodes": [)" + nodes + "]}]}");
	REQUIRE(parsed);
	return *parsed;
}

const std::string a100 = R"({"node": "n1", "in_slurm": true, "gres": [
	{"kubernetes": "nvidia.com/gpu", "name": "gpu", "type": "a100", "count": 3},
	{"kubernetes": "rdma/hca", "name": "rdma", "type": "hca", "count": 2}],
	"slurm": [{"name": "gpu", "type": "a100", "count": 4}], "masked": [{"name": "gpu", "type": "a100", "count": 1}], "problems": ["x is odd"]})";

std::string warnings(const std::vector<NodeDevices> &nodes, const core::ClusterSettings &settings = {})
{
	Findings out;
	check_gres(nodes, settings, "devices", out);
	std::string text;
	for (const Finding &f : out.all()) {
		CHECK(f.level != Finding::Level::problem);
		if (f.level == Finding::Level::warning)
			text += f.text + "\n";
	}
	return text;
}

NodeDevices devices(const std::string &node, std::uint64_t kube, std::uint64_t slurm, const std::string &name = "gpu")
{
	core::GresList has;
	if (slurm)
		has.push_back({name, "", slurm, {}});
	return {node, {{{"nvidia.com/gpu", name, "", kube}}, {}}, has, true};
}

} // namespace

TEST_CASE("gres: the table has both sides of each node, and what is odd")
{
	CHECK(show_gres(answer(a100)) == "NODE  KUBERNETES HAS            AS GRES                SLURM HAS   MASKED\n"
					"n1    nvidia.com/gpu, rdma/hca  gpu:a100:3,rdma:hca:2  gpu:a100:4  gpu:a100:1\n"
					"node n1: x is odd\n");
	CHECK(show_gres(answer("", "hanging")) == "no shared node is known\ncluster c is hanging; nothing is known of its nodes\n");
	CHECK(gres_nodes(answer(a100)) == 1);
}

TEST_CASE("gres: the devices that drivers tell of are a table")
{
	CHECK(show_devices(answer(R"({"node": "n1", "in_slurm": true, "gres": [{"kubernetes": "deviceClass gpu.example.com", "name": "gpu", "type": "a100",
		"count": 1, "devices": [{"index": 0, "device": "gpu-0", "uuid": "GPU-1", "pci": "0000:01:00.0", "numa": "1", "cores": "8-15", "well": true},
		{"index": 1, "device": "gpu-1", "uuid": "", "pci": "", "numa": "", "well": false}]}], "slurm": [], "masked": [], "problems": []})")) ==
	      "NODE  GRES      INDEX  DEVICE  UUID   PCI           NUMA  CORES  STATE\n"
	      "n1    gpu:a100  0      gpu-0   GPU-1  0000:01:00.0  1     8-15   ok\n"
	      "n1    gpu:a100  1      gpu-1   -      -             -     -      tainted\n");
	CHECK(show_devices(answer(a100)) == "no driver tells of devices; see deviceClass in slurm-k8s.yaml(5)\n");
}

TEST_CASE("gres: the lines for Slurm are those that its configuration takes")
{
	CHECK(gres_lines(answer(a100)) ==
	      "# slurm.conf: add this line, and Gres= to the line of each node\nGresTypes=gpu,rdma\n"
	      "# NodeName=n1 ... Gres=gpu:a100:3,rdma:hca:2\n\n"
	      "# gres.conf: GPUs by number only. For CUDA_VISIBLE_DEVICES and cgroups have File= or AutoDetect= in the place of Count=\n"
	      "NodeName=n1 Name=gpu Type=a100 Count=3\nNodeName=n1 Name=rdma Type=hca Count=2\n");
}

TEST_CASE("gres: the lines for Slurm have the device files of drivers, and types in the order of their devices")
{
	const auto driver = [](const std::string &type, const std::string &file, const std::string &indices) {
		std::string devices;
		for (const char c : indices)
			devices += (devices.empty() ? "" : ",") + (R"({"index": )" + std::string(1, c)) + R"(, "socket_cores": "0-7", "well": true})";
		return R"({"kubernetes": "deviceClass x", "name": "gpu", "type": ")" + type + R"(", "file": ")" + file + R"(", "count": 1, "devices": [)" + devices + "]}";
	};
	const auto lines = [](const std::string &gres) { return gres_lines(answer(R"({"node": "n1", "in_slurm": true, "gres": [)" + gres + "]}")); };
	const std::string begin = "# slurm.conf: add this line, and Gres= to the line of each node\nGresTypes=gpu\n# NodeName=n1 ... Gres=";
	CHECK(lines(driver("a100", "/dev/card%d", "23") + "," + driver("t4", "/dev/card%d", "01")) ==
	      begin + "gpu:t4:2,gpu:a100:2\n\n# gres.conf\nNodeName=n1 Name=gpu Type=t4 Count=2 File=/dev/card[0-1] Cores=0-7\n"
		      "NodeName=n1 Name=gpu Type=a100 Count=2 File=/dev/card[2-3] Cores=0-7\n");
	const std::string by_number = "# gres.conf: GPUs by number only. For CUDA_VISIBLE_DEVICES and cgroups have File= or AutoDetect= in the place of Count=\n";
	CHECK(lines(driver("", "", "01")) == begin + "gpu:2\n\n" + by_number + "NodeName=n1 Name=gpu Count=2\n");
	CHECK(lines(driver("", "/dev/card%d", "02")) ==
	      begin + "gpu:2\n\n" + by_number + "# n1: gpu: Slurm would take its devices in the order 0,2 and count them from 0 on\nNodeName=n1 Name=gpu Count=2\n");
}

TEST_CASE("gres: devices that only Kubernetes knows are counted, and Slurm looks for no plugin")
{
	CHECK(gres_lines(answer(R"({"node": "n1", "in_slurm": true, "gres": [{"name": "k8s", "type": "rdma_hca", "count": 2},
	      {"name": "k8s", "type": "example.com_fpga", "count": 1}]})")) ==
	      "# slurm.conf: add this line, and Gres= to the line of each node\nGresTypes=k8s\n"
	      "# NodeName=n1 ... Gres=k8s:rdma_hca:2,k8s:example.com_fpga:1\n\n# gres.conf\n"
	      "NodeName=n1 Name=k8s Type=rdma_hca Count=2 Flags=CountOnly\n"
	      "NodeName=n1 Name=k8s Type=example.com_fpga Count=1 Flags=CountOnly\n");
}

TEST_CASE("gres: what could be another line of a configuration is in none")
{
	const auto *node = GENERATE(
		R"({"node": "n1\nNodeName=x", "in_slurm": true, "gres": [{"name": "gpu", "type": "", "count": 1}]})",
		R"({"node": "n1,n2", "in_slurm": true, "gres": [{"name": "gpu", "type": "", "count": 1}]})",
		R"({"node": "n1", "in_slurm": true, "gres": [{"name": "gpu\nFile=/", "type": "", "count": 1}]})",
		R"({"node": "n1", "in_slurm": true, "gres": [{"name": "gpu", "type": "a b", "count": 1}]})",
		R"({"node": "n1", "in_slurm": true, "gres": [{"name": "gpu", "type": "", "count": -1}]})",
		R"({"node": "n1", "in_slurm": false, "gres": [{"name": "gpu", "type": "", "count": 1}]})", R"({"node": 3, "gres": "x"})");
	CHECK(gres_lines(answer(node)) == "# no node has devices that Kubernetes knows\n");
}

TEST_CASE("gres: what slurm.conf and scontrol say is read as Slurm does")
{
	const core::GresList wanted{{"gpu", "a100", 4, {}}, {"gpu", "h100", 2, {}}, {"token", "", 2048, {}}};
	CHECK(parse_gres("gpu:a100:4(S:0,1),gpu:h100:2(S:0-1),token:2K,hca:no_consume:2") == wanted);
	CHECK(parse_gres("gpu") == core::GresList{{"gpu", "", 1, {}}});
	CHECK(parse_gres("gpu:a100") == core::GresList{{"gpu", "a100", 1, {}}});
	CHECK(parse_gres("").empty());
	CHECK(parse_gres("((((,:::,").empty());
}

TEST_CASE("check of devices: one sentence for each difference, of all nodes that have it, and no problem")
{
	CHECK(warnings({devices("n1", 4, 4), devices("n2", 4, 4)}).empty());
	CHECK(warnings({devices("n1", 4, 2), devices("n2", 4, 2)}) ==
	      "Kubernetes has 4 of gpu (nvidia.com/gpu) on n1, n2 and Slurm 2: give Slurm the others by Gres= in slurm.conf and gres.conf, "
	      "slurm-k8s gres --node n1 --format=slurm says how; then restart slurmd, and slurmctld after it\n");
	CHECK(warnings({devices("n1", 3, 4)}) ==
	      "Kubernetes has 3 of gpu (nvidia.com/gpu) on n1 and Slurm 4: the others are kept from jobs until the kubelet has them again; look at the device "
	      "plugin and the devices there, and take what is gone for good from slurm.conf and gres.conf, then restart slurmctld, and slurmd after it\n");
}

TEST_CASE("check of devices: hugepages that Slurm has nowhere are no finding, GPUs and devices that an administrator named are")
{
	CHECK(warnings({devices("n1", 512, 0, "hugepages")}).empty());
	CHECK(warnings({devices("n1", 4, 0, "rdma")}).empty());
	CHECK_FALSE(warnings({devices("n1", 4, 0, "gpu")}).empty()); // a GPU is what somebody has bought for jobs
	CHECK_FALSE(warnings({devices("n1", 512, 0, "hugepages"), devices("n2", 512, 512, "hugepages")}).empty());
	core::ClusterSettings named;
	named.resources = {{.kubernetes = "nvidia.com/gpu", .gres = "fpga"}};
	CHECK_FALSE(warnings({devices("n1", 2, 0, "fpga")}, named).empty());
}

TEST_CASE("check of devices: what may come and go is no finding while the kubelet has less of it, but is when it has more")
{
	core::ClusterSettings settings;
	settings.resources = {{.kubernetes = "nvidia.com/gpu", .gres = "gpu", .missing = core::ResourceSettings::Missing::all}};
	const auto said = [&](std::uint64_t kube) {
		NodeDevices n = devices("n1", kube, 4);
		n.kubernetes.gres[0].missing = core::ResourceSettings::Missing::all;
		return warnings({n}, settings);
	};
	CHECK(said(0).empty());
	CHECK(said(3).empty());
	CHECK(said(5).starts_with("Kubernetes has 5 of gpu (nvidia.com/gpu) on n1 and Slurm 4: give Slurm the others"));
}

TEST_CASE("check of devices: of what Slurm's jobs get and no pod is counted for is a word, and what to do")
{
	const auto node = [](const std::string &resource, const std::string &name, std::uint64_t slurm) {
		NodeDevices n = devices("n1", 4, slurm, name);
		n.kubernetes.gres[0].kubernetes = resource;
		return n;
	};
	const std::string begin = " on n1 is not kept from Slurm's jobs, which get it as a GRES: ", name_it = "name it under resources in slurm-k8s.yaml\n";
	CHECK(warnings({node("rdma/hca", "rdma", 4)}) == "what pods have of rdma/hca" + begin + name_it);
	CHECK(warnings({node("nvidia.com/mig-1g.5gb, nvidia.com/gpu", "gpu", 4)}) == "what pods have of nvidia.com/mig-1g.5gb" + begin + name_it);
	CHECK(warnings({node("gpu.intel.com/xe", "gpu", 4)}) == "what pods have of gpu.intel.com/xe" + begin + name_it);
	CHECK(warnings({node("hugepages-2Mi", "hugepages", 4)}) ==
	      "what pods have of hugepages-2Mi" + begin + "it cannot be named under resources in slurm-k8s.yaml, so let one side have none of it there\n");
	core::ClusterSettings named;
	named.resources = {{.kubernetes = "rdma/hca", .gres = "rdma"}};
	CHECK(warnings({node("rdma/hca", "rdma", 4)}, named).empty());
	CHECK(warnings({node("rdma/hca", "rdma", 0)}).empty());
}

TEST_CASE("check of devices: of what Slurm's jobs have and their pods do not request is a word, and of nothing else")
{
	const std::string word = "what Slurm's own jobs have of nvidia.com/gpu on n1 no pod of theirs requests, and the kubelets may give it to others' pods: "
				 "name it under resources in slurm-k8s.yaml\n";
	core::ClusterSettings settings;
	NodeDevices n = devices("n1", 4, 4);
	const auto with = [&](std::vector<core::ResourceSettings> resources) {
		settings.resources = std::move(resources);
		return warnings({n}, settings);
	};
	core::ResourceSettings driver{.gres = "gpu"};
	driver.device_class = "gpu.nvidia.com";
	n.mixed = false;
	CHECK(with({}) == word);
	CHECK(with({{.kubernetes = "nvidia.com/gpu", .gres = "gpu"}}).empty());
	CHECK(with({{.kubernetes = "rdma/hca", .gres = "k8s", .type = "hca"}}).empty()); // then pods hold all that jobs have
	CHECK(with({driver}) == word);
	n.mixed = true;
	CHECK(with({}).empty());
	CHECK(with({driver}) == word);
	settings.reservations.devices = false;
	CHECK(with({}) == word);
	CHECK(with({{.kubernetes = "rdma/hca", .gres = "k8s", .type = "hca"}}) == word);
	CHECK(with({{.kubernetes = "nvidia.com/gpu", .gres = "gpu"}}).empty());
	settings.resources = {};
	CHECK(warnings({devices("n1", 4, 4), devices("n2", 4, 4)}, settings) == "what Slurm's own jobs have of nvidia.com/gpu on n1, n2 no pod of theirs requests, "
	      "and the kubelets may give it to others' pods: name it under resources in slurm-k8s.yaml\n");
	n.slurm.clear(); // they have none
	n.kubernetes.gres.clear();
	CHECK(with({}).empty());
}
