// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/job_request.h"

#include <limits>

#include "lib/core/node_view.h"
#include "lib/core/placement.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;

namespace {

ClusterSettings mapping()
{
	ClusterSettings s;
	s.name = "c";
	NamespaceSettings ml;
	ml.match = "ml-*";
	ml.user = "mlsvc";
	ml.account = "ml";
	ml.partition = "gpu";
	ml.allow.qos = {"high", "n*"};
	s.namespaces = {ml};
	s.resources = {{"example.com/token", "token", ""}};
	return s;
}

std::optional<Account> lookup(const std::string &user)
{
	if (user == "mlsvc")
		return Account{1500, 1600};
	return std::nullopt;
}

kube::Pod pod()
{
	kube::Pod p;
	p.meta.ns = "ml-train";
	p.meta.name = "p";
	p.meta.uid = "u";
	p.request.milli_cpu = 1000;
	p.request.memory_bytes = 1 << 20;
	return p;
}

Result<JobRequest> request(const kube::Pod &p, const ClusterSettings &s = mapping())
{
	return make_request({"c", p.meta.ns, p.meta.name, p.meta.uid}, p, s, lookup);
}

} // namespace

TEST_CASE("a pod is not placed where its kubelet knows no such extended resource, and would run it without")
{
	struct Row {
		const char *what;
		std::map<std::string, std::int64_t> allocatable, capacity;
		const char *objection;
	};
	const Row row = GENERATE(Row{"another vendor's", {{"amd.com/gpu", 4}}, {}, "no nvidia.com/gpu"},
				 Row{"there", {{"nvidia.com/gpu", 4}}, {}, ""},
				 Row{"none is well just now: the kubelet refuses", {{"nvidia.com/gpu", 0}}, {}, ""},
				 Row{"its plugin is away", {}, {{"nvidia.com/gpu", 4}}, ""});
	CAPTURE(row.what);
	kube::Node node;
	node.allocatable.extended = row.allocatable;
	node.capacity = row.capacity;
	kube::Pod p;
	p.request.extended["nvidia.com/gpu"] = 1;
	p.request.extended["example.com/none"] = 0;
	CHECK(objection(p, {}, node) == row.objection);
	p.request.extended["nvidia.com/gpu"] = 0;
	CHECK(objection(p, {}, node).empty());
}

TEST_CASE("a device plugin that comes, or one that another pod wants, is another answer; a number is not")
{
	auto shared = std::make_shared<kube::Node>();
	shared->meta.name = "n1";
	const auto with = [&](std::int64_t gpus) {
		auto n = std::make_shared<kube::Node>(*shared);
		n->allocatable.extended["nvidia.com/gpu"] = gpus;
		return n;
	};
	NodeView view{NodeSettings{}};
	view.set_slurm({{"n1", 1}});
	view.replace({shared});
	kube::Pod p, q;
	p.request.extended["nvidia.com/gpu"] = 1;
	q.request.extended["amd.com/gpu"] = 1;
	CHECK(view.choose(p, {}).excluded == "n1");
	CHECK(view.change(with(0)));
	CHECK(view.choose(p, {}).excluded.empty());
	CHECK(view.choose(q, {}).excluded == "n1");
	CHECK_FALSE(view.change(with(4)));
}

TEST_CASE("requests become whole hardware threads and MiB, rounded up")
{
	struct Row {
		std::int64_t milli, bytes;
		std::uint32_t cpus;
		std::uint64_t mb;
	};
	const Row rows[] = {
		{1, 1, 1, 1},          {200, 1 << 20, 1, 1},   {1000, (1 << 20) + 1, 1, 2},
		{1001, 5 << 20, 2, 5}, {0, 1 << 20, 1, 1},     {2500, 0, 3, 256},
		{999'999'001, 1, 1'000'000, 1},
	};
	for (const Row &row : rows) {
		kube::Pod p = pod();
		p.request.milli_cpu = row.milli;
		p.request.memory_bytes = row.bytes;
		auto r = request(p);
		CAPTURE(row.milli, row.bytes);
		REQUIRE(r);
		CHECK(r->cpus == row.cpus);
		CHECK(r->memory_mb == row.mb);
	}
}

