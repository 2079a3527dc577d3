// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/log.h"
#include "lib/core/link_state.h"
#include "test/unit/catch.h"
#include "test/unit/core/world.h"

using namespace sk8;
using namespace sk8::core;

namespace {

std::vector<std::string> &lines()
{
	static auto *all = new std::vector<std::string>;
	return *all;
}

struct LinkRig {
	test::VirtualTimer timer;
	LinkState link{"prod", timer};

	LinkRig()
	{
		lines().clear();
		set_log_sink([](LogLevel, const char *text) { lines().emplace_back(text); }, LogLevel::info);
	}
	~LinkRig() { set_log_sink(nullptr, LogLevel::info); }

	void call(const char *verb, const std::string &ns, int status, const std::string &message = "")
	{
		kube::Reply reply;
		reply.status = status;
		reply.error = status < 300 ? "" : std::string("cannot ") + verb + " things";
		if (!message.empty())
			reply.body = Json::object().set("message", message);
		link.called({verb, "things", ns, reply});
	}
};

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("link: one line says that a cluster is lost and one that it is back, however many lists it has")
{
	LinkRig rig;
	rig.link.lost("pods", "nobody listens");
	rig.link.lost("nodes", "nobody listens");
	rig.link.lost("pods", "something else");
	CHECK_FALSE(rig.link.connected());
	rig.timer.advance(Millis(35'000));
	rig.link.back("pods");
	CHECK(lines().size() == 1);
	rig.link.back("nodes");
	CHECK_FALSE(rig.link.back("nodes"));
	CHECK(rig.link.connected());
	REQUIRE(lines().size() == 2);
	CHECK(lines()[0] == "cluster prod: lost: nobody listens; Slurm goes on, what pods hold stays reserved");
	CHECK(lines()[1] == "cluster prod: back after 35 s: all is known again");
}

TEST_CASE("link: one that comes and goes fills no log, and is told how often it did")
{
	LinkRig rig;
	for (int i = 0; i < 100; i++) {
		rig.link.lost("pods", "reset");
		rig.timer.advance(Millis(500));
		rig.link.back("pods");
		rig.timer.advance(Millis(500));
	}
	CHECK(lines().size() <= 4);
	CHECK(contains(lines().at(2), "(lost and back 59 times before)"));
}

TEST_CASE("link: an outage soon after another is told late, but told")
{
	LinkRig rig;
	rig.link.lost("pods", "first");
	rig.link.back("pods");
	rig.link.lost("pods", "second");
	CHECK(lines().size() == 2);
	rig.timer.advance(Millis(60'000));
	REQUIRE(lines().size() == 3);
	CHECK(contains(lines()[2], "lost: second"));
	rig.link.back("pods");
	CHECK(lines().size() == 4);
}

TEST_CASE("link: others need not wait when a server is back that was away, and have no reason to when a watch has only expired")
{
	LinkRig rig;
	struct Row {
		int status;
		bool of_watch, hurries;
	};
	const Row row = GENERATE(Row{0, false, true}, Row{503, false, true}, Row{401, false, true}, Row{403, false, false}, Row{403, true, true},
				 Row{429, true, true}, Row{410, true, false}, Row{200, true, false});
	CAPTURE(row.status, row.of_watch);
	const bool told_first = GENERATE(true, false);
	if (told_first)
		rig.link.answered(row.status, row.of_watch);
	rig.link.lost("pods", "it is said why");
	rig.link.lost("nodes", "it is said why");
	if (!told_first)
		rig.link.answered(row.status, row.of_watch);
	CHECK(rig.link.back("pods") == row.hurries);
	CHECK(rig.link.back("nodes") == row.hurries); // it may have failed again meanwhile
	rig.link.lost("pods", "expired");
	CHECK_FALSE(rig.link.back("pods"));
}

TEST_CASE("link: a missing right is told once per verb and resource, and that it is given")
{
	LinkRig rig;
	const std::string no = R"(things "x" is forbidden: User "u" cannot get resource "things")";
	for (int i = 0; i < 50; i++) {
		rig.call("get", "a", 403, no);
		rig.call("get", "b", 403, no);
		rig.call("get", "c", 200); // allowed elsewhere: says nothing about a and b
		rig.call("list", "", 403, no);
		rig.timer.advance(Millis(1'000));
	}
	CHECK(rig.link.missing_rights() == std::set<std::string>{"get things", "list things"});
	REQUIRE(lines().size() == 2);
	CHECK(contains(lines()[0], "cluster prod: a right is missing: cannot get things"));
	for (int status : {0, 401, 429, 500}) // nobody was asked about rights
		rig.call("get", "a", status);
	rig.call("get", "a", 404); // allowed, it is only not there
	CHECK(lines().size() == 2);
	rig.call("get", "b", 200);
	REQUIRE(lines().size() == 3);
	CHECK(lines()[2] == "cluster prod: get things is allowed now");
	for (int i = 0; i < 2; i++) { // taken away again
		rig.call("get", "a", 403, no);
		rig.timer.advance(Millis(10'000));
	}
	CHECK(lines().size() == 4);
}

TEST_CASE("link: refusals of a server that has just started are no missing right")
{
	LinkRig rig;
	for (int outage = 0; outage < 5; outage++) {
		for (int second = 0; second < 9; second++) {
			rig.call("list", "", 403);
			rig.timer.advance(Millis(1'000));
		}
		rig.call("list", "", 200);
		rig.timer.advance(Millis(3'600'000));
	}
	CHECK(lines().empty());
	CHECK(rig.link.missing_rights().empty());
}

TEST_CASE("link: a refusal that is not about rights is no missing right")
{
	LinkRig rig;
	rig.call("create", "a", 403, "unable to create new content in namespace a because it is being terminated");
	CHECK(lines().empty());
	CHECK(rig.link.missing_rights().empty());
}
