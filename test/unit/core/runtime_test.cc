// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/runtime.h"

#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/core/ledger_file.h"
#include "lib/core/settings_in_force.h"
#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::core;
namespace fs = std::filesystem;

namespace {

std::string errors;
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
		threads_per_core = 1;
		set_log_sink([](LogLevel, const char *text) { errors += std::string(text) + "\n"; }, LogLevel::error);
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
		runtime.emplace(host);
		runtime->node_init(true);
	}
	// Of the nodes that take no job at all.
	std::set<std::string> closed()
	{
		std::set<std::string> out;
		if (const auto masks = runtime->holds().masks())
			for (const auto &m : masks->masks)
				if (m->whole)
					out.insert(m->node);
		return out;
	}
	bool knows(const std::string &cluster, const std::string &pod)
	{
		return runtime->holds().held({cluster, "ns", pod, "u-" + pod});
	}
};

using Nodes = std::set<std::string>;

} // namespace

TEST_CASE("start: what ledgers say holds, and without a ledger only nodes that are named take no job")
{
	Start s;
	s.save("a", "p", "n1");
	s.node_init();
	CHECK(s.knows("a", "p"));
	CHECK(s.closed() == Nodes{"n2"});
	CHECK(errors.empty());
	CHECK_FALSE(fs::exists(s.copy("a")));
}

TEST_CASE("start: with a mistake in slurm-k8s.yaml the nodes that it named before take no job either")
{
	Start s;
	REQUIRE(keep_settings(s.read(s.config), s.state, ::geteuid()));
	std::ofstream(s.config) << "clusters: [";
	s.node_init();
	CHECK(s.closed() == Nodes{"n2"});
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
		CHECK(errors.empty());
	}
}
