// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/gres_identification.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;

using Amounts = std::map<std::string, std::int64_t>;
using Labels = std::map<std::string, std::string>;
using List = std::vector<IdentifiedGres>;

static const std::string product = "nvidia.com/gpu.product";

TEST_CASE("identification: what is known by itself, and what an administrator says of it")
{
	struct Row {
		Amounts allocatable;
		Labels labels;
		std::vector<ResourceSettings> settings;
		List wanted;
	};
	const std::vector<ResourceSettings> said{{"nvidia.com/gpu", "gpu", "a100"}, {"example.com/fpga", "fpga", ""}};
	const std::vector<ResourceSettings> labelled{{.kubernetes = "example.com/fpga", .gres = "fpga", .type = "any", .type_label = "card"}};
	const auto row = GENERATE_COPY(
		Row{{}, {}, {}, {}},
		Row{{{"nvidia.com/gpu", 8}}, {}, {}, {{"nvidia.com/gpu", "gpu", "", 8}}},
		Row{{{"nvidia.com/gpu", 8}}, {{product, "NVIDIA-A100-SXM4-40GB"}}, {}, {{"nvidia.com/gpu", "gpu", "nvidia-a100-sxm4-40gb", 8}}},
		Row{{{"nvidia.com/gpu", 0}}, {}, {}, {{"nvidia.com/gpu", "gpu", "", 0}}},
		Row{{{"nvidia.com/mig-1g.5gb", 7}}, {{product, "x"}}, {}, {{"nvidia.com/mig-1g.5gb", "gpu", "1g.5gb", 7}}},
		Row{{{"amd.com/gpu", 4}}, {{"amd.com/gpu.product-name", "MI300X"}}, {}, {{"amd.com/gpu", "gpu", "mi300x", 4}}},
		Row{{{"gpu.intel.com/i915", 2}, {"gpu.intel.com/i915_monitoring", 1}, {"gpu.intel.com/memory.max", 99}, {"gpu.intel.com/xe", 1}}, {}, {},
		    {{"gpu.intel.com/i915", "gpu", "i915", 2}, {"gpu.intel.com/xe", "gpu", "xe", 1}}},
		Row{{{"rdma/hca_shared_devices_a", 63}}, {}, {}, {{"rdma/hca_shared_devices_a", "rdma", "hca_shared_devices_a", 63}}},
		Row{{{"hugepages-2Mi", 1 << 30}, {"hugepages-1Gi", 0}}, {}, {}, {{"hugepages-2Mi", "hugepages", "2Mi", 512}}},
		Row{{{"hugepages-2Mi", (3 << 20) - 1}, {"hugepages-1Gi", std::int64_t{4} << 30}, {"hugepages-64Ki", 1 << 20}}, {}, {}, // whole ones
		    {{"hugepages-1Gi", "hugepages", "1Gi", 4}, {"hugepages-2Mi", "hugepages", "2Mi", 1}, {"hugepages-64Ki", "hugepages", "64Ki", 16}}},
		Row{{{"rdma/hca", 2}, {"rdma/ib0", 1}}, {}, {}, {{"rdma/hca", "rdma", "hca", 2}, {"rdma/ib0", "rdma", "ib0", 1}}},
		Row{{{"example.com/fpga", 3}, {"cpu", 4}, {"nvidia.com/mig-", 1}, {"rdma/", 1}}, {}, {}, {}},
		Row{{{"example.com/fpga", 3}}, {{"card", "U250 x"}}, labelled, {{"example.com/fpga", "fpga", "u250_x", 3}}},
		Row{{{"example.com/fpga", 3}}, {}, labelled, {{"example.com/fpga", "fpga", "any", 3}}},
		Row{{{"example.com/fpga", 3}, {"nvidia.com/gpu", 2}}, {{product, "H100"}}, said,
		    {{"example.com/fpga", "fpga", "", 3}, {"nvidia.com/gpu", "gpu", "a100", 2}}});
	const NodeGres node = identify_gres(row.allocatable, row.labels, row.settings);
	CHECK(node.gres == row.wanted);
	CHECK(node.problems.empty());
}

