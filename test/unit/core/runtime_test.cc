// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/runtime.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/core/ledger_file.h"
#include "lib/core/saved_nodes.h"
#include "lib/core/settings_in_force.h"
#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::core;
namespace fs = std::filesystem;

namespace {

std::string errors, lines; // lines: of any level
std::uint32_t threads_per_core; // of Slurm's nodes

// A slurmctld with the nodes n1 and n2 that is about to read its jobs, and two clusters in its configuration.
struct Start {
	TempFolder folder;
	std::string config = folder.write("slurm-k8s.yaml", "clusters:\n"
							    "  - {name: a, kubeconfig: /k}\n"
							    "  - {name: b, kubeconfig: /k, nodes: {names: [n2]}}\n");
	std::string state = folder.path + "/state";
	sk8_slurm_ops ops = {};
	std::optional<Runtime> runtime;

	Start()
	{
		fs::create_directory(state);
		errors.clear();
		lines.clear();
		threads_per_core = 1;
		set_log_sink(
			[](LogLevel level, const char *text) {
				lines += std::string(text) + "\n";
				if (level == LogLevel::error)
					errors += std::string(text) + "\n";
			},
			LogLevel::info);
		ops.each_node = [](void (*f)(void *, const sk8_node *), void *arg) {
			for (const char *name : {"n1", "n2"}) {
				sk8_node node = {};
				node.name = name;
				node.threads_per_core = threads_per_core;
				f(arg, &node);
			}
		};
	}
	~Start() { set_log_sink(nullptr, LogLevel::info); }

