// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/gres.h"

#include "lib/core/foreign_pods.h"
#include "lib/core/hold_journal.h"
#include "lib/core/hold_table.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;

namespace {

const PodKey key{"c", "ns", "p", "uid"};

Job job(GresList gres, sk8_job_state state = SK8_JOB_RUNNING)
{
	Job j;
	j.ref = {7, 1000};
	j.state = state;
	j.node = "n1";
	j.cores = {0};
	j.gres = std::move(gres);
	return j;
}

GresList masked(HoldTable &t)
{
	const auto snapshot = t.masks();
	if (!snapshot)
		return {};
	REQUIRE(snapshot->masks.size() == 1);
	const NodeMask &m = *snapshot->masks[0];
	REQUIRE(m.gres_abi.size() == m.gres.size());
	for (std::size_t i = 0; i < m.gres.size(); i++) {
		CHECK(m.gres_abi[i].name == m.gres[i].name);
		CHECK(m.gres_abi[i].count == m.gres[i].count);
		CHECK(m.gres_abi[i].device_count == m.gres[i].devices.size());
	}
	return m.gres;
}

} // namespace

TEST_CASE("an extended resource is the GRES that the settings say, else our own, else none")
{
	struct Row {
		std::map<std::string, std::int64_t> asks;
		const char *gres;
	};
	const std::vector<ResourceSettings> settings{
		{"amd.com/gpu", "gpu", "mi300"}, {"nvidia.com/mig-1g.5gb", "gpu", "1g.5gb"}, {"example.com/fpga", "fpga", ""}};
	static const Row rows[] = {
		{{{"nvidia.com/gpu", 2}}, "gpu:2"},
		{{{"amd.com/gpu", 2}}, "gpu:mi300:2"},
		{{{"nvidia.com/gpu", 1}, {"amd.com/gpu", 1}}, "gpu:1,gpu:mi300:1"},
		{{{"example.com/fpga", 1}, {"nvidia.com/mig-1g.5gb", 3}}, "fpga:1,gpu:1g.5gb:3"},
		{{{"example.com/other", 5}, {"hugepages-2Mi", 1 << 21}}, ""},
		{{{"nvidia.com/gpu", 0}}, ""},
		{{{"nvidia.com/gpu", -1}}, ""},
		{{{"nvidia.com/gpu", INT64_MAX}}, "gpu:1000000"},
	};
	for (const Row &row : rows)
		CHECK(gres_request(gres_of(row.asks, settings)) == row.gres);
	CHECK(gres_request(gres_of({{"amd.com/gpu", 1}, {"nvidia.com/gpu", 1}}, {})) == "gpu:2");
}

// Identified as GRES, and yet whether they are devices that Slurm has nobody can know: neither side holds them for the other.
static const std::map<std::string, std::int64_t> only_identified{
	{"nvidia.com/mig-1g.5gb", 7}, {"gpu.intel.com/i915", 2}, {"gpu.intel.com/xe", 1}, {"rdma/hca", 4}, {"hugepages-2Mi", 1 << 30}};

TEST_CASE("what pods have of resources that settings do not name is kept from jobs of whole GPUs alone")
{
	CHECK(gres_of(only_identified, {}).empty());
	CHECK(gres_request(gres_of(only_identified, {{"rdma/hca", "rdma", "hca"}})) == "rdma:hca:4");
}

TEST_CASE("pods of jobs request of resources that settings do not name whole GPUs alone")
{
	const GresList has{{"gpu", "", 1, {}}, {"gpu", "1g.5gb", 1, {}}, {"gpu", "i915", 1, {}}, {"gpu", "xe", 1, {}}, {"rdma", "hca", 1, {}}, {"rdma", "", 1, {}},
		{"hugepages", "2Mi", 1, {}}};
	CHECK(extended_of(has, with_own({}), only_identified).empty());
	CHECK(extended_of(has, with_own({{"rdma/hca", "rdma", "hca"}, {"gpu.intel.com/xe", "gpu", "xe"}}), only_identified) ==
	      std::map<std::string, std::int64_t>{{"rdma/hca", 1}, {"gpu.intel.com/xe", 1}});
}

TEST_CASE("devices that only Kubernetes knows are a GRES with types, and of these alone steps are told")
{
	const std::vector<ResourceSettings> settings{
		{"nvidia.com/gpu", "gpu", ""}, {"rdma/hca", "k8s", "rdma_hca"}, {"example.com/fpga", "k8s", "fpga"}};
	const std::map<std::string, std::int64_t> all{{"nvidia.com/gpu", 8}, {"rdma/hca", 2}, {"example.com/fpga", 1}};
	CHECK(gres_request(gres_of(all, settings)) == "gpu:8,k8s:fpga:1,k8s:rdma_hca:2");
	const auto asked = extended_of({{"gpu", "", 1, {}}, {"k8s", "rdma_hca", 1, {}}}, settings, all);
	CHECK(asked == std::map<std::string, std::int64_t>{{"nvidia.com/gpu", 1}, {"rdma/hca", 1}});
	CHECK(step_devices(asked, settings) == "rdma/hca");
	CHECK(step_devices(all, settings) == "example.com/fpga,rdma/hca");
	CHECK(step_devices({{"nvidia.com/gpu", 1}, {"amd.com/gpu", 1}}, settings).empty());
}