TEST_CASE("identification: a label with odd characters, or as long as can be, makes a type that Slurm takes")
{
	const auto [label, type] = GENERATE_COPY(
		std::pair<std::string, std::string>(std::string(63, 'x'), std::string(63, 'x')),
		std::pair<std::string, std::string>(std::string(5000, 'X'), std::string(64, 'x')),
		std::pair<std::string, std::string>("a,b:c=d e\n(f)[1-2]", "a_b_c_d_e__f__1-2_"),
		std::pair<std::string, std::string>("\xc3\xa4\x1b[2J", "____2j"), std::pair<std::string, std::string>("", ""));
	const NodeGres node = identify_gres({{"nvidia.com/gpu", 1}}, {{product, label}}, {});
	REQUIRE(node.gres == List{{"nvidia.com/gpu", "gpu", type, 1}});
	CHECK(bad_gres_word(node.gres[0].type).empty());
}

TEST_CASE("identification: what makes no GRES is left out with a sentence, and all else stays")
{
	const auto [name, count] = GENERATE_COPY(
		std::pair<std::string, std::int64_t>("rdma/a,gpu:100", 1), std::pair<std::string, std::int64_t>("rdma/" + std::string(65, 'x'), 1),
		std::pair<std::string, std::int64_t>("rdma/\x1b[2J", 1), std::pair<std::string, std::int64_t>("nvidia.com/mig-a b", 1),
		std::pair<std::string, std::int64_t>("hugepages-many", 1), std::pair<std::string, std::int64_t>("hugepages-0", 1),
		std::pair<std::string, std::int64_t>("nvidia.com/gpu", -1), std::pair<std::string, std::int64_t>("nvidia.com/gpu", INT64_MIN),
		std::pair<std::string, std::int64_t>("nvidia.com/gpu", max_gres_count + 1), std::pair<std::string, std::int64_t>("nvidia.com/gpu", INT64_MAX));
	const NodeGres node = identify_gres({{name, count}, {"amd.com/gpu", 2}}, {}, {});
	CHECK(node.gres == List{{"amd.com/gpu", "gpu", "", 2}});
	REQUIRE(node.problems.size() == 1);
	CHECK(node.problems[0].find("is left out") != std::string::npos);
	CHECK(node.problems[0].find('\x1b') == std::string::npos);
}

TEST_CASE("identification: resources that are one GRES are counted together, which is said")
{
	NodeGres node = identify_gres({{"amd.com/gpu", 2}, {"nvidia.com/gpu", 3}}, {}, {});
	CHECK(node.gres == List{{"amd.com/gpu, nvidia.com/gpu", "gpu", "", 5}});
	REQUIRE(node.problems.size() == 1);
	CHECK(node.problems[0] == "nvidia.com/gpu is counted together with amd.com/gpu, both are gpu; give it a GRES or a type of its own under "
				  "resources in slurm-k8s.yaml");
	node = identify_gres({{"amd.com/gpu", 2}, {"nvidia.com/gpu", 3}}, {}, {{"amd.com/gpu", "gpu", ""}, {"nvidia.com/gpu", "gpu", ""}});
	CHECK(node.gres[0].count == 5);
	REQUIRE(node.problems.size() == 1);
	CHECK(node.problems[0] == "nvidia.com/gpu is gpu by resources in slurm-k8s.yaml as amd.com/gpu, and pods of Slurm's own jobs request that "
				  "one alone; give it a GRES or a type of its own");
	const std::vector<ResourceSettings> typed{{"amd.com/gpu", "gpu", ""}, {"nvidia.com/gpu", "gpu", "a100"}};
	CHECK(identify_gres({{"amd.com/gpu", 2}, {"nvidia.com/gpu", 3}}, {}, typed).problems.empty());
	const std::vector<ResourceSettings> either{{"amd.com/gpu", "gpu", ""}, {"nvidia.com/gpu", "gpu", ""}};
	CHECK(identify_gres({{"amd.com/gpu", 0}, {"nvidia.com/gpu", 3}}, {}, either).problems.empty()); // nodes with the one or the other
	CHECK(identify_gres({{"nvidia.com/gpu", 3}}, {}, either).problems.empty());
}

TEST_CASE("identification: of resources that everybody knows pods of jobs request one, which is said where a node has two")
{
	const std::map<std::string, std::string> products{{"nvidia.com/gpu.product", "A100"}, {"amd.com/gpu.product-name", "MI300"}};
	const Amounts both{{"amd.com/gpu", 2}, {"nvidia.com/gpu", 3}};
	NodeGres node = identify_gres(both, products, {});
	CHECK(node.gres.size() == 2);
	REQUIRE(node.problems.size() == 1);
	CHECK(node.problems[0] == "amd.com/gpu is gpu as nvidia.com/gpu, and pods of Slurm's own jobs request that one alone; give it a GRES or a type "
				  "of its own under resources in slurm-k8s.yaml");
	node = identify_gres(both, products, {{"amd.com/gpu", "gpu", ""}});
	REQUIRE(node.problems.size() == 1);
	CHECK(node.problems[0].starts_with("nvidia.com/gpu is gpu as amd.com/gpu, and pods of Slurm's own jobs request that one alone"));
	CHECK(identify_gres(both, products, {{"amd.com/gpu", "gpu", "mi300"}}).problems.empty());
	CHECK(identify_gres({{"amd.com/gpu", 0}, {"nvidia.com/gpu", 3}}, products, {}).problems.empty());
}

