// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/metrics_table.h"

#include <regex>
#include <set>

#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

static std::size_t in_state(const PodNumbers &n, PodState s)
{
	return n.pods[static_cast<std::size_t>(s)];
}

TEST_CASE("metrics: names follow Prometheus' conventions, labels are never pods or nodes")
{
	static const std::set<std::string_view> labels = {"cluster", "code", "gres", "hook", "mode",	 "resource",
							  "state",   "type", "verb", "version", "slurm_version"};
	std::string before;
	for (const MetricRow &row : metric_table()) {
		const std::string name(row.info.name);
		CAPTURE(name);
		CHECK(std::regex_match(name, std::regex("slurm_k8s_[a-z_]+")));
		CHECK(name > before); // by name, each once
		before = name;
		CHECK((row.info.type == MetricType::counter) == name.ends_with("_total"));
		if (row.info.type == MetricType::histogram)
			CHECK(name.ends_with("_seconds"));
		CHECK_FALSE(std::regex_search(name, std::regex("_(ms|us|ns|mb|kib)(_|$)")));
		CHECK(row.info.help.size() > 20);
		CHECK(row.info.help.ends_with("."));
		for (auto label : row.info.labels)
			CHECK(labels.contains(label));
	}
}

TEST_CASE("metrics: the page has every metric of the table once, and the numbers of each cluster")
{
	ClusterNumbers well;
	well.cluster = "prod";
	well.answered = well.connected = true;
	well.pods.pods[static_cast<std::size_t>(PodState::bound)] = 3;
	well.pods.jobs[static_cast<std::size_t>(JobState::queued)] = 2;
	well.pods.lost = 1;
	well.masks = {2, 1, 12, 1024, 0, {{{"gpu", "a100"}, 3}, {{"token", ""}, 1}}};
	well.watches = {{"pods", 1'700'000'000}};
	well.overcommitted_nodes = 4;
	ClusterNumbers busy;
	busy.cluster = "busy";
	busy.events_waiting = 7;
	const std::string page = expose({metrics(), {well, busy}, 5, "22.05.8"});

	for (const MetricRow &row : metric_table()) {
		const std::string type = "# TYPE " + std::string(row.info.name) + " ";
		CAPTURE(type);
		CHECK(page.find(type) != page.npos);
		CHECK(page.find(type) == page.rfind(type));
	}
	for (const char *line : {"slurm_k8s_pods{cluster=\"prod\",state=\"bound\"} 3",
				 "slurm_k8s_jobs{cluster=\"prod\",state=\"queued\"} 2",
				 "slurm_k8s_holds{cluster=\"prod\",state=\"lost\"} 1",
				 "slurm_k8s_masked_cores{cluster=\"prod\"} 12",
				 "slurm_k8s_masked_gres{cluster=\"prod\",gres=\"gpu\",type=\"a100\"} 3",
				 "slurm_k8s_masked_gres{cluster=\"prod\",gres=\"token\",type=\"\"} 1",
				 "slurm_k8s_masked_memory_bytes{cluster=\"prod\"} 1073741824",
				 "slurm_k8s_masked_nodes{cluster=\"prod\"} 2",
				 "slurm_k8s_overcommitted_nodes{cluster=\"prod\"} 4",
				 "slurm_k8s_masked_whole_nodes{cluster=\"prod\"} 1",
				 "slurm_k8s_connected{cluster=\"prod\"} 1", "slurm_k8s_connected{cluster=\"busy\"} 0",
				 "slurm_k8s_engine_responsive{cluster=\"busy\"} 0",
				 "slurm_k8s_engine_events_waiting{cluster=\"busy\"} 7",
				 "slurm_k8s_slurm_commands_waiting 5"}) {
		CAPTURE(line);
		CHECK(page.find("\n" + std::string(line) + "\n") != page.npos);
	}
	CHECK(page.find("slurm_k8s_pods{cluster=\"busy\"") == page.npos); // unknown is not 0
}

TEST_CASE("metrics: no API server can make up codes without end")
{
	std::set<std::string> codes;
	for (int status = -10; status < 2000; status++)
		codes.insert(code_label(status));
	CHECK(codes.size() < 30);
	CHECK(code_label(403) == "403");
	CHECK(code_label(418) == "4xx");
	CHECK(code_label(0) == "none");
	CHECK(code_label(999) == "other");
}

TEST_CASE("metrics: a hold is placed while its job runs, then leaving, and lost when nobody will report")
{
	World w;
	w.create_pod("p");
	w.run();
	CHECK(w.controller->numbers().jobs[static_cast<std::size_t>(JobState::queued)] == 1);
	CHECK(in_state(w.controller->numbers(), PodState::waiting) == 1);
	w.slurm_starts("p", "n1", {0, 1});
	w.run();
	w.kubelet_starts("p");
	w.run();
	PodNumbers n = w.controller->numbers();
	CHECK((n.placed == 1 && n.leaving == 0 && n.lost == 0));
	CHECK(in_state(n, PodState::bound) == 1);
	const std::string &cluster = w.settings.name;
	CHECK(w.holds->mask_numbers(cluster).nodes == 0);

	w.slurm_ends("p", SK8_JOB_CANCELLED, 1001);
	n = w.controller->numbers();
	CHECK((n.placed == 0 && n.leaving == 1 && n.lost == 0));
	CHECK(w.holds->mask_numbers(cluster).nodes == 1);
	CHECK(w.holds->mask_numbers(cluster).cores == 2);
	CHECK(w.holds->mask_numbers("another").nodes == 0);

	const kube::Pod last = w.pod("p");
	w.pods.erase("p");
	w.controller->pod_removed(std::make_shared<kube::Pod>(last));
	w.run();
	n = w.controller->numbers();
	CHECK((n.placed == 0 && n.leaving == 0 && n.lost == 1));
}

TEST_CASE("metrics: masked GRES are counted by name and type, over nodes")
{
	HoldTable t;
	auto hold = [&](const std::string &uid, const std::string &node, GresList gres) {
		Hold h{{"prod", "ns", uid, uid}, node, {}, 0, 5};
		h.gres = std::move(gres);
		t.adopt(h);
	};
	hold("1", "n1", {{"gpu", "a100", 2, {0, 1}}, {"token", "", 1, {}}});
	hold("2", "n1", {{"gpu", "a100", 1, {}}});
	hold("3", "n2", {{"gpu", "a100", 1, {0}}, {"gpu", "", 1, {}}});
	const auto gres = t.mask_numbers("prod").gres;
	CHECK(gres == decltype(gres){{{"gpu", "a100"}, 4}, {{"gpu", ""}, 1}, {{"token", ""}, 1}});
	CHECK(t.mask_numbers("another").gres.empty());
}

TEST_CASE("metrics: nodes that wait for their cluster are counted as wholly masked")
{
	HoldTable t;
	t.block_nodes("prod", {"n1", "n2"});
	const MaskNumbers n = t.mask_numbers("prod");
	CHECK((n.nodes == 2 && n.whole_nodes == 2 && n.cores == 0));
}