TEST_CASE("what is known of devices is told with their numbers")
{
	CHECK(gres_text({{"gpu", "a100", 3, {0, 1, 5}}, {"token", "", 2, {}}}) == "gpu:a100:3(0-1,5),token:2");
	CHECK(gres_text({}).empty());
}

TEST_CASE("a leaving pod's devices are masked, exactly those, and only while no job covers them")
{
	HoldTable t;
	const GresList had{{"gpu", "a100", 2, {1, 3}}, {"token", "", 5, {}}};
	t.job_started(key, job(had));
	const auto hold = t.place(key, {7, 1000});
	REQUIRE(hold);
	CHECK(hold->gres == had);
	CHECK(masked(t).empty());
	t.job_ended(key, {7, 1000});
	CHECK(masked(t) == had);
	t.release(key);
	CHECK(masked(t) == had); // until a scheduling pass is over
	t.let_masks_go();
	CHECK(masked(t).empty());
}

TEST_CASE("a suspended job keeps its GRES itself")
{
	HoldTable t;
	t.job_started(key, job({{"gpu", "", 1, {2}}}));
	REQUIRE(t.place(key, {7, 1000}));
	t.job_started(key, job({{"gpu", "", 1, {2}}}, SK8_JOB_SUSPENDED));
	CHECK(masked(t).empty());
	REQUIRE(t.masks());
}

TEST_CASE("an adopted pod holds a number of devices until its job has some")
{
	HoldTable t;
	Hold adopted;
	adopted.key = key;
	adopted.node = "n1";
	adopted.gres = {{"gpu", "", 2, {}}};
	t.adopt(adopted);
	CHECK(masked(t) == adopted.gres);
	t.job_started(key, job({{"gpu", "", 2, {0, 1}}}));
	t.job_ended(key, {7, 1000});
	CHECK(masked(t) == GresList{{"gpu", "", 2, {0, 1}}});
}

TEST_CASE("devices of pods that nobody knows are counted together, those that are known one by one")
{
	const GresList sum = merged({{"gpu", "", 1, {}}, {"gpu", "", 1, {3}}, {"gpu", "a100", 1, {}}, {"gpu", "", 2, {}},
				     {"gpu", "", 0, {}}, {"gpu", "", 2, {2, 0}}});
	CHECK(gres_text(sum) == "gpu:3,gpu:2(0,2),gpu:1(3),gpu:a100:1");
}

TEST_CASE("a job that a killed slurmctld brought back with a device of another pod is told apart from one with a share")
{
	CHECK(devices_collide({{"gpu", "", 2, {0, 1}}}, {{"gpu", "a100", 1, {1}}}));
	CHECK_FALSE(devices_collide({{"gpu", "", 2, {0, 1}}}, {{"gpu", "", 1, {2}}}));
	CHECK_FALSE(devices_collide({{"gpu", "", 1, {0}}}, {{"nic", "", 1, {0}}}));
	CHECK_FALSE(devices_collide({{"shard", "", 1, {0}}}, {{"shard", "", 1, {0}}}));
	HoldTable t;
	t.job_started(key, job({{"gpu", "", 1, {2}}}));
	REQUIRE(t.place(key, {7, 1000}));
	t.job_ended(key, {7, 1000});
	const PodKey other{"c", "ns", "q", "other"};
	CHECK(t.masked_by_other(other, "n1", {5}, {{"gpu", "", 1, {2}}}));
	CHECK_FALSE(t.masked_by_other(other, "n1", {5}, {{"gpu", "", 1, {1}}}));
}

TEST_CASE("the saved ledger keeps devices, and refuses what makes no sense")
{
	Hold h;
	h.key = key;
	h.node = "n1";
	h.gres = {{"gpu", "a100", 2, {0, 3}}, {"token", "", 7, {}}};
	const std::string header = "{\"v\":1}\n";
	auto read = parse_journal(header + journal_line(h));
	REQUIRE(read);
	CHECK(read->holds == std::vector{h});

	const std::string begin = R"({"hold":"k8s:c/ns/p/uid","node":"n1","cores":[],"more":0,"mb":0,"gres":)";
	CHECK(parse_journal(header + begin + "[]}\n"));
	std::string many = "[";
	for (int i = 0; i < 65; i++)
		many += std::string(i ? "," : "") + R"({"name":"g","type":"","count":1,"devices":[]})";
	for (const std::string &bad :
	     {std::string("{}"), std::string("[1]"), std::string(R"([{"name":"gpu","type":"","count":-1,"devices":[]}])"),
	      std::string(R"([{"name":"","type":"","count":1,"devices":[]}])"),
	      std::string(R"([{"name":"a,b","type":"","count":1,"devices":[]}])"),
	      std::string(R"([{"name":"gpu","type":"x=y","count":1,"devices":[]}])"),
	      std::string(R"([{"name":"gpu","type":"","count":1,"devices":[65536]}])"),
	      std::string(R"([{"name":"gpu","type":"","count":1}])"), many + "]"}) {
		CAPTURE(bad);
		CHECK_FALSE(parse_journal(header + begin + bad + "}\n"));
	}
}