TEST_CASE("activeDeadlineSeconds with the pod's grace, and the annotation, limit the time; the shorter one counts")
{
	struct Row {
		std::optional<std::int64_t> deadline;
		const char *key, *value;
		std::uint32_t minutes;
		std::int64_t grace = 30;
	};
	const Row rows[] = {
		{{}, nullptr, nullptr, 0},
		{1, nullptr, nullptr, 2}, // the kubelet ends it first, and its containers may take their grace
		{60, nullptr, nullptr, 3},
		{60, nullptr, nullptr, 2, 0},
		{90, nullptr, nullptr, 3},
		{91, nullptr, nullptr, 4},
		{60, nullptr, nullptr, 62, 3600},
		{std::numeric_limits<std::int64_t>::max(), nullptr, nullptr, std::numeric_limits<std::uint32_t>::max()},
		{{}, "slurm-k8s.io/time-limit", "90", 90},
		{{}, "slurmjob.slinky.slurm.net/timelimit", "30", 30}, // minutes
		{{}, "sunk.coreweave.com/timeout", "90", 2},           // seconds
		{600, "slurm-k8s.io/time-limit", "90", 12},
		{6000, "slurm-k8s.io/time-limit", "90", 90},
	};
	for (const Row &row : rows) {
		kube::Pod p = pod();
		p.active_deadline_seconds = row.deadline;
		p.grace_seconds = row.grace;
		if (row.key)
			p.meta.annotations[row.key] = row.value;
		auto r = request(p);
		REQUIRE(r);
		CHECK(r->time_limit_minutes == row.minutes);
	}
}

TEST_CASE("identity comes from the mapping, and claims count only as far as it allows")
{
	auto r = request(pod());
	REQUIRE(r);
	CHECK(r->identity.uid == 1500);
	CHECK(r->identity.gid == 1600);
	CHECK(r->identity.account == "ml");
	CHECK(r->identity.partition == "gpu");

	struct Row {
		const char *key, *value;
		bool allowed;
	};
	const Row rows[] = {
		{"slurm-k8s.io/qos", "high", true},
		{"slurm-k8s.io/qos", "normal", true},
		{"slurm-k8s.io/qos", "admin", false},
		{"slurm-k8s.io/qos", "normal,admin", false}, // n* is no leave for a list
		{"slurm-k8s.io/qos", "normal,", false},
		{"slurm-k8s.io/qos", "normal,high", true},
		{"slurm-k8s.io/qos", "nice|admin", false},
		{"slurm-k8s.io/qos", "", true}, // the default, which it has anyway
		{"slurm-k8s.io/account", "ml", true}, // what it has anyway
		{"slurm-k8s.io/account", "physics", false},
		{"slurmjob.slinky.slurm.net/partition", "cpu", false},
		{"sunk.coreweave.com/partition", "gpu", true},
		{"slurm-k8s.io/reservation", "maint", false},
		{"slurmjob.slinky.slurm.net/user-id", "1500", true},
		{"slurmjob.slinky.slurm.net/user-id", "0", false},
		{"sunk.coreweave.com/group-id", "0", false},
		{"slurm-k8s.io/licenses", "matlab:1000", false},
	};
	for (const Row &row : rows) {
		kube::Pod p = pod();
		p.meta.annotations[row.key] = row.value;
		CAPTURE(row.key, row.value);
		CHECK(request(p).ok() == row.allowed);
	}

	// Slurm's own default would be another account than the mapped one.
	kube::Pod empty = pod();
	empty.meta.annotations = {{"slurm-k8s.io/account", ""}, {"slurm-k8s.io/partition", ""}};
	CHECK(request(empty)->identity.account == "ml");
	CHECK(request(empty)->identity.partition == "gpu");
}

TEST_CASE("our annotation wins over the peers'")
{
	kube::Pod p = pod();
	p.meta.annotations["sunk.coreweave.com/qos"] = "n3";
	p.meta.annotations["slurmjob.slinky.slurm.net/qos"] = "n2";
	CHECK(request(p)->identity.qos == "n2");
	p.meta.annotations["slurm-k8s.io/qos"] = "n1";
	CHECK(request(p)->identity.qos == "n1");
}

TEST_CASE("what cannot be honoured is refused with a sentence, not ignored")
{
	struct Row {
		void (*edit)(kube::Pod &);
		const char *text;
	};
	static const Row rows[] = {
		{[](kube::Pod &p) { p.meta.ns = "other"; }, "not mapped"},
		{[](kube::Pod &p) { p.resource_claims = {{"gpus", "c"}}; }, "deviceClass"},
		{[](kube::Pod &p) { p.in_pod_group = true; }, "pod groups"},
		{[](kube::Pod &p) { p.has_required_pod_affinity = true; }, "pod affinity"},
		{[](kube::Pod &p) { p.has_topology_spread = true; }, "topologySpreadConstraints"},
		{[](kube::Pod &p) { p.request.extended["example.com/fpga"] = 1; }, "example.com/fpga: resources other than"},
		{[](kube::Pod &p) { p.request.extended["nvidia.com/gpu"] = 1; }, "which of them it gets the kubelet decides"},
		{[](kube::Pod &p) { p.request.extended["example.com/token"] = 1'000'001; }, "more of example.com/token than any node has"},
		{[](kube::Pod &p) { p.problem = "negative cpu"; }, "negative cpu"},
		{[](kube::Pod &p) { p.meta.annotations["slurm-k8s.io/gres"] = "gpu:1"; }, "slurm-k8s.io/gres: not supported"},
		{[](kube::Pod &p) { p.meta.annotations["slurmjob.slinky.slurm.net/exclusive"] = "true"; }, "share nodes"},
		{[](kube::Pod &p) { p.meta.annotations["slurm-k8s.io/time-limit"] = "-1"; }, "not a positive number"},
		{[](kube::Pod &p) { p.meta.annotations["slurm-k8s.io/time-limit"] = "9e9"; }, "not a positive number"},
		{[](kube::Pod &p) { p.meta.annotations["slurm-k8s.io/comment"] = "a\nb"; }, "line ends"},
		{[](kube::Pod &p) { p.meta.annotations["slurm-k8s.io/cpus"] = "500m"; }, "fewer CPUs"},
	};
	for (const Row &row : rows) {
		kube::Pod p = pod();
		row.edit(p);
		auto r = request(p);
		CAPTURE(row.text);
		REQUIRE_FALSE(r.ok());
		CAPTURE(r.error().message);
		CHECK(r.error().message.find(row.text) != std::string::npos);
		CHECK(r.error().message.find('\n') == std::string::npos);
	}
}

