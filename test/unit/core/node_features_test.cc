// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_features.h"

#include <algorithm>
#include <map>
#include <random>

#include "test/unit/catch.h"
#include "test/unit/core/node_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

using Pair = std::pair<std::string, std::string>;

TEST_CASE("features: a dot of the key is written twice, all else stands for itself, and back")
{
	struct Row {
		std::string key, value, feature;
	};
	const std::string longest(63, 'x');
	const auto [key, value, wanted] = GENERATE_COPY(
		Row{"zone", "a", "k8s.zone.a"}, Row{"topology.kubernetes.io/zone", "eu-1.a", "k8s.topology..kubernetes..io/zone.eu-1.a"},
		Row{"nvidia.com/gpu.product", "NVIDIA-A100_80GB", "k8s.nvidia..com/gpu..product.NVIDIA-A100_80GB"},
		Row{"fast", "", "k8s.fast."}, Row{"a_b-c", "1", "k8s.a_b-c.1"}, Row{"v", "1..2", "k8s.v.1..2"},
		Row{longest, longest, "k8s." + longest + "." + longest});
	CHECK(feature_of(key, value) == wanted);
	CHECK(label_of(wanted) == Pair(key, value));
}

TEST_CASE("features: what no label of Kubernetes may be makes none")
{
	const std::string x(64, 'x');
	const auto [key, value] = GENERATE_COPY(
		Pair("", "a"), Pair("zone", "a,b"), Pair("zone", "a&b"), Pair("zone", "a|b"), Pair("zone", "[a]"), Pair("zone", "a*2"),
		Pair("zone", "(a)"), Pair("zone", "a b"), Pair("zone", "a\nb"), Pair("zone", "-a"), Pair("zone", "a."), Pair("zone", ".a"),
		Pair("zone", "\xc3\xa4"), Pair("zone", std::string("a\0b", 3)), Pair("zone", "a/b"), Pair("zo ne", "a"), Pair(".zone", "a"),
		Pair("zone.", "a"), Pair("/zone", "a"), Pair("a/", "a"), Pair("a/b/c", "d"), Pair("a..b/c", "d"), Pair("_a/b", "c"),
		Pair("a=b", "c"), Pair(x, "a"), Pair("zone", x), Pair(std::string(254, 'x') + "/a", "b"),
		Pair(std::string(253, 'x') + "/" + x.substr(1), x.substr(1) + "y"));
	CHECK_FALSE(feature_of(key, value));
}

TEST_CASE("features: what is made is never longer than said, and what would be is left out")
{
	std::string prefix = "a";
	while (prefix.size() < 251)
		prefix += ".a";
	CHECK(feature_of(prefix + "/k", "v"));
	CHECK_FALSE(feature_of(prefix + "/k", std::string(63, 'v')));
	CHECK(feature_of(std::string(253, 'a') + "/k", std::string(63, 'v'))->size() < max_feature_length);
}

TEST_CASE("features: what no label makes is nobody's label")
{
	const auto *text = GENERATE("", "k8s", "k8s.", "k8s..", "k8s.shared", "k8s.exclusive", "k8s..a", "k8s.a..b", "k8s.a..",
				    "k8s.a.-", "K8s.a.b", "gpu", "k8s.a b.c", "k8s.a/.b", "k8s.a.b,", "k8s.a.b*2");
	CHECK_FALSE(label_of(text));
}