TEST_CASE("a job's GRES are the extended resources that the settings name and the node has")
{
	const std::vector<ResourceSettings> named{
		{"nvidia.com/gpu", "gpu", ""}, {"nvidia.com/mig-1g.5gb", "gpu", "1g.5gb"}, {"amd.com/gpu", "gpu", ""}, {"example.com/token", "token", ""}};
	using Amounts = std::map<std::string, std::int64_t>;
	const Amounts node{{"nvidia.com/gpu", 4}, {"nvidia.com/mig-1g.5gb", 7}, {"example.com/token", 5}};
	CHECK(extended_of({{"gpu", "a100", 1, {0}}, {"gpu", "h100", 2, {2, 3}}}, named, node) == Amounts{{"nvidia.com/gpu", 3}});
	CHECK(extended_of({{"gpu", "1g.5gb", 1, {}}}, named, node) == Amounts{{"nvidia.com/mig-1g.5gb", 1}});
	CHECK(extended_of({{"gpu", "", 2, {}}, {"token", "", 3, {}}, {"nic", "", 1, {}}}, named, node) ==
	      Amounts{{"nvidia.com/gpu", 2}, {"example.com/token", 3}});
	CHECK(extended_of({{"gpu", "", 2, {}}}, named, {{"amd.com/gpu", 8}}) == Amounts{{"amd.com/gpu", 2}});
	CHECK(extended_of({{"gpu", "", 2, {}}}, named, {}).empty()); // no device plugin: nobody counts them
	CHECK(extended_of({{"gpu", "", 2, {}}}, {}, node).empty());  // not named: not ours to ask for
}

TEST_CASE("a job's GPUs are those that everybody knows by their name, too, but not its slices of one")
{
	using Amounts = std::map<std::string, std::int64_t>;
	const auto known = with_own({{"example.com/fpga", "fpga", ""}});
	const Amounts node{{"nvidia.com/gpu", 4}, {"nvidia.com/mig-1g.5gb", 7}, {"example.com/fpga", 1}};
	CHECK(extended_of({{"gpu", "a100", 1, {0}}, {"gpu", "h100", 2, {2, 3}}, {"fpga", "", 1, {}}}, known, node) ==
	      Amounts{{"nvidia.com/gpu", 3}, {"example.com/fpga", 1}});
	CHECK(extended_of({{"gpu", "1g.5gb", 2, {}}}, known, node).empty());
	CHECK(extended_of({{"gpu", "i915", 1, {}}}, known, {{"nvidia.com/gpu", 4}, {"gpu.intel.com/i915", 1}}).empty());
	CHECK(extended_of({{"gpu", "", 1, {}}}, known, {{"amd.com/gpu", 0}}) == Amounts{{"amd.com/gpu", 1}}); // its plugin is away
	CHECK(extended_of({{"gpu", "", 1, {}}}, known, {{"gpu.intel.com/i915", 1}}).empty());
	// What settings say goes first, of a type and of a resource.
	const auto named = with_own({{"example.com/card", "gpu", ""}, {"amd.com/gpu", "gpu", "mi300"}});
	CHECK(extended_of({{"gpu", "a100", 1, {}}, {"gpu", "mi300", 2, {}}}, named, {{"nvidia.com/gpu", 4}, {"amd.com/gpu", 2}}) ==
	      Amounts{{"nvidia.com/gpu", 1}, {"amd.com/gpu", 2}});
	CHECK(extended_of({{"gpu", "a100", 1, {}}}, named, {{"nvidia.com/gpu", 4}, {"example.com/card", 2}}) == Amounts{{"example.com/card", 1}});
	CHECK(extended_of({{"gpu", "", 1, {}}}, with_own({{"nvidia.com/gpu", "shard", ""}}), node).empty());
}

TEST_CASE("a part of GRES is no more of any name and type")
{
	const GresList whole{{"gpu", "a100", 2, {0, 1}}, {"gpu", "h100", 1, {2}}, {"token", "", 3, {}}};
	for (const GresList &part : std::initializer_list<GresList>{
		     {}, whole, {{"gpu", "", 3, {}}}, {{"gpu", "a100", 1, {}}, {"gpu", "", 2, {}}}, {{"token", "", 1, {}}}}) {
		CAPTURE(gres_text(part));
		CHECK(is_part_of(part, whole));
	}
	for (const GresList &more : std::initializer_list<GresList>{
		     {{"gpu", "", 4, {}}}, {{"gpu", "a100", 3, {}}}, {{"gpu", "a100", 2, {}}, {"gpu", "", 2, {}}}, {{"nic", "", 1, {}}},
		     {{"token", "red", 1, {}}}}) {
		CAPTURE(gres_text(more));
		CHECK_FALSE(is_part_of(more, whole));
	}
}
