// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Engines that cannot be started, or cannot read how to reach their cluster: with real threads and real time.
#include <atomic>
#include <cerrno>
#include <map>
#include <system_error>
#include <unistd.h>

#include "lib/core/ledger_file.h"
#include "lib/core/runtime.h"
#include "test/unit/catch.h"
#include "test/unit/core/log_lines.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::core;

namespace {

std::string cluster(const std::string &name)
{
	return "  - {name: " + name + ", kubeconfig: /nowhere/" + name + "}\n";
}

// A slurmctld that is in charge, and does nothing.
struct InCharge {
	TempFolder folder;
	std::string config = folder.path + "/slurm-k8s.yaml";
	std::string state = folder.path;
	std::map<std::string, std::atomic<int>> failures; // of the next starts of an engine
	std::map<std::string, std::atomic<int>> tries;
	Runtime *runtime = nullptr; // never destroyed, as in life

	InCharge()
	{
		for (const char *name : {"a", "b"})
			failures[name] = tries[name] = 0;
		log_lines::forget();
		set_log_sink(log_lines::keep, LogLevel::info);
	}
	~InCharge()
	{
		if (runtime)
			runtime->shutdown();
		set_log_sink(nullptr, LogLevel::info);
	}

	// Its engine cannot be started so often.
	void start_failing(const std::string &name, int times)
	{
		configure(cluster(name));
		failures[name] = times;
		start();
		REQUIRE(wait_for_line("cluster " + name + ": its engine cannot be started"));
	}
	void configure(const std::string &clusters) const { folder.write("slurm-k8s.yaml", "clusters:\n" + clusters); }
	void start()
	{
		static const sk8_slurm_ops ops{.active = [] { return false; },
					       .each_node = [](void (*)(void *, const sk8_node *), void *) {}};
		static auto &all = *new std::vector<Runtime *>; // for who looks for leaks
		sk8_host host{};
		host.config_path = config.c_str();
		host.state_dir = state.c_str();
		host.slurm_cluster = "s";
		host.slurm_version = "22.05.8";
		host.slurm_uid = ::geteuid();
		host.ops = &ops;
		runtime = all.emplace_back(new Runtime(host, [this](const ClusterSettings &settings, auto &&...rest) {
			tries.at(settings.name)++;
			if (failures.at(settings.name) > 0) {
				failures.at(settings.name)--;
				throw std::system_error(EMFILE, std::generic_category(), "eventfd");
			}
			return make_engine(settings, rest...);
		}));
		runtime->node_init(true);
		runtime->reconfigure();
	}
};

} // namespace

TEST_CASE("start: an engine that cannot be started is tried again until it can, which is said once, and nobody waits for it")
{
	InCharge c;
	LedgerFile file(ledger_path(c.state, "a"), {});
	file.hold({{"a", "ns", "p", "u-p"}, "n1", {0}, 0, 100});
	REQUIRE(file.flush());
	c.configure(cluster("a") + cluster("b"));
	c.failures["a"] = 2;
	c.start();
	REQUIRE(wait_for_line("cluster b: lost")); // its engine looks for its kubeconfig
	CHECK(count_lines("cluster a: its engine is started") == 0);
	CHECK(c.runtime->holds().held({"a", "ns", "p", "u-p"}));
	CHECK(c.runtime->holds().masks());
	REQUIRE(wait_for_line("cluster a: its engine is started, after 2 tries that failed"));
	REQUIRE(wait_for_line("cluster a: lost"));
	CHECK(count_lines("cluster a: its engine cannot be started: eventfd: Too many open files") == 1);
	CHECK(c.runtime->holds().held({"a", "ns", "p", "u-p"}));
	CHECK(c.tries["b"] == 1);
}

TEST_CASE("reload: a configuration that is broken stops no engine that is to be started")
{
	InCharge c;
	c.start_failing("a", 2);
	c.configure("  - {nam: a}\n");
	c.runtime->reconfigure();
	REQUIRE(wait_for_line("the former settings stay in force"));
	REQUIRE(wait_for_line("cluster a: its engine is started"));
}

TEST_CASE("reload: an engine that could not be started is forgotten with its cluster")
{
	InCharge c;
	c.start_failing("a", 100);
	c.configure(cluster("b"));
	c.failures["b"] = 2;
	c.runtime->reconfigure();
	REQUIRE(wait_for_line("cluster b: its engine cannot be started"));
	const int tries = c.tries["a"];
	REQUIRE(wait_for_line("cluster b: its engine is started"));
	CHECK(c.tries["a"] == tries);
}

TEST_CASE("start: an engine that cannot read its kubeconfig goes on as soon as it can, and each is said once")
{
	InCharge c;
	c.configure("  - {name: a, kubeconfig: " + c.folder.path + "/kubeconfig}\n");
	c.start();
	REQUIRE(wait_for_line("cluster a: lost"));
	c.folder.write("kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: one\n"
				     "contexts:\n- name: one\n  context: {cluster: c, user: u}\n"
				     "clusters:\n- name: c\n  cluster: {server: 'https://127.0.0.1:1'}\n"
				     "users:\n- name: u\n  user: {token: t}\n");
	REQUIRE(wait_for_line("cluster a: back after"));
	CHECK(count_lines("cluster a: lost") == 1);
	CHECK(count_lines("cluster a: its engine") == 0);
}
