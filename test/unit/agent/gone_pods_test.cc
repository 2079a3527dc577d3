// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/gone_pods.h"

#include "lib/agent/node_report.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::agent;

namespace {

// The pod "lost" is asked for. Every two seconds somebody looks; its kubelet renews its lease of 40 s every ten.
struct Node {
	enum class Is { nowhere, empty, running };
	Node() { pods.ask({"lost@100"}); }

	// Until it is gone, at most; how long that took.
	std::int64_t seconds_until_gone(Is is, int most = 1000)
	{
		const Millis begin = now;
		while (now - begin < Millis(most * 1000) && pods.gone().empty())
			look(is);
		return pods.gone().empty() ? -1 : (now - begin).count() / 1000;
	}
	void look(Is is)
	{
		now += Millis(2000);
		GoneLook found;
		found.at = now;
		if (beside)
			found.cgroups["beside"] = true;
		found.objects.insert("beside");
		if (object)
			found.objects.insert("lost");
		if (is != Is::nowhere)
			found.cgroups["lost"] = is == Is::running;
		if (lease_readable)
			found.lease = KubeletLease{renews ? std::to_string(now.count() / 10'000) : "once", Millis(40'000)};
		pods.look(found);
	}
	void look(Is is, int seconds)
	{
		for (int i = 0; i < seconds; i += 2)
			look(is);
	}

	GonePods pods;
	Millis now{1'000'000};
	bool beside = true, object = false, renews = true, lease_readable = true;
};
using enum Node::Is;

} // namespace

TEST_CASE("gone pods: one that has run here is gone with its cgroup, whatever its kubelet does")
{
	Node n;
	n.renews = n.beside = false;
	CHECK(n.seconds_until_gone(running) == -1);
	CHECK(n.pods.running() == std::set<std::string>{"lost@100"});
	CHECK(n.seconds_until_gone(nowhere) == 6); // two looks more
	CHECK(n.pods.gone() == std::set<std::string>{"lost@100"});
}

TEST_CASE("gone pods: one that has not been seen to run is gone when its kubelet was heard of for as long as it may start it")
{
	Node n;
	SECTION("without a cgroup")
	{
		const auto took = n.seconds_until_gone(nowhere);
		CHECK((took >= 120 && took <= 140));
	}
	SECTION("with an empty one it may be about to start")
	{
		const auto took = n.seconds_until_gone(empty);
		CHECK((took >= 300 && took <= 320));
	}
	SECTION("also one that has run and left it")
	{
		n.look(running);
		const auto took = n.seconds_until_gone(empty);
		CHECK((took >= 300 && took <= 320));
	}
	SECTION("a process begins all anew")
	{
		n.look(empty, 290);
		n.look(running);
		CHECK(n.seconds_until_gone(empty, 280) == -1);
	}
	SECTION("and so does a moment in which nobody could look")
	{
		n.look(nowhere, 110);
		n.pods.blind();
		CHECK(n.seconds_until_gone(nowhere, 110) == -1);
	}
	SECTION("a kubelet that comes back has not heard yet what was deleted")
	{
		n.renews = false;
		n.look(nowhere, 600);
		n.renews = true;
		const auto took = n.seconds_until_gone(nowhere);
		CHECK((took >= 120 && took <= 140));
	}
	SECTION("one that was away for longer than its lease lasts has not either")
	{
		n.look(nowhere, 100);
		n.renews = false;
		n.look(nowhere, 44);
		n.renews = true;
		CHECK(n.seconds_until_gone(nowhere, 110) == -1);
	}
}

TEST_CASE("gone pods: where something is not known nothing is said")
{
	Node n;
	SECTION("a lease that nobody renews, which may be of any age") { n.renews = false; }
	SECTION("a lease that cannot be read") { n.lease_readable = false; }
	SECTION("no pod has its cgroup where we look: they may have them elsewhere") { n.beside = false; }
	SECTION("the API server has the pod: its kubelet may start it any moment") { n.object = true; }
	CHECK(n.seconds_until_gone(nowhere) == -1);
}

TEST_CASE("gone pods: what was seen counts for one loss only")
{
	Node n;
	n.look(running);
	REQUIRE(n.seconds_until_gone(nowhere) > 0);
	n.pods.ask({"lost@100", "other@200"}); // is asked beside it
	CHECK(n.pods.gone() == std::set<std::string>{"lost@100"});
	n.pods.ask({"lost@300"}); // it came back, and was lost again
	CHECK(n.pods.gone().empty());
	CHECK(n.seconds_until_gone(nowhere, 100) == -1);
	CHECK(n.seconds_until_gone(nowhere) > 0);
	n.look(running); // ... against what was said
	CHECK(n.pods.gone().empty());
	n.pods.ask({});
	CHECK_FALSE(n.pods.asked());
}

TEST_CASE("gone pods: what a lease says, or nothing")
{
	const struct {
		const char *json;
		std::int64_t lasts; // seconds; 0: nothing
	} rows[] = {
		{R"({"spec":{"renewTime":"2026-03-02T14:20:00.000000Z","leaseDurationSeconds":40}})", 40},
		{R"({"spec":{"renewTime":"","leaseDurationSeconds":40}})", 0},
		{R"({"spec":{"renewTime":7,"leaseDurationSeconds":40}})", 0},
		{R"({"spec":{"renewTime":"x","leaseDurationSeconds":0}})", 0},
		{R"({"spec":{"renewTime":"x","leaseDurationSeconds":1000000000}})", 0},
		{R"({"spec":{"renewTime":"x"}})", 0},
		{R"({"spec":[]})", 0},
		{"null", 0},
	};
	for (const auto &row : rows) {
		INFO(row.json);
		const auto lease = parse_lease(*Json::parse(row.json));
		CHECK(lease.has_value() == (row.lasts > 0));
		if (lease)
			CHECK(lease->lasts == Millis(row.lasts * 1000));
	}
}