TEST_CASE("identification: thousands of resources make no more than a node may have")
{
	Amounts many;
	for (int i = 0; i < 5000; i++)
		many["rdma/d" + std::to_string(i)] = 1;
	const NodeGres node = identify_gres(many, {}, {});
	CHECK(node.gres.size() == max_gres);
	CHECK(node.problems.size() <= 16);
}

TEST_CASE("identification: what Slurm has more than Kubernetes is missing, by type where both know it")
{
	struct Row {
		List kube;
		GresList slurm, missing;
		std::size_t differences;
	};
	const auto row = GENERATE(
		Row{{{"g", "gpu", "", 8}}, {{"gpu", "", 8, {}}}, {}, 0},
		Row{{{"g", "gpu", "", 7}}, {{"gpu", "", 8, {}}}, {{"gpu", "", 1, {}}}, 1},
		Row{{{"g", "gpu", "", 0}}, {{"gpu", "", 8, {}}}, {{"gpu", "", 8, {}}}, 1},
		Row{{{"g", "gpu", "", 9}}, {{"gpu", "", 8, {}}}, {}, 1},
		// Kubernetes does not know it: that is Slurm's alone
		Row{{}, {{"gpu", "", 8, {}}}, {}, 0},
		Row{{{"r", "rdma", "hca", 1}}, {{"gpu", "", 8, {}}}, {}, 1},
		// another word for the same type
		Row{{{"g", "gpu", "nvidia-a100-sxm4-40gb", 3}}, {{"gpu", "a100", 4, {}}}, {{"gpu", "", 1, {}}}, 1},
		// the same type: the other one is not Kubernetes'
		Row{{{"g", "gpu", "h100", 2}}, {{"gpu", "a100", 4, {}}, {"gpu", "h100", 2, {}}}, {}, 0},
		Row{{{"g", "gpu", "h100", 1}}, {{"gpu", "a100", 4, {}}, {"gpu", "h100", 2, {}}}, {{"gpu", "h100", 1, {}}}, 1},
		// one by its type, the others together
		Row{{{"g", "gpu", "", 1}, {"m", "gpu", "1g.5gb", 6}}, {{"gpu", "1g.5gb", 7, {}}, {"gpu", "a100", 2, {}}},
		    {{"gpu", "", 1, {}}, {"gpu", "1g.5gb", 1, {}}}, 2});
	const NodeGres node{row.kube, {}};
	CHECK(missing_gres(node, row.slurm) == row.missing);
	CHECK(gres_differences(node, row.slurm).size() == row.differences);
}

TEST_CASE("identification: a kubelet that names a resource in its capacity alone has none of it")
{
	kube::Node node;
	node.allocatable.extended = {{"nvidia.com/gpu", 3}};
	node.capacity = {{"nvidia.com/gpu", 4}, {"amd.com/gpu", 2}};
	CHECK(node_devices(node) == Amounts{{"amd.com/gpu", 0}, {"nvidia.com/gpu", 3}});
}

TEST_CASE("identification: what an administrator lets be missing differs, and is not missing")
{
	const NodeGres node = identify_gres({{"nvidia.com/gpu", 4}}, {},
					    {{.kubernetes = "nvidia.com/gpu", .gres = "gpu", .missing = ResourceSettings::Missing::ignore}});
	const GresList slurm{{"gpu", "", 8, {}}};
	CHECK(missing_gres(node, slurm).empty());
	CHECK(gres_differences(node, slurm).size() == 1);
}

