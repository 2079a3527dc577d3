// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/settings.h"

#include <fstream>
#include <sstream>

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;

TEST_CASE("a small configuration is enough")
{
	auto s = parse_settings("clusters:\n"
				"  - name: prod\n"
				"    kubeconfig: /etc/slurm/k8s.kubeconfig\n"
				"    namespaces:\n"
				"      - {match: \"ml-*\", user: mlsvc, account: ml, allow: {qos: [high]}}\n",
				"f.yaml");
	REQUIRE(s);
	REQUIRE(s->clusters.size() == 1);
	const auto &c = s->clusters[0];
	CHECK(c.scheduler_names == std::vector<std::string>{"slurm"});
	CHECK(c.namespaces.at(0).allow.qos == std::vector<std::string>{"high"});
	CHECK(c.pods.default_memory_bytes == 256 << 20);
	CHECK(c.pods.kill_grace == Millis(30'000));
}

TEST_CASE("all mistakes are told at once, with their lines and what would be right")
{
	auto s = parse_settings("clusters:\n"
				"  - name: \"a b\"\n"
				"    namspaces: []\n"
				"    nodes: {selector: \"a=b,\"}\n"
				"    pods: {bindTimeout: 0s}\n"
				"    resources: [{kubernetes: gpu, gres: \"a,b\"}, {kubernetes: x.io/y, gres: g, type: \"a=b\"}]\n",
				"f.yaml");
	REQUIRE_FALSE(s.ok());
	const std::string &text = s.error().message;
	CAPTURE(text);
	CHECK(text.find("f.yaml:2: clusters[0].name:") != text.npos);
	CHECK(text.find("f.yaml:3: clusters[0]") != text.npos);
	CHECK(text.find("namespaces") != text.npos); // the name that was meant
	CHECK(text.find("f.yaml:4: clusters[0].nodes.selector:") != text.npos);
	CHECK(text.find("f.yaml:5: clusters[0].pods.bindTimeout:") != text.npos);
	CHECK(text.find("f.yaml:6: clusters[0].resources[0].kubernetes: ") != text.npos);
	CHECK(text.find("f.yaml:6: clusters[0].resources[0].gres: ") != text.npos);
	CHECK(text.find("f.yaml:6: clusters[0].resources[1].type: ") != text.npos);
}

TEST_CASE("a device that only Kubernetes knows has its resource's name as type, if nobody gives it one")
{
	const auto resources = [](const std::string &list) { return parse_settings("clusters: [{name: a, resources: [" + list + "]}]", "f"); };
	const auto s = resources("{kubernetes: rdma/hca, gres: k8s}, {kubernetes: example.com/fpga, gres: k8s, type: fpga}, "
				 "{kubernetes: example.com/card, gres: card}");
	REQUIRE(s);
	const auto &r = s->clusters[0].resources;
	CHECK(r[0].type == "rdma_hca");
	CHECK(r[1].type == "fpga");
	CHECK(r[2].type.empty());
	const std::string longest = "x.io/" + std::string(59, 'x');
	CHECK(resources("{kubernetes: " + longest + ", gres: k8s}"));
	const auto too_long = resources("{kubernetes: " + longest + "x, gres: k8s}");
	REQUIRE_FALSE(too_long);
	CAPTURE(too_long.error().message);
	CHECK(too_long.error().message.find("f:1: clusters[0].resources[0].kubernetes: needs a type") == 0);
	CHECK(resources("{kubernetes: " + longest + "x, gres: k8s, type: card}"));
}

TEST_CASE("two devices that only Kubernetes knows are two types, whoever names them")
{
	const auto why = [](const std::string &more) {
		const auto s = parse_settings("clusters:\n- name: a\n  resources:\n  - {kubernetes: x.io/a, gres: k8s, type: x}\n" + more, "f");
		return s ? "" : s.error().message;
	};
	CHECK(why("  - {kubernetes: x.io/b, gres: k8s, type: x}\n") ==
	      "f:5: clusters[0].resources[1].type: k8s:x is x.io/a already; give x.io/b another type");
	CHECK(why("  - {kubernetes: x.io/b, gres: k8s}\n  - {kubernetes: y.io/c, gres: k8s, type: x.io_b}\n").find("f:6: clusters[0].resources[2].type: k8s:x.io_b is x.io/b already") == 0);
	CHECK(why("  - {kubernetes: x.io/b, gres: k8s, type: y}\n").empty());
	CHECK(why("  - {kubernetes: x.io/b, gres: fpga, type: x}\n").empty());
}

TEST_CASE("a GRES is an extended resource or a class of devices, and no class where nodes are mixed")
{
	const auto why = [](const std::string &list, const std::string &nodes = "{}") {
		const auto s = parse_settings("clusters: [{name: a, nodes: " + nodes + ", resources: [" + list + "]}]", "f");
		return s ? "" : s.error().message;
	};
	const auto s = parse_settings("clusters: [{name: a, resources: [{deviceClass: gpu.example.com, gres: gpu, type: a100, index: slot}]}]", "f");
	REQUIRE(s);
	CHECK(s->clusters[0].resources[0].device_class == "gpu.example.com");
	CHECK(s->clusters[0].resources[0].index == "slot");
	CHECK(why("{gres: gpu}").find("resources[0]: has neither kubernetes nor deviceClass") != std::string::npos);
	CHECK(why("{kubernetes: x.io/y, deviceClass: z, gres: gpu}").find("kubernetes: and deviceClass are two things") != std::string::npos);
	CHECK(why("{kubernetes: x.io/y, gres: gpu, index: a}").find("index: is for a deviceClass") != std::string::npos);
	CHECK(why("{kubernetes: x.io/y, gres: gpu, typeAttribute: a}").find("typeAttribute: is for a deviceClass") != std::string::npos);
	CHECK(why("{deviceClass: x, gres: gpu, typeAttribute: a}").empty());
	CHECK(why("{deviceClass: x, gres: k8s}").find("deviceClass: cannot be GRES k8s") != std::string::npos);
	CHECK(why("{deviceClass: '', gres: gpu}").find("deviceClass: ") != std::string::npos);
	CHECK(why("{deviceClass: x, gres: gpu}", "{sharing: dedicated}").empty());
	CHECK(why("{deviceClass: x, gres: gpu}", "{sharing: mixed}").find("resources: has a deviceClass, which cannot be had together") != std::string::npos);
	CHECK(why("{deviceClass: x, gres: gpu}", "{groups: [{selector: a=b, sharing: mixed}]}").find("sharing: mixed") != std::string::npos);
}

TEST_CASE("the device files of a class are below /dev and end with their index, for Slurm reads no others")
{
	const auto why = [](const std::string &resource) {
		const auto s = parse_settings("clusters: [{name: a, resources: [" + resource + "]}]", "f");
		return s ? "" : s.error().message;
	};
	for (const std::string &good : std::vector<std::string>{"/dev/nvidia%d", "/dev/dri/renderD%d", "/dev/a-b_c.d:e/%d", "none", "/dev/" + std::string(121, 'x') + "%d"}) {
		INFO(good);
		CHECK(why("{deviceClass: x, gres: gpu, file: '" + good + "'}").empty());
	}
	for (const std::string &bad : std::vector<std::string>{"''", "nvidia%d", "/dev/nvidia", "/dev/%d/x", "/dev/%d%d", "/dev/../etc/%d", "/tmp/%d", "'/dev/a b%d'", "'/dev/[0-3]%d'",
				      "'/dev/a,/dev/b%d'", "'/dev/x#%d'", "\"/dev/x\\nName=gpu%d\"", "/dev/%s", "/dev/" + std::string(122, 'x') + "%d"}) {
		INFO(bad);
		CHECK(why("{deviceClass: x, gres: gpu, file: " + bad + "}").find("f:1: clusters[0].resources[0].file: ") == 0);
	}
	CHECK(why("{kubernetes: x.io/y, gres: gpu, file: /dev/y%d}").find("file: is for a deviceClass") != std::string::npos);
}

TEST_CASE("two clusters of one name are refused")
{
	CHECK_FALSE(parse_settings("clusters: [{name: a}, {name: a}]", "f").ok());
	CHECK(parse_settings("clusters: [{name: a}, {name: b}]", "f").ok());
	CHECK_FALSE(parse_settings("clusters: []", "f").ok());
}

TEST_CASE("every key is documented")
{
	for (const auto &row : describe_settings()) {
		CAPTURE(row.path);
		CHECK(row.help.size() > 10);
	}
}

// TOP_SRCDIR: from local.mk.
static std::string example()
{
	std::ifstream file(TOP_SRCDIR "/etc/slurm-k8s.yaml");
	std::ostringstream text;
	text << file.rdbuf();
	return text.str();
}

// "#key: value" is a setting that is not set, "# text" a comment.
// Settings begin right after their '#', and what is under resources two letters behind it, words for people one.
enum class Resources { off, set };

static std::string with_all_set(const std::string &text, Resources resources = Resources::off)
{
	std::istringstream in(text);
	std::string out;
	bool in_resources = false;
	for (std::string line; std::getline(in, line); out += line + "\n") {
		const auto at = line.find_first_not_of(' ');
		const bool is_off = at != line.npos && line[at] == '#' && at + 1 < line.size(), is_key = is_off && isalpha(line[at + 1]);
		if (is_key)
			in_resources = resources == Resources::set && line.find("#resources:") == at;
		if ((is_key && (in_resources || line.find("#resources:") != at)) || (is_off && in_resources && line.compare(at, 3, "#  ") == 0))
			line.erase(at, 1);
	}
	return out;
}

TEST_CASE("the example configuration is right, as it is and with all its settings set")
{
	const std::string text = example();
	REQUIRE(text.size() > 100);
	auto s = parse_settings(text, "slurm-k8s.yaml");
	if (!s)
		FAIL(s.error().message);
	CHECK(s->clusters.at(0).namespaces.size() == 2);
	CHECK(s->clusters[0].pods == PodSettings{}); // what it shows as defaults are the defaults

	auto all = parse_settings(with_all_set(text), "slurm-k8s.yaml");
	if (!all)
		FAIL(all.error().message);
	CHECK(all->clusters.at(0).context == "prod-admin");
	CHECK(all->clusters[0].pods.priority_classes.size() == 2);
	CHECK(s->tokens == TokenSettings{});
	CHECK(all->tokens.partitions == std::vector<std::string>{"batch", "gpu-*"});
	// A deviceClass and mixed nodes are either, and the example says so.
	std::string of_devices = with_all_set(text, Resources::set);
	const std::string mixed = "sharing: mixed}]";
	REQUIRE(of_devices.find(mixed) != of_devices.npos);
	auto with = parse_settings(of_devices.replace(of_devices.find(mixed), mixed.size(), "sharing: dedicated}]"), "slurm-k8s.yaml");
	if (!with)
		FAIL(with.error().message);
	const auto &resources = with->clusters[0].resources;
	REQUIRE(resources.size() == 5);
	CHECK(resources[0].devices.at(0).ids.size() == 2);
	CHECK(resources[0].missing == ResourceSettings::Missing::ignore);
	CHECK((resources[1].kubernetes + " " + resources[1].type) == "rdma/hca rdma_hca");
	CHECK((resources[2].file + " " + resources[3].type_attribute + " " + resources[4].index) == "/dev/nvidia%d productName slot");
	CHECK(all->clusters[0].nodes.groups == std::vector<NodeGroupSettings>{{"pool=gpu", Sharing::mixed}});
}

TEST_CASE("the example configuration shows every key")
{
	const std::string text = with_all_set(example());
	for (const auto &row : describe_settings()) {
		const std::string key = row.path.substr(row.path.rfind('.') + 1);
		CAPTURE(row.path);
		CHECK(text.find(key + ":") != text.npos);
	}
}