TEST_CASE("node constraints as Kubernetes defines them")
{
	kube::Node node;
	node.meta.name = "n1";
	node.meta.labels = {{"zone", "a"}, {"cpus", "64"}};

	struct Row {
		kube::NodeRequirement r;
		bool holds;
	};
	const Row rows[] = {
		{{"zone", "In", {"a", "b"}, false}, true},
		{{"zone", "In", {"b"}, false}, false},
		{{"zone", "NotIn", {"b"}, false}, true},
		{{"missing", "NotIn", {"b"}, false}, true},
		{{"missing", "In", {""}, false}, false},
		{{"zone", "Exists", {}, false}, true},
		{{"missing", "DoesNotExist", {}, false}, true},
		{{"cpus", "Gt", {"63"}, false}, true},
		{{"cpus", "Gt", {"64"}, false}, false},
		{{"cpus", "Lt", {"65"}, false}, true},
		{{"zone", "Gt", {"1"}, false}, false},
		{{"cpus", "Gt", {"1", "2"}, false}, false},
		{{"metadata.name", "In", {"n1"}, true}, true},
		{{"metadata.name", "In", {"n2"}, true}, false},
		{{"zone", "Near", {"a"}, false}, false},
	};
	for (const Row &row : rows) {
		CAPTURE(row.r.key, row.r.op);
		CHECK(matches({row.r}, node) == row.holds);
	}
	CHECK_FALSE(matches({}, node)); // an empty term matches nothing
}

TEST_CASE("taints and tolerations as Kubernetes defines them")
{
	using Op = kube::TolerationOperator;
	using Effect = kube::TaintEffect;
	const kube::Taint taint{"gpu", "yes", Effect::no_schedule};
	struct Row {
		kube::Toleration t;
		bool tolerated;
	};
	const Row rows[] = {
		{{"gpu", "yes", Op::equal, Effect::no_schedule}, true}, {{"gpu", "yes"}, true},
		{{"gpu", "no"}, false},                     {{"gpu", "", Op::exists}, true},
		{{"", "", Op::exists}, true},                   {{}, false},
		{{"gpu", "", Op::exists, Effect::no_execute}, false},   {{"other", "", Op::exists}, false},
		{{"gpu", "yes", Op::other}, false},         {{"gpu", "", Op::exists, Effect::other}, false},
	};
	for (const Row &row : rows) {
		CAPTURE(row.t.key, row.t.value, static_cast<int>(row.t.op), static_cast<int>(row.t.effect));
		CHECK(tolerates({row.t}, taint) == row.tolerated);
	}
	CHECK_FALSE(tolerates({}, taint));
}

TEST_CASE("a node that has less ephemeral storage than a pod requests is none for it, and its kubelet need not refuse it for ever")
{
	kube::Node node;
	kube::Pod p = pod();
	const std::string storage = "ephemeral-storage";
	p.request.extended[storage] = 100;
	CHECK(objection(p, {}, node) == ""); // a kubelet that does not say how much there is
	node.allocatable.extended[storage] = 100;
	CHECK(objection(p, {}, node) == "");
	node.allocatable.extended[storage] = 99;
	CHECK(objection(p, {}, node) == "ephemeral-storage");
	p.request.extended.clear();
	CHECK(objection(p, {}, node) == "");
}