TEST_CASE("identification: of what may come and go all is missing where the kubelet does not know it, and the rest where it has fewer")
{
	const GresList slurm{{"gpu", "", 8, {}}, {"k8s", "fpga", 4, {}}};
	ResourceSettings fpga{.kubernetes = "example.com/fpga", .gres = "k8s", .type = "fpga", .missing = ResourceSettings::Missing::all};
	const auto missing = [&](const Amounts &allocatable) { return missing_gres(identify_gres(allocatable, {}, {fpga}), slurm); };
	CHECK(missing({}) == GresList{{"k8s", "fpga", 4, {}}});
	CHECK(missing({{fpga.kubernetes, 0}}) == GresList{{"k8s", "fpga", 4, {}}});
	CHECK(missing({{fpga.kubernetes, 3}}) == GresList{{"k8s", "fpga", 1, {}}});
	CHECK(missing({{fpga.kubernetes, 4}}).empty());
	CHECK(missing({{fpga.kubernetes, 5}}).empty());
	CHECK(missing({{fpga.kubernetes, -1}}).empty()); // not understood: left as it is
	fpga.missing = ResourceSettings::Missing::mask;
	CHECK(missing({}).empty());
	CHECK(missing({{fpga.kubernetes, 3}}) == GresList{{"k8s", "fpga", 1, {}}});
}

namespace {

DraInventory drivers(std::vector<kube::Device> devices)
{
	ResourceSettings gpus{"", "gpu", "a100"};
	gpus.device_class = "gpu.example.com";
	DraInventory out({gpus});
	auto c = std::make_shared<kube::DeviceClass>();
	c->meta.name = "gpu.example.com";
	out.classes_replaced({c});
	auto s = std::make_shared<kube::ResourceSlice>();
	s->meta.name = s->meta.uid = "s";
	s->driver = "gpu.example.com";
	s->pool = s->node = "n1";
	s->slices = 1;
	s->devices = std::move(devices);
	out.slices_replaced({s});
	return out;
}

NodeGres of_drivers(std::vector<kube::Device> devices, ResourceSettings::Missing missing = ResourceSettings::Missing::mask)
{
	ResourceSettings gpus{"", "gpu", "a100"};
	gpus.device_class = "gpu.example.com";
	gpus.missing = missing;
	NodeGres out;
	add_driver_gres(out, "n1", drivers(std::move(devices)), {gpus});
	return out;
}

} // namespace

TEST_CASE("devices of drivers are identified with what is said of them")
{
	const auto n = of_drivers({{"gpu-0", {{"gpu.example.com/uuid", std::string("GPU-1")}, {"resource.kubernetes.io/pciBusID", std::string("0000:01:00.0")},
					    {"gpu.example.com/numaNode", std::int64_t{1}}}, {}, false, ""},
				 {"gpu-1", {}, {}, true, ""}, {"odd", {}, {}, false, ""}});
	REQUIRE(n.gres.size() == 1);
	CHECK(n.gres[0] == IdentifiedGres{"deviceClass gpu.example.com", "gpu", "a100", 1, ResourceSettings::Missing::mask, true,
					  {{0, "gpu-0", "GPU-1", "0000:01:00.0", "1", true}, {1, "gpu-1", "", "", "", false}}});
	REQUIRE(n.problems.size() == 1);
	CHECK(n.problems[0].starts_with("deviceClass gpu.example.com: device odd of gpu.example.com is left out"));
	CHECK(of_drivers({}).gres.empty());
}

TEST_CASE("a node whose device plugin counts devices is none of a driver that is not there, whatever may come and go")
{
	ResourceSettings driver{.gres = "gpu", .missing = ResourceSettings::Missing::all, .device_class = "gpu.example.com"};
	NodeGres out = identify_gres({{"nvidia.com/gpu", 2}}, {}, {driver});
	add_driver_gres(out, "n1", drivers({}), {driver});
	CHECK(missing_gres(out, {{"gpu", "", 2, {}}}).empty());
}

TEST_CASE("of drivers that nobody has listed yet no device is missing")
{
	ResourceSettings gpus{.gres = "gpu", .missing = ResourceSettings::Missing::all, .device_class = "gpu.example.com"};
	NodeGres out;
	add_driver_gres(out, "n1", DraInventory({gpus}), {gpus});
	CHECK(missing_gres(out, {{"gpu", "", 2, {}}}).empty());
}

TEST_CASE("of GRES with a deviceClass that is missing which was before, while nobody has listed drivers, and of others what is now")
{
	ResourceSettings driver{.gres = "gpu", .device_class = "gpu.example.com"};
	const GresList before{{"gpu", "", 1, {3}}, {"rdma", "", 2, {}}}, now{{"rdma", "hca", 1, {}}};
	CHECK(missing_as_before(now, before, {driver}) == GresList{{"rdma", "hca", 1, {}}, {"gpu", "", 1, {3}}});
	CHECK(missing_as_before({{"gpu", "", 2, {}}}, {}, {driver}).empty());
	CHECK(missing_as_before(now, before, {}) == now);
}

