// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What slurm-k8s(1) is told while an engine does not answer, or there is none.
#include "lib/core/control.h"

#include <unistd.h>

#include "lib/base/log.h"
#include "lib/core/ledger_file.h"
#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::core;

namespace {

const sk8_slurm_ops &no_slurm()
{
	static const sk8_slurm_ops ops{.active = [] { return false; }};
	return ops;
}

// A runtime whose engine never looks at its queue, and a pod that holds core 3 of n1.
struct Setting {
	TempFolder folder;
	SystemClock clock;
	HoldTable holds;
	Gate gate{[](JobRef, const GateAnswer &) {}};
	sk8_host host{.config_path = "/etc/k.yaml",
		      .state_dir = folder.path.c_str(),
		      .slurm_cluster = "s",
		      .slurm_version = "22.05.8",
		      .slurm_uid = ::geteuid(),
		      .ops = &no_slurm()};
	std::shared_ptr<SlurmWorker> worker = std::make_shared<SlurmWorker>(no_slurm(), holds, clock);
	RuntimeState state{false, {}, worker, 100, 101, ""};
	Control control{host, holds, [this] { return state; }};
	std::shared_ptr<const Wakeup> wakeup = std::make_shared<Wakeup>();

	Setting() { holds.restore({.holds = {{{"c", "ns", "p", "uid-1"}, "n1", {3}, 0, 100}}, .released = {}}); }

	void add_engine()
	{
		ClusterSettings settings;
		settings.name = "c";
		state.engines.push_back(std::make_shared<ClusterEngine>(settings, host, holds, gate, worker));
	}
	std::shared_ptr<Inquiry> handle(const std::string &text)
	{
		auto body = Json::parse(text);
		REQUIRE(body);
		return control.handle({*body, 0, wakeup});
	}
	// Its text or error.
	std::string told(const std::string &text)
	{
		Json reply = handle(text)->reply();
		return std::string(reply["text"].str(reply["error"].str()));
	}
};

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("control: status says which engine hangs, and shows masks and configuration all the same")
{
	Setting s;
	s.add_engine();
	auto inquiry = s.handle(R"({"command":"status"})");
	CHECK_FALSE(inquiry->complete());
	const Json reply = inquiry->reply();
	CHECK(reply["ok"].boolean_or(false));
	CHECK(reply["state"].str() == "running");
	CHECK(reply["clusters"].at(0)["name"].str() == "c");
	CHECK(reply["clusters"].at(0)["state"].str() == "hanging");
	CHECK(reply["masks"].at(0)["node"].str() == "n1");
	CHECK(reply["masks"].at(0)["cores"].at(0).integer_or(0) == 3);
	CHECK(reply["slurm_version"].str() == "22.05.8");
}

TEST_CASE("control: status says parked, starting or bad configuration, with all its lines")
{
	Setting s;
	CHECK(s.handle(R"({"command":"status"})")->complete());
	CHECK(s.handle(R"({"command":"status"})")->reply()["state"].str() == "starting");
	s.state.config_error = "k.yaml:1: a\nk.yaml:2: b";
	const Json bad = s.handle(R"({"command":"status"})")->reply();
	CHECK(bad["state"].str() == "bad configuration");
	CHECK(bad["configuration"]["errors"].at(1).str() == "k.yaml:2: b");
	s.state.parked = true;
	CHECK(s.handle(R"({"command":"status"})")->reply()["state"].str() == "parked");
}

TEST_CASE("control: status says which engine cannot be started, and why, beside the others")
{
	Setting s;
	s.add_engine();
	s.state.not_started["d"] = "eventfd: Too many open files";
	const Json reply = s.handle(R"({"command":"status"})")->reply();
	REQUIRE(reply["clusters"].size() == 2);
	CHECK(reply["clusters"].at(0)["name"].str() == "c");
	CHECK(reply["clusters"].at(1)["name"].str() == "d");
	CHECK(reply["clusters"].at(1)["state"].str() == "not started");
	CHECK(reply["clusters"].at(1)["error"].str() == "eventfd: Too many open files");
}

TEST_CASE("control: what a hanging engine did not release is not released, and its asker knows")
{
	Setting s;
	s.add_engine();
	auto inquiry = s.handle(R"({"command":"release","pod":"ns/p","force":true})");
	CHECK_FALSE(inquiry->complete());
	CHECK(inquiry->reply()["error"].str() == "the engine of cluster c does not answer; nothing was released");
	CHECK(s.holds.masks());
}

TEST_CASE("control: a pod of a cluster without engine is released by force only, and from its ledger")
{
	Setting s;
	const std::string path = ledger_path(s.folder.path, "c");
	CHECK(contains(s.told(R"({"command":"release","pod":"ns/p"})"), "no engine runs for cluster c"));
	auto inquiry = s.handle(R"({"command":"release","pod":"uid-1","node":"n1","force":true})");
	auto thread = Thread::start("test", [w = s.worker] { w->run(); });
	REQUIRE(thread);
	REQUIRE(s.wakeup->wait(Millis(5'000)));
	s.worker->stop();
	REQUIRE(thread->join(Millis(5'000)));
	CHECK(inquiry->complete());
	CHECK(contains(std::string(inquiry->reply()["text"].str()), "is free"));
	CHECK(s.holds.let_masks_go());
	CHECK_FALSE(s.holds.masks());
	auto saved = load_ledger(path, ::geteuid());
	REQUIRE(saved);
	CHECK(saved->found);
	CHECK(saved->ledger.holds.empty());
	// An engine of the cluster that starts later must not mask it again.
	CHECK(saved->ledger.released == std::vector<Released>{{{"c", "ns", "p", "uid-1"}, "root (uid 0)"}});
}

TEST_CASE("control: a name that means several pods is not released")
{
	Setting s;
	s.holds.restore({.holds = {{{"c", "ns", "p", "uid-1"}, "n1", {3}, 0, 100}, {{"c", "ns", "p", "uid-2"}, "n2", {3}, 0, 100}},
			 .released = {}});
	const std::string told = s.told(R"({"command":"release","pod":"ns/p","force":true})");
	CHECK(contains(told, "several pods are meant"));
	CHECK(contains(told, "uid-2 on node n2"));
	CHECK(contains(s.told(R"({"command":"release","pod":"ns/p","node":"n2"})"), "no engine runs"));
	CHECK(contains(s.told(R"({"command":"release","pod":"ns/q"})"), "no pod ns/q holds anything"));
	CHECK(contains(s.told(R"({"command":"release"})"), "which pod?"));
}

TEST_CASE("control: the debug flag is set, shown and ended; unknown words change nothing")
{
	Setting s;
	CHECK(s.handle(R"({"command":"debug"})")->reply()["debug"].str() == "off");
	CHECK(s.handle(R"({"command":"debug","level":"verbose"})")->reply()["debug"].str() == "verbose");
	CHECK(log_override() == LogLevel::verbose);
	CHECK(contains(s.told(R"({"command":"debug","level":"loud"})"), "no level \"loud\""));
	CHECK(log_override() == LogLevel::verbose);
	CHECK(s.handle(R"({"command":"debug","level":"off"})")->reply()["debug"].str() == "off");
	CHECK_FALSE(log_override());
	CHECK(contains(s.told(R"({"command":"dance"})"), "knows no command \"dance\""));
}
