// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/lost_pods.h"

#include "lib/core/names.h"
#include "test/unit/catch.h"
#include "test/unit/core/node_world.h"

using namespace sk8;
using namespace sk8::core;
using namespace sk8::core::test;

static kube::Node answering(const std::string &name, const std::string &text)
{
	kube::Node node;
	node.meta.name = name;
	node.meta.annotations[std::string(names::gone)] = text;
	return node;
}

TEST_CASE("lost pods: what stands in an annotation may be anything")
{
	const struct {
		std::string text, taken;
	} rows[] = {
		{"", ""},
		{"a-1@100", "a-1@100"},
		{"b@7,a@100", "a@100,b@7"},
		{"a@100,a@100", "a@100"},
		{",,a@100,", "a@100"},
		{"a", ""},
		{"a@", ""},
		{"@100", ""},
		{"a@-1", ""},
		{"a@0100", ""},
		{"a@100@100", ""},
		{"a@100 ", ""},
		{"a/../b@100", ""},
		{"a@999999999999", ""},
		{std::string(65, 'a') + "@100", ""},
		{std::string(64, 'a') + "@100", std::string(64, 'a') + "@100"},
		{std::string(200'000, ','), ""},
		{std::string("a\0b@1", 5), ""},
	};
	for (const auto &row : rows) {
		INFO(row.text.substr(0, 100));
		CHECK(lost_text(parse_lost(row.text)) == row.taken);
	}
	std::string many;
	for (int i = 0; i < 1000; i++)
		many += "a" + std::to_string(i) + "@1,";
	CHECK(parse_lost(many).size() == max_lost_pods);
}

TEST_CASE("lost pods: only an answer to what is asked now counts")
{
	LostPods lost;
	lost.add("a", "n1", 100);
	lost.add("b", "n2", 200);
	CHECK(lost.question("n1") == "a@100");
	CHECK(lost.take_changed() == std::set<std::string>{"n1", "n2"});
	CHECK(lost.take_changed().empty());
	const struct {
		const char *node, *text;
		std::vector<std::string> answered;
	} rows[] = {
		{"n1", "a@100", {"a"}},
		{"n1", "a@100,b@200,c@300", {"a"}},
		{"n1", "a@99", {}}, // of a former loss
		{"n1", "a", {}},
		{"n1", "", {}},
		{"n2", "a@100", {}}, // another node's word about it
		{"n3", "a@100", {}},
	};
	for (const auto &row : rows) {
		INFO(row.node << " says " << row.text);
		CHECK(lost.answered(answering(row.node, row.text)) == row.answered);
	}
	lost.remove("a");
	lost.remove("never");
	CHECK(lost.question("n1").empty());
	CHECK(lost.answered(answering("n1", "a@100")).empty());
	CHECK(lost.take_changed() == std::set<std::string>{"n1"});
	lost.add("a", "n1", 300); // it came back, and is lost again
	CHECK(lost.answered(answering("n1", "a@100")).empty());
	CHECK(lost.answered(answering("n1", "a@300")).size() == 1);
	lost.add("no uid", "n1", 300);
	CHECK(lost.question("n1") == "a@300");
}

TEST_CASE("lost pods: of too many those that are lost for longest are asked first, and the others then")
{
	LostPods lost;
	for (std::size_t i = 0; i < 2 * max_lost_pods; i++)
		lost.add("p" + std::to_string(i), "n1", static_cast<std::int64_t>(1000 - i));
	CHECK(parse_lost(lost.question("n1")).size() == max_lost_pods);
	CHECK(lost.answered(answering("n1", "p0@1000,p127@873")) == std::vector<std::string>{"p127"});
	for (std::size_t i = max_lost_pods; i < 2 * max_lost_pods; i++)
		lost.remove("p" + std::to_string(i));
	CHECK(lost.answered(answering("n1", "p0@1000,p127@873")) == std::vector<std::string>{"p0"});
}

TEST_CASE("nodes: an agent is asked about lost pods, once, and no more when there are none")
{
	NodeWorld w;
	w.lost = std::nullopt; // not known yet
	w.kube.meta.annotations[std::string(names::lost)] = "of-a-former-slurmctld@1";
	w.run();
	CHECK(w.note(names::lost) == "of-a-former-slurmctld@1");
	const int before = w.kube_writes;
	w.lost = "a@100";
	w.controller->lost_changed("n1");
	w.run(Millis(5'000));
	CHECK(w.note(names::lost) == "a@100");
	CHECK(w.kube_writes == before + 1);
	w.fail_kube = 409;
	w.lost = "";
	w.controller->lost_changed("n1");
	w.run();
	w.fail_kube = 0;
	w.run(Millis(5'000));
	CHECK_FALSE(w.kube.meta.annotations.contains(std::string(names::lost)));
}

TEST_CASE("nodes: nothing waits for an agent that may not be asked, which is tried again by and by")
{
	NodeWorld w([](ClusterSettings &s) { s.state.slurm = StateSettings::OnSlurm::ignore; }); // no other writes
	w.run();
	REQUIRE(w.kube_writes == 0);
	w.fail_kube = 403;
	w.lost = "a@100";
	w.controller->lost_changed("n1");
	w.run();
	CHECK(w.refused == 1);
	w.cordon(true);
	w.run(Millis(30'000));
	CHECK_FALSE(w.drained().empty());
	CHECK(w.refused == 1);
	w.fail_kube = 0;
	w.run(Millis(60'000));
	CHECK(w.note(names::lost) == "a@100");
}