TEST_CASE("devices of drivers have the type that an attribute of theirs says, or that of their class")
{
	const auto model = [](const char *name, std::uint16_t i, const char *said) {
		std::map<std::string, kube::AttributeValue> attributes;
		if (said)
			attributes.emplace(name, std::string(said));
		return kube::Device{"gpu-" + std::to_string(i), std::move(attributes), {}, false, ""};
	};
	const std::string attribute = GENERATE("model", "example.com/model");
	const std::string name = attribute == "model" ? "gpu.example.com/model" : attribute;
	ResourceSettings gpus{"", "gpu", "any"};
	gpus.device_class = "gpu.example.com";
	gpus.type_attribute = attribute;
	NodeGres out;
	add_driver_gres(out, "n1", drivers({model(name.c_str(), 0, "NVIDIA A100"), model(name.c_str(), 1, "H100"), model(name.c_str(), 2, "NVIDIA A100"),
					    model(name.c_str(), 3, nullptr)}), {gpus});
	REQUIRE(out.gres.size() == 3);
	const auto count = [&](const char *type) {
		const auto it = std::ranges::find(out.gres, type, &IdentifiedGres::type);
		return it == out.gres.end() ? 0 : it->count;
	};
	CHECK(count("nvidia_a100") == 2);
	CHECK(count("h100") == 1);
	CHECK(count("any") == 1);
	CHECK(missing_gres(out, {{"gpu", "nvidia_a100", 2, {}}, {"gpu", "h100", 1, {}}, {"gpu", "any", 1, {}}}).empty());
}

TEST_CASE("devices of drivers have the address that NVIDIA's and AMD's drivers tell by names of their own")
{
	for (const char *name : {"resource.kubernetes.io/pciBusID", "gpu.example.com/pcieBusID", "gpu.example.com/pciAddr"}) {
		INFO(name);
		const auto n = of_drivers({{"gpu-0", {{name, std::string("0000:01:00.0")}}, {}, false, ""}});
		CHECK(n.gres.at(0).devices.at(0).pci == "0000:01:00.0");
	}
}

TEST_CASE("a device is near the cores of its NUMA node, which its driver says, or the agent of its root of PCI Express")
{
	using Cores = std::vector<std::uint16_t>;
	using Attributes = std::map<std::string, kube::AttributeValue>;
	// two sockets of four cores, in two halves each
	const NumaCores numa{{{0, {0, 1}}, {1, {2, 3}}, {2, {4, 5}}, {3, {6, 7}}}, {{"pci0000:00", 0}, {"pci0000:c0", 3}, {"pci0000:f0", 9}}};
	struct Row {
		Attributes said;
		std::uint32_t sockets, cores_per_socket;
		std::string node;
		Cores cores, socket_cores;
	};
	const std::string node = "gpu.example.com/numaNode", root = "resource.kubernetes.io/pcieRoot";
	const Row rows[] = {
		{{{node, std::int64_t{1}}}, 2, 4, "1", {2, 3}, {0, 1, 2, 3}},
		{{{"resource.kubernetes.io/numaNode", std::int64_t{2}}}, 2, 4, "2", {4, 5}, {4, 5, 6, 7}},
		{{{root, std::string("pci0000:c0")}}, 2, 4, "3", {6, 7}, {4, 5, 6, 7}},
		{{{node, std::int64_t{0}}, {root, std::string("pci0000:c0")}}, 2, 4, "0", {0, 1}, {0, 1, 2, 3}},
		{{{node, std::int64_t{-1}}, {root, std::string("pci0000:c0")}}, 2, 4, "3", {6, 7}, {4, 5, 6, 7}},
		// SlurmdParameters=numa_node_as_socket
		{{{node, std::int64_t{1}}}, 4, 2, "1", {2, 3}, {2, 3}},
		// nobody knows
		{{}, 2, 4, "", {}, {}},
		{{{node, std::int64_t{7}}}, 2, 4, "7", {}, {}},
		{{{root, std::string("pci0000:f0")}}, 2, 4, "", {}, {}},
		{{{root, std::string("pci0000:11")}}, 2, 4, "", {}, {}},
		// which of Slurm's sockets are slurmd's
		{{{node, std::int64_t{1}}}, 8, 1, "1", {2, 3}, {}},
		// which of the machine's cores are Slurm's
		{{{node, std::int64_t{1}}}, 2, 3, "1", {}, {}},
		{{{node, std::int64_t{1}}}, 0, 0, "1", {}, {}},
	};
	for (const Row &row : rows) {
		CAPTURE(&row - rows);
		NodeGres n = of_drivers({{"gpu-0", row.said, {}, false, ""}});
		add_cores(n, numa, row.sockets, row.cores_per_socket);
		const IdentifiedDevice &d = n.gres.at(0).devices.at(0);
		CHECK(d.numa == row.node);
		CHECK(d.cores == row.cores);
		CHECK(d.socket_cores == row.socket_cores);
	}
	NodeGres n = of_drivers({{"gpu-0", {{node, std::int64_t{0}}}, {}, false, ""}});
	add_cores(n, {}, 0, 0);
	CHECK(n.gres.at(0).devices.at(0).cores.empty());
}