	std::string path(const std::string &cluster) const { return ledger_path(state, cluster); }
	std::string copy(const std::string &cluster) const { return path(cluster) + ".refused"; }
	void save(const std::string &cluster, const std::string &pod, const std::string &node) const
	{
		LedgerFile file(path(cluster), {});
		file.hold({{cluster, "ns", pod, "u-" + pod}, node, {0}, 0, 100});
		REQUIRE(file.flush());
	}
	std::string read(const std::string &file) const { return read_file(file, 1 << 20).value_or("cannot be read"); }
	void node_init()
	{
		sk8_host host = {};
		host.config_path = config.c_str();
		host.state_dir = state.c_str();
		host.slurm_uid = ::geteuid();
		host.ops = &ops;
		runtime.emplace(host, no_engine, Millis(1'000));
		runtime->node_init(true);
	}
	// Of the nodes that take no job at all, those for which that lasts until their cluster has told what runs there ...
	std::set<std::string> closed(bool for_a_while = false)
	{
		std::set<std::string> out;
		if (const auto masks = runtime->holds().masks())
			for (const auto &m : masks->masks)
				if (m->whole && m->for_a_while == for_a_while)
					out.insert(m->node);
		return out;
	}
	std::set<std::string> closed_for_a_while() { return closed(true); } // ... and the others
	static std::shared_ptr<ClusterEngine> no_engine(const ClusterSettings &, const sk8_host &, HoldTable &, Gate &,
							std::shared_ptr<SlurmWorker>)
	{
		throw std::runtime_error("not in this test");
	}
	// As slurmctld does it until 23.11: in the running process.
	void reconfigure(const std::string &text)
	{
		std::ofstream(config) << text;
		ops.active = [] { return false; }; // the test has its locks
		runtime->node_init(true);
		runtime->reconfigure();
	}
	template <class F>
	static bool soon(F f)
	{
		for (int i = 0; i < 500 && !f(); i++)
			::usleep(10'000);
		return f();
	}
	bool knows(const std::string &cluster, const std::string &pod)
	{
		return runtime->holds().held({cluster, "ns", pod, "u-" + pod});
	}
};

using Nodes = std::set<std::string>;

} // namespace

TEST_CASE("start: what ledgers say holds, and without one nodes that are named take no job until their pods are known")
{
	Start s;
	s.save("a", "p", "n1");
	s.node_init();
	CHECK(s.knows("a", "p"));
	CHECK(s.closed() == Nodes{"n2"});
	CHECK(s.closed_for_a_while().empty());
	CHECK(errors.empty());
	CHECK_FALSE(fs::exists(s.copy("a")));
}

TEST_CASE("start: where neither a ledger nor a name says that there are pods, no node takes a job for a while")
{
	Start s;
	s.save("b", "q", "n2");
	s.node_init();
	CHECK(s.closed().empty());
	CHECK(s.closed_for_a_while() == Nodes{"n1", "n2"});
	CHECK(lines.find("cluster a: neither a saved ledger nor nodes.names") != lines.npos);
	CHECK(s.runtime->holds().ledger("a").first); // the next start knows no more than this one, unless the pods are listed
	SECTION("its pods are known")
	{
		CHECK(s.runtime->holds().unblock_nodes("a"));
		CHECK_FALSE(s.runtime->holds().stop_waiting("a"));
		CHECK_FALSE(s.runtime->holds().ledger("a").partial);
	}
	SECTION("the while is over, from when slurmctld is in charge")
	{
		s.ops.active = [] { return false; }; // the test has its locks
		s.runtime->reconfigure();
		for (int i = 0; i < 500 && !s.runtime->holds().masks_can_go(); i++)
			::usleep(10'000);
		CHECK(s.closed_for_a_while() == Nodes{"n1", "n2"}); // without them nothing is given away
		s.runtime->shutdown();
		CHECK(lines.find("cluster a has not told within 1 s what runs where") != lines.npos);
		CHECK(s.runtime->holds().ledger("a").first);
		CHECK(s.runtime->holds().unblock_nodes("a"));
	}
	CHECK(s.runtime->holds().let_masks_go());
	CHECK(s.closed_for_a_while().empty());
	CHECK(s.knows("b", "q"));
}

TEST_CASE("start: a whole ledger lacks what came since, so where nodes can be mixed they wait a moment for the first list")
{
	const char *nodes = GENERATE("{sharing: mixed}", "{sharing: dedicated, groups: [{selector: x, sharing: mixed}]}",
				     "{sharing: mixed, names: [n1]}");
	CAPTURE(nodes);
	Start s;
	std::ofstream(s.config) << "clusters: [{name: a, kubeconfig: /k, nodes: " << nodes << "}]\n";
	s.save("a", "p", "n1");
	s.node_init();
	const bool named = std::string(nodes).find("names") != std::string::npos;
	CHECK(s.knows("a", "p"));
	CHECK(s.closed().empty());
	CHECK(s.closed_for_a_while() == (named ? Nodes{"n1"} : Nodes{"n1", "n2"}));
	CHECK(s.runtime->holds().masks()->masks[0]->for_a_moment);
	CHECK_FALSE(s.runtime->holds().ledger("a").partial);
	SECTION("it comes")
	{
		CHECK(s.runtime->holds().unblock_nodes("a"));
	}
	SECTION("it does not come")
	{
		s.ops.active = [] { return false; }; // the test has its locks
		s.runtime->reconfigure();
		CHECK(s.soon([&] { return s.runtime->holds().masks_can_go(); }));
		s.runtime->shutdown();
		CHECK(lines.find("cluster a has not told within 1 s what runs where") != lines.npos);
	}
	CHECK(s.runtime->holds().let_masks_go());
	CHECK(s.closed_for_a_while().empty());
}

TEST_CASE("start: with a whole ledger dedicated nodes, and those of which nothing is promised, wait for nothing")
{
	const char *sharing = GENERATE("dedicated", "none");
	CAPTURE(sharing);
	Start s;
	std::ofstream(s.config) << "clusters: [{name: a, kubeconfig: /k, nodes: {names: [n2], sharing: " << sharing << "}}]\n";
	s.save("a", "p", "n1");
	s.node_init();
	CHECK(s.closed().empty());
	CHECK(s.closed_for_a_while().empty());
}

TEST_CASE("start: a device that was gone when slurmctld ended is no job's before Kubernetes has told that it is back")
{
	Start s;
	s.save("a", "p", "n2");
	s.save("b", "q", "n2");
	const auto written = [&](const std::string &cluster, const char *node) {
		REQUIRE(write_file_atomic(saved_nodes_path(s.state, cluster), saved_nodes_text({{node, {{{"gpu", "", 1, {3}}}, {}}}})));
	};
	written("a", "n1");
	written("of former settings", "n2");
	s.node_init();
	const auto masks = s.runtime->holds().masks();
	REQUIRE(masks);
	REQUIRE(masks->masks.size() == 2);
	CHECK(masks->masks[0]->gres == GresList{{"gpu", "", 1, {3}}});
	CHECK(masks->masks[1]->gres.empty());
	CHECK(s.runtime->holds().set_missing("a", "n1", {})); // the first list
	CHECK(s.runtime->holds().let_masks_go());
	CHECK(s.runtime->holds().masks()->masks.size() == 1);

	std::ofstream(saved_nodes_path(s.state, "a")) << "garbage\n";
	s.node_init();
	CHECK(s.knows("a", "p"));
	CHECK(s.closed().empty()); // it says nothing of pods
	CHECK(lines.find("jobs may get devices that are gone") != lines.npos);
}

TEST_CASE("start: features of labels are Slurm's again when slurmctld takes charge, as far as settings have them")
{
	static std::string told;
	told.clear();
	Start s;
	std::ofstream(s.config) << "clusters: [{name: a, kubeconfig: /k, nodes: {features: [zone, 'gpu*']}}, {name: b, kubeconfig: /k}]\n";
	s.ops.active = [] { return false; }; // the test has its locks
	s.ops.find_node = [](const char *name, sk8_node *node) {
		node->name = name;
		node->features = node->active_features = "big";
		return std::string_view(name) == "n1";
	};
	s.ops.change_features = [](const sk8_feature_change *c, sk8_outcome *out) {
		*out = {};
		told += std::string(c->node) + ": " + c->expected + " " + c->features + " " + c->active + "\n";
	};
	const std::vector<std::string> features{"k8s.exclusive", "k8s.gpus.4", "k8s.rack.7", "k8s.zone.a"};
	for (const char *cluster : {"a", "b"})
		REQUIRE(write_file_atomic(saved_nodes_path(s.state, cluster), saved_nodes_text({{"n1", {{}, features}}, {"gone", {{}, features}}})));
	s.node_init();
	CHECK(told.empty()); // it may be a standby
	s.runtime->reconfigure();
	CHECK(told == "n1: big big,k8s.gpus.4,k8s.zone.a big,k8s.gpus.4,k8s.zone.a\n");
	s.runtime->reconfigure();
	s.runtime->shutdown();
	CHECK(std::ranges::count(told, '\n') == 1); // the engines know better by then
}

TEST_CASE("waits: for a while 30 s, for a moment 5 s, and until it has told for ever")
{
	CHECK(at_most(Wait::a_while) == Millis(30'000));
	CHECK(at_most(Wait::a_moment) == Millis(5'000));
	CHECK_FALSE(at_most(Wait::until_it_has));
}

TEST_CASE("start: a ledger that was begun where there was none before says no more than none")
{
	Start s;
	s.save("b", "q", "n2");
	Ledger first;
	first.partial = first.first = true;
	LedgerFile file(s.path("a"), first);
	REQUIRE(file.flush());
	s.node_init();
	CHECK(s.closed().empty());
	CHECK(s.closed_for_a_while() == Nodes{"n1", "n2"});
	CHECK(errors.empty());
	file.hold({{"a", "ns", "p", "u-p"}, "n1", {0}, 0, 100});
	REQUIRE(file.flush());
	SECTION("but for a pod in it, which says that there is a Kubernetes")
	{
		s.node_init();
		CHECK(s.knows("a", "p"));
		CHECK(s.closed() == Nodes{"n1", "n2"});
		CHECK(s.closed_for_a_while().empty());
	}
	SECTION("also of a cluster that is not configured any more")
	{
		std::ofstream(s.config) << "clusters: [{name: b, kubeconfig: /k}]\n";
		s.node_init();
		CHECK(s.knows("a", "p"));
		CHECK(s.closed_for_a_while().empty());
	}
	SECTION("until all its pods were listed")
	{
		file.complete();
		REQUIRE(file.flush());
		s.node_init();
		CHECK(s.knows("a", "p"));
		CHECK(s.closed_for_a_while().empty());
	}
}

TEST_CASE("start: a Slurm without Kubernetes waits for nothing")
{
	Start s;
	SECTION("there is no slurm-k8s.yaml")
	{
		fs::remove(s.config);
	}
	SECTION("it cannot be read, and no former one is known")
	{
		std::ofstream(s.config) << "clusters: [";
	}
	SECTION("it has no clusters")
	{
		std::ofstream(s.config) << "clusters: []\n";
	}
	s.node_init();
	CHECK(s.runtime->holds().masks() == nullptr);
}

TEST_CASE("start: with a mistake in slurm-k8s.yaml the nodes that it named before take no job either")
{
	Start s;
	REQUIRE(keep_settings(s.read(s.config), s.state, ::geteuid()));
	std::ofstream(s.config) << "clusters: [";
	s.node_init();
	CHECK(s.closed() == Nodes{"n2"});
	CHECK(s.closed_for_a_while() == Nodes{"n1"});
}

TEST_CASE("start: what a pod holds is as many cores as it needs on its node as that is now, before Kubernetes is heard of")
{
	Start s;
	threads_per_core = GENERATE(1u, 2u);
	const std::string node = GENERATE("n1", "no node of Slurm's any more");
	{
		LedgerFile file(s.path("a"), {});
		Hold h{{"a", "ns", "p", "u-p"}, node, {0}, 0, 100};
		h.cpus = 2; // its core had two threads
		file.hold(h);
		REQUIRE(file.flush());
	}
	s.save("b", "q", "n1");
	s.node_init();
	const auto held = s.runtime->holds().held_by({"a", "ns", "p", "u-p"});
	REQUIRE(held);
	CHECK(held->masked);
	CHECK(held->hold.cores == std::vector<std::uint16_t>{0});
	CHECK(held->hold.more_cores == (node == "n1" && threads_per_core == 1 ? 1u : 0u));
	CHECK(s.runtime->holds().held_by({"b", "ns", "q", "u-q"})->hold.more_cores == 0); // of a former version
}

TEST_CASE("start: of a ledger that is refused a copy stays that is its owner's, whatever is written later")
{
	struct Row {
		const char *what;
		void (*spoil)(const std::string &path);
	};
	const Row row = GENERATE(Row{"of a newer version", [](const std::string &p) { std::ofstream(p) << "{\"v\":2}\nmore\n"; }},
				 Row{"damaged", [](const std::string &p) { std::ofstream(p, std::ios::app) << "garbage\n"; }},
				 Row{"open to others", [](const std::string &p) { fs::permissions(p, fs::perms(0640)); }},
				 Row{"writable by others", [](const std::string &p) { fs::permissions(p, fs::perms(0622)); }});
	CAPTURE(row.what);
	Start s;
	s.save("a", "p", "n1");
	row.spoil(s.path("a"));
	const std::string text = s.read(s.path("a"));
	const auto mode = fs::status(s.path("a")).permissions();
	s.node_init();
	CHECK_FALSE(s.knows("a", "p"));
	CHECK(s.closed() == Nodes{"n1", "n2"});
	CAPTURE(errors);
	CHECK(errors.find(s.copy("a")) != errors.npos);
	CHECK(fs::status(s.path("a")).permissions() == mode); // it must not become one that is believed
	LedgerFile file(s.path("a"), {});
	REQUIRE(file.flush());
	CHECK(s.read(s.copy("a")) == text);
	CHECK(fs::status(s.copy("a")).permissions() == fs::perms(0600));

	// The next one does not replace it, and it is nobody's ledger.
	std::ofstream(s.path("a")) << "other garbage\n";
	s.node_init();
	CHECK(s.read(s.copy("a")) == text);
	CHECK(s.closed() == Nodes{"n1", "n2"});
	CHECK(errors.find("no copy is kept") != errors.npos);
}

TEST_CASE("start: of what is no file there is no copy, and all else goes on")
{
	Start s;
	s.save("b", "p", "n1");
	fs::create_symlink(s.config, s.path("a"));
	s.node_init();
	CHECK(s.knows("b", "p"));
	CHECK_FALSE(fs::exists(fs::symlink_status(s.copy("a"))));
	CHECK(errors.find("no copy is kept") != errors.npos);
}

TEST_CASE("start: a StateSaveLocation that cannot be listed is not taken for one without ledgers")
{
	Start s;
	SECTION("it is no folder")
	{
		fs::remove(s.state);
		std::ofstream(s.state) << "x";
		s.node_init();
		CHECK(s.closed() == Nodes{"n1", "n2"});
		CHECK(errors.find(s.state) != errors.npos);
	}
	SECTION("what can be read of it by name counts")
	{
		if (::geteuid() == 0)
			return; // who may list everything
		s.save("a", "p", "n1");
		fs::permissions(s.state, fs::perms(0300));
		s.node_init();
		fs::permissions(s.state, fs::perms(0700));
		CHECK(s.knows("a", "p"));
		CHECK(errors.find(s.state) != errors.npos);
	}
	SECTION("one that is not there has none")
	{
		fs::remove(s.state);
		s.node_init();
		CHECK(s.closed() == Nodes{"n2"});
		CHECK(s.closed_for_a_while() == Nodes{"n1"});
		CHECK(errors.empty());
	}
}

TEST_CASE("reconfigure: of a cluster that comes in nobody has told what runs, so its ledger is not whole and nodes wait as at a start")
{
	Start s;
	s.save("b", "q", "n2");
	const std::string only_b = "clusters: [{name: b, kubeconfig: /k}]\n";
	std::ofstream(s.config) << only_b;
	s.node_init();
	s.reconfigure(only_b);
	CHECK(s.closed_for_a_while().empty());
	SECTION("without names, for a while")
	{
		s.reconfigure("clusters: [{name: b, kubeconfig: /k}, {name: a, kubeconfig: /k}]\n");
		CHECK(s.soon([&] { return s.closed_for_a_while() == Nodes{"n1", "n2"}; }));
		CHECK(s.runtime->holds().ledger("a").first);
		CHECK(s.soon([&] { return s.runtime->holds().masks_can_go(); }));
	}
	SECTION("with names, until it has told")
	{
		s.reconfigure("clusters: [{name: b, kubeconfig: /k}, {name: a, kubeconfig: /k, nodes: {names: [n1]}}]\n");
		CHECK(s.soon([&] { return s.closed() == Nodes{"n1"}; }));
		CHECK(s.runtime->holds().ledger("a").partial);
		CHECK_FALSE(s.runtime->holds().ledger("a").first);
	}
	CHECK_FALSE(s.runtime->holds().ledger("b").partial); // it was there all the time
	s.runtime->shutdown();
}

TEST_CASE("reconfigure: of a cluster that is taken out nodes wait no longer, unless a ledger that may lack pods is there")
{
	Start s; // b names n2, and has no ledger
	s.save("a", "p", "n1");
	const bool damaged = GENERATE(false, true);
	if (damaged) {
		s.save("b", "q", "n2");
		std::ofstream(s.path("b"), std::ios::app) << "garbage\n";
	}
	s.node_init();
	s.reconfigure(s.read(s.config));
	CHECK(s.closed() == Nodes{"n2"});
	const std::string only_a = "clusters: [{name: a, kubeconfig: /k}]\n";
	s.reconfigure(only_a);
	if (damaged) {
		CHECK(s.soon([] { return errors.find("cluster b is not in ") != errors.npos; }));
		CHECK_FALSE(s.runtime->holds().masks_can_go());
		fs::remove(s.path("b"));
		s.reconfigure(only_a);
	}
	CHECK(s.soon([&] { return s.runtime->holds().masks_can_go(); }));
	s.runtime->shutdown();
	CHECK(s.runtime->holds().let_masks_go());
	CHECK(s.closed().empty());
	CHECK(s.knows("a", "p"));
}