TEST_CASE("pods with other requests of ephemeral storage have other nodes, and a node that gets more is noticed")
{
	NodeSettings settings;
	settings.selector = "shared=true";
	NodeView view(settings);
	const auto node = [](std::int64_t storage, std::int64_t gpus = 0) {
		auto n = std::make_shared<kube::Node>();
		n->meta.name = "n1";
		n->ready = true;
		n->meta.labels["shared"] = "true";
		n->allocatable.extended = {{"ephemeral-storage", storage}, {"nvidia.com/gpu", gpus}};
		return n;
	};
	view.set_slurm({{"n1", 1}, {"n2", 1}});
	view.replace({node(100)});
	kube::Pod small = pod(), large = pod();
	small.request.extended["ephemeral-storage"] = 100;
	large.request.extended["ephemeral-storage"] = 101;
	CHECK(view.choose(small, {}).none == "");
	CHECK(view.choose(large, {}).none.find("1 ephemeral-storage") != std::string::npos);
	CHECK(view.choose(pod(), {}).none == "");
	CHECK_FALSE(view.change(node(100, 4))); // what placing does not depend on
	CHECK(view.change(node(101)));
	CHECK(view.choose(large, {}).none == "");
}

TEST_CASE("a node that is cordoned for Slurm is Slurm's to give, and one that somebody cordoned is not")
{
	NodeSettings settings;
	settings.selector = "shared=true";
	NodeView view(settings);
	const auto node = [](const char *owner) {
		auto n = std::make_shared<kube::Node>();
		n->meta.name = "n1";
		n->meta.labels["shared"] = "true";
		n->unschedulable = true;
		n->taints = {{"node.kubernetes.io/unschedulable", "", kube::TaintEffect::no_schedule}};
		if (owner)
			n->meta.annotations["slurm-k8s.io/drain-owner"] = owner;
		return n;
	};
	view.set_slurm({{"n1", 1}});
	view.replace({node("slurm")});
	CHECK(view.choose(pod(), {}).none == ""); // as a pod in a reservation for maintenance
	CHECK(view.change(node("kubernetes"))); // an administrator has made it his
	CHECK(view.choose(pod(), {}).none == "no node fits this pod: 1 cordoned");
	CHECK_FALSE(view.change(node(nullptr)));
	CHECK(view.choose(pod(), {}).none == "no node fits this pod: 1 cordoned");
	SECTION("other taints count")
	{
		auto n = node("slurm");
		n->taints.push_back({"b", "", kube::TaintEffect::no_execute});
		CHECK(view.change(n));
		CHECK(view.choose(pod(), {}).none == "no node fits this pod: 1 taint b");
	}
	SECTION("a mark that was left without a cordon is none")
	{
		auto n = node("slurm");
		n->unschedulable = false;
		CHECK(view.change(n));
		CHECK(view.choose(pod(), {}).none == "no node fits this pod: 1 taint node.kubernetes.io/unschedulable");
	}
}

TEST_CASE("objections name the reason")
{
	kube::Node node;
	node.meta.name = "n1";
	kube::Pod p = pod();
	CHECK(objection(p, {}, node) == "");
	node.unschedulable = true;
	CHECK(objection(p, {}, node) == "cordoned");
	node.unschedulable = false;
	node.taints = {{"a", "", kube::TaintEffect::prefer_no_schedule}, {"b", "", kube::TaintEffect::no_execute}};
	CHECK(objection(p, {}, node) == "taint b");
	node.taints = {{"slurm-k8s.io/dedicated", "slurm", kube::TaintEffect::no_schedule}};
	CHECK(objection(p, {}, node).empty()); // ours: against what others place
	node.taints[0].value = "other";
	CHECK(objection(p, {}, node) == "taint slurm-k8s.io/dedicated");
	node.taints.clear();
	CHECK(objection(p, {{{{"zone", "In", {"b"}, false}}}}, node) == "a volume is elsewhere");
	p.has_required_node_affinity = true;
	CHECK(objection(p, {}, node) == "node affinity");
	p.node_selector["x"] = "y";
	CHECK(objection(p, {}, node) == "nodeSelector");
}

TEST_CASE("label selectors are read as kubectl reads them")
{
	kube::Node node;
	node.meta.labels = {{"a", "b"}, {"e", "f"}};
	for (const char *yes : {"a=b", "a==b", "a!=c", "a", "!x", "a in (b,c)", "a notin (x)", "a=b,e in (f, g),!h", " a = b "}) {
		CAPTURE(yes);
		auto s = parse_selector(yes);
		REQUIRE(s);
		CHECK(matches(*s, node));
	}
	for (const char *no : {"a=c", "a!=b", "x", "!a", "a in (x)", "a=b,e=g"}) {
		CAPTURE(no);
		auto s = parse_selector(no);
		REQUIRE(s);
		CHECK_FALSE(matches(*s, node));
	}
	for (const char *bad : {"a=b,", "=b", "a in b)", "a on (b)"}) {
		CAPTURE(bad);
		CHECK_FALSE(parse_selector(bad).ok());
	}
}