// Any text that is a feature tells its label; two labels never make one feature.
TEST_CASE("features: of random labels each makes its own and tells it again")
{
	std::mt19937 random(17);
	const std::string letters = "aB1.-_/ ,&|*[]()=\n\x80";
	auto text = [&](std::size_t most, std::size_t kinds) {
		std::string out(random() % (most + 1), 0);
		for (char &c : out)
			c = letters[random() % kinds];
		return out;
	};
	std::map<std::string, Pair> seen;
	std::size_t made = 0;
	for (int i = 0; i < 200'000; i++) {
		const std::size_t kinds = i % 8 ? 7 : letters.size();
		const Pair label(text(7, kinds), text(5, kinds - 1));
		const auto feature = feature_of(label.first, label.second);
		if (!feature)
			continue;
		made++;
		REQUIRE(feature->find_first_of(" ,&|*[]()=\n\x80") == feature->npos);
		REQUIRE(label_of(*feature) == label);
		REQUIRE(seen.try_emplace(*feature, label).first->second == label);
	}
	CHECK(made > 5'000);
	for (int i = 0; i < 200'000; i++) {
		const std::string feature = "k8s." + text(9, i % 8 ? 7 : letters.size());
		if (const auto label = label_of(feature))
			REQUIRE(feature_of(label->first, label->second) == feature);
	}
}

TEST_CASE("features: of the labels that are wanted, sorted, at most so many, and what is left out is counted")
{
	const auto some = features_of({{"zone", "b"}, {"rack", "1"}, {"other", "x"}, {"zone2", "a,b"}}, {"zone*", "rack"});
	CHECK(some.features == std::vector<std::string>{"k8s.rack.1", "k8s.zone.b"});
	CHECK(some.left_out == 1);
	CHECK(some.first_left_out == "zone2 is no label of Kubernetes");
	std::string dots = "a";
	while (dots.size() < 251)
		dots += ".a";
	CHECK(features_of({{dots + "/k", std::string(63, 'v')}}, {"*"}).first_left_out.ends_with(" makes a feature of more than 400 characters"));
	std::map<std::string, std::string> many;
	for (int i = 100; i < 200; i++)
		many["l" + std::to_string(i)] = "v";
	const auto cut = features_of(many, {"*"});
	CHECK(cut.features.size() == max_features);
	CHECK(cut.features.back() == "k8s.l163.v");
	CHECK(cut.left_out == 100 - max_features);
	CHECK(cut.first_left_out == "l164 comes after 64 others, and a node has no more");
	CHECK(features_of(many, {}).features.empty());
}

TEST_CASE("features: only those that a wanted label makes are replaced, in both lists, and none is doubled")
{
	struct Row {
		const char *now, *active, *then, *active_then; // then: null if nothing is to be done
	};
	const auto row = GENERATE(
		Row{"", "", "k8s.zone.a", "k8s.zone.a"}, Row{"k8s.zone.a", "k8s.zone.a", nullptr, nullptr},
		Row{"big,k8s.zone.a,ib", "k8s.zone.a,ib", nullptr, nullptr},
		Row{"big,k8s.zone.b,ib", "big,k8s.zone.b", "big,ib,k8s.zone.a", "big,k8s.zone.a"},
		Row{"k8s.zone.a,k8s.zone.a", "k8s.zone.a", "k8s.zone.a", "k8s.zone.a"},
		Row{"big,slow", "big", "big,slow,k8s.zone.a", "big,k8s.zone.a"}, // helpers: slow would need a reboot
		Row{"k8s.shared,k8s.rack.1", "k8s.rack.1", "k8s.shared,k8s.rack.1,k8s.zone.a", "k8s.rack.1,k8s.zone.a"},
		Row{"k8s.zone.a", "", "k8s.zone.a", "k8s.zone.a"});
	SlurmNode node;
	node.name = "n1";
	node.features = row.now;
	node.active_features = row.active;
	const auto change = feature_change(node, {"k8s.zone.a"}, {"zone"});
	REQUIRE(change.has_value() == (row.then != nullptr));
	if (change)
		CHECK(*change == FeatureChange{"n1", row.now, row.active, row.then, row.active_then});
}

TEST_CASE("features: the two of a pool come and go beside labels and an administrator's own")
{
	SlurmNode node;
	node.name = "n1";
	node.features = node.active_features = "big,k8s.zone.a";
	std::vector<std::string> wanted{"k8s.zone.a"};
	add_pool_features(wanted);
	const auto change = feature_change(node, wanted, {"zone"}, true);
	REQUIRE(change);
	CHECK(change->active == "big,k8s.exclusive,k8s.shared,k8s.zone.a");
	node.features = node.active_features = change->active;
	CHECK_FALSE(feature_change(node, wanted, {"zone"}, true));
	CHECK(feature_change(node, {"k8s.zone.a"}, {"zone"}, true)->active == "big,k8s.zone.a");
	CHECK_FALSE(feature_change(node, {"k8s.zone.a"}, {"zone"})); // an administrator's
}

// ---- the controller ----

static const auto zones = [](ClusterSettings &s) {
	s.nodes.features = {"zone", "rack"};
	s.nodes.selector = "!private";
};

TEST_CASE("nodes: labels are features, follow them, and an administrator's own stay")
{
	NodeWorld w(zones);
	w.slurm.features = w.slurm.active_features = "big";
	w.kube.meta.labels = {{"zone", "a"}, {"other", "x"}};
	w.restart();
	w.run();
	CHECK(w.slurm.features == "big,k8s.zone.a");
	CHECK(w.slurm.active_features == "big,k8s.zone.a");
	w.set_label("zone", "b");
	w.run();
	CHECK(w.slurm.active_features == "big,k8s.zone.b");
	w.set_labels({});
	w.run();
	CHECK(w.slurm.features == "big");
	CHECK(w.feature_writes == 3);
	CHECK(w.refused == 0);
}

TEST_CASE("nodes: without the setting nobody's features are touched, whatever they are named")
{
	NodeWorld w;
	w.slurm.features = w.slurm.active_features = "k8s.zone.a";
	w.kube.meta.labels = {{"zone", "b"}};
	w.restart();
	w.run();
	CHECK(w.slurm.features == "k8s.zone.a");
	CHECK(w.feature_writes == 0);
}

TEST_CASE("nodes: a node that is shared no more, or is deleted, loses what labels gave it; one that never was keeps all")
{
	NodeWorld w(zones);
	w.set_labels({{"zone", "a"}});
	w.run();
	CHECK(w.slurm.features == "k8s.zone.a");
	if (GENERATE(true, false))
		w.set_label("private", "");
	else
		w.delete_node();
	w.run();
	CHECK(w.slurm.features.empty());
	NodeWorld alone(zones);
	alone.kube.meta.labels = {{"private", ""}, {"zone", "b"}};
	alone.slurm.features = alone.slurm.active_features = "k8s.zone.a";
	alone.restart();
	alone.run();
	CHECK(alone.slurm.features == "k8s.zone.a");
}

TEST_CASE("nodes: features come back at once after slurm.conf was read again, and in a quarrel with growing pauses")
{
	NodeWorld w(zones);
	w.set_labels({{"zone", "a"}});
	w.run();
	w.set_features("big");
	w.run();
	CHECK(w.slurm.features == "big,k8s.zone.a");
	const int before = w.feature_writes;
	for (int i = 0; i < 100; i++) {
		if (w.slurm.features != "big")
			w.set_features("big");
		w.run(Millis(100));
	}
	CHECK(w.feature_writes - before <= 4); // in 10 seconds: after 1, 2, 4
	w.run(Millis(20'000));
	CHECK(w.slurm.features == "big,k8s.zone.a");
	w.set_label("zone", "b"); // is no quarrel
	w.run();
	CHECK(w.slurm.features == "big,k8s.zone.b");
}

TEST_CASE("nodes: after a restart that kept the features none is doubled, and one whose label has gone meanwhile goes")
{
	NodeWorld w(zones);
	w.set_labels({{"zone", "a"}, {"rack", "1"}});
	w.run();
	w.kube.meta.labels.erase("rack");
	w.restart();
	w.run();
	CHECK(w.slurm.features == "k8s.zone.a");
	w.restart();
	w.run();
	CHECK(w.feature_writes == 2);
}

TEST_CASE("nodes: what labels gave a node in the words of a former slurmctld goes when it is shared no more, and is told to be saved")
{
	NodeWorld w(zones);
	w.slurm.features = w.slurm.active_features = "big,k8s.zone.a";
	w.kube.meta.labels = {{"zone", "b"}};
	const bool shared = GENERATE(true, false);
	if (!shared)
		w.kube.meta.labels["private"] = "";
	w.had_features = true;
	w.restart();
	w.run();
	CHECK(w.slurm.features == (shared ? "big,k8s.zone.b" : "big"));
	CHECK(w.features_told == (shared ? std::vector<std::string>{"k8s.zone.b"} : std::vector<std::string>{}));
}

TEST_CASE("nodes: status says which features labels give a node, and how many labels give none")
{
	NodeWorld w(zones);
	w.set_labels({{"zone", "a"}, {"rack", "1,2"}});
	w.run();
	CHECK(w.controller->status("n1").dump().find("k8s.zone.a; 1 label is left out: rack is no label of Kubernetes") != std::string::npos);
	w.set_labels({});
	w.run();
	CHECK(w.controller->status("n1").dump().find("features") == std::string::npos);
}

TEST_CASE("nodes: those of the pool have its features, and no others")
{
	NodeWorld w([](ClusterSettings &s) {
		s.nodes.selector = "!private";
		s.nodes.exclusive.selector = "pool=batch";
	});
	w.slurm.features = w.slurm.active_features = "big";
	w.restart();
	w.run();
	CHECK(w.slurm.active_features == "big");
	w.set_label("pool", "batch");
	w.run();
	CHECK(w.slurm.features == "big,k8s.exclusive,k8s.shared");
	CHECK(w.slurm.active_features == "big,k8s.exclusive,k8s.shared");
	w.set_features("big"); // slurm.conf read again
	w.run();
	CHECK(w.slurm.active_features == "big,k8s.exclusive,k8s.shared");
	w.set_label("pool", "web");
	w.run();
	CHECK(w.slurm.active_features == "big");
}