TEST_CASE("which files a class's devices are is said in the settings, and of NVIDIA's driver known")
{
	const struct {
		const char *device_class, *index, *file, *wanted;
	} rows[] = {
		{"gpu.nvidia.com", "", "", "/dev/nvidia%d"},
		{"gpu.nvidia.com", "", "/dev/gpus/%d", "/dev/gpus/%d"},
		{"gpu.nvidia.com", "", "none", ""},
		{"gpu.nvidia.com", "slot", "", ""},
		{"gpu.example.com", "", "", ""},
		{"gpu.example.com", "slot", "/dev/card%d", "/dev/card%d"},
	};
	for (const auto &row : rows) {
		CAPTURE(row.device_class, row.index, row.file);
		ResourceSettings r{"", "gpu", ""};
		r.device_class = row.device_class;
		r.index = row.index;
		r.file = row.file;
		CHECK(device_file_of(r) == row.wanted);
	}
}

TEST_CASE("of devices with a driver just those are kept from jobs that are absent or are to be left alone")
{
	const kube::Device zero{"gpu-0", {}, {}, false, ""}, one{"gpu-1", {}, {}, true, ""}, three{"gpu-3", {}, {}, false, ""};
	CHECK(missing_gres(of_drivers({zero, one, three}), {{"gpu", "a100", 4, {}}}) == GresList{{"gpu", "", 2, {1, 2}}});
	CHECK(missing_gres(of_drivers({zero, three}), {{"gpu", "a100", 2, {}}, {"gpu", "t4", 2, {}}}) == GresList{{"gpu", "", 2, {1, 2}}});
	CHECK(missing_gres(of_drivers({zero, one, three}, ResourceSettings::Missing::ignore), {{"gpu", "a100", 4, {}}}).empty());
	CHECK(missing_gres(of_drivers({zero}), {{"gpu", "a100", 1, {}}}).empty());
	CHECK(missing_gres(of_drivers({}), {{"gpu", "a100", 1, {}}}).empty()); // its driver is not there: it says nothing
	CHECK(missing_gres(of_drivers({}, ResourceSettings::Missing::all), {{"gpu", "a100", 2, {}}}) == GresList{{"gpu", "", 2, {0, 1}}});
	CHECK(missing_gres(of_drivers({zero}, ResourceSettings::Missing::all), {{"gpu", "a100", 2, {}}}) == GresList{{"gpu", "", 1, {1}}});
}

TEST_CASE("an index that two devices have is kept from jobs, whatever may be missing, and said")
{
	const kube::Device zero{"gpu-0", {}, {}, false, ""}, twin{"x-0", {}, {}, false, ""}, one{"gpu-1", {}, {}, false, ""};
	const GresList slurm{{"gpu", "a100", 4, {}}};
	const NodeGres node = of_drivers({zero, twin, one}, ResourceSettings::Missing::ignore);
	CHECK(missing_gres(node, slurm) == GresList{{"gpu", "", 1, {0}}});
	CHECK(missing_gres(of_drivers({zero, twin, one}), slurm) == GresList{{"gpu", "", 3, {0, 2, 3}}});
	CHECK(missing_gres(of_drivers({zero, twin}), slurm) == GresList{{"gpu", "", 4, {0, 1, 2, 3}}});
	REQUIRE(node.odd_indices.size() == 1);
	CHECK(node.odd_indices[0].starts_with("index 0 of gpu is device gpu-0 of gpu.example.com (deviceClass gpu.example.com) and device x-0"));
	CHECK(node.problems == node.odd_indices);
}
