// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <algorithm>

#include "lib/kube/reflector.h"
#include "lib/kube/url.h"
#include "test/unit/kube/rig.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

std::string pod(const std::string &name, const std::string &version, const std::string &node = "")
{
	return R"({"metadata":{"name":")" + name + R"(","namespace":"ns","uid":"u-)" + name +
	       R"(","resourceVersion":")" + version + R"("},"spec":{"nodeName":")" + node +
	       R"("},"status":{}})";
}

std::string list(const std::string &version, const std::string &items = "")
{
	return R"({"kind":"PodList","metadata":{"resourceVersion":")" + version + R"("},"items":[)" +
	       items + "]}";
}

std::string event(const std::string &type, const std::string &object)
{
	return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

std::string bookmark(const std::string &version)
{
	return event("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":")" + version + "\"}}");
}

std::string status(int code, const std::string &message = "why")
{
	return R"({"kind":"Status","code":)" + std::to_string(code) + R"(,"message":")" + message + "\"}";
}

// A reflector on a scripted server; what it tells is collected as text.
struct ReflectorRig : Rig {
	std::unique_ptr<HttpsServer> server;
	std::unique_ptr<Client> client;
	std::unique_ptr<Reflector<Pod>> reflector;
	std::string told;
	std::vector<PodPtr> objects;
	double chance = 0;

	explicit ReflectorRig(int port = 0, bool listening = true)
	{
		if (listening)
			server = std::make_unique<HttpsServer>(Pki::get().server, port);
		std::string url = "https://127.0.0.1:" + std::to_string(listening ? server->port() : port);
		ClientOptions options;
		options.max_item = 4096;
		client = std::make_unique<Client>(loop, access_to(url), options);
		ReflectorOptions what;
		what.name = "pods";
		what.path = resource_path(pods_resource);
		what.label_selector = "a=b";
		what.field_selector = "spec.nodeName=n";
		reflector = std::make_unique<Reflector<Pod>>(*client, what, decode_pod, callbacks(),
							     [this] { return chance; });
	}

	Reflector<Pod>::Callbacks callbacks()
	{
		return {[this](std::vector<PodPtr> all) {
				std::vector<std::string> names;
				for (const PodPtr &p : all)
					names.push_back(mark(p));
				std::sort(names.begin(), names.end());
				told += "[";
				for (auto &n : names)
					told += n;
				told += "]";
			},
			[this](PodPtr p) { told += "+" + mark(p); },
			[this](PodPtr p) { told += "-" + mark(p); },
			[this](std::string) { told += "lost"; }, [this] { told += "regained"; }};
	}

	std::string mark(const PodPtr &p)
	{
		objects.push_back(p);
		return p->meta.name + p->meta.resource_version + (p->problem.empty() ? "" : "!");
	}

	bool until_told(const std::string &what)
	{
		bool found = until([&] { return told.find(what) != told.npos; });
		INFO("told: " << told);
		CHECK(found);
		return found;
	}
	bool until_requests(std::size_t n)
	{
		return until([&] { return server->count() >= n; });
	}
	bool is_list(std::size_t i) const { return target(i).find("watch=true") == std::string::npos; }
	std::string target(std::size_t i) const { return server->seen().at(i).target; }
	std::string watched_from(std::size_t i) const
	{
		std::string t = target(i);
		std::size_t at = t.find("resourceVersion=");
		if (is_list(i) || at == t.npos)
			return "";
		at += sizeof("resourceVersion=") - 1;
		return t.substr(at, t.find('&', at) - at);
	}

	// After these a list and a watch that is up exist: 2 requests.
	std::shared_ptr<Stream> start(const std::string &items = pod("a", "1"))
	{
		server->push(200, list("10", items));
		auto stream = server->push_stream();
		reflector->start();
		REQUIRE(until_requests(2));
		REQUIRE(until([&] { return reflector->healthy(); }));
		// The list is there, but has the watch been accepted, too? Time will pass in one step.
		const Millis listed = reflector->health().heard;
		clock.advance(Millis(1));
		stream->send(bookmark("10"));
		REQUIRE(until([&] { return reflector->health().heard > listed; }));
		return stream;
	}
	void pass(Millis t)
	{
		clock.advance(t);
		settle();
	}
	// Time passes while the reflector pauses only: with a request under way a slow
	// machine would see the request's own deadline pass.
	template <class F>
	bool until_with_pauses(Millis step, F &&condition)
	{
		return until([&] {
			if (loop.in_flight() == 0)
				clock.advance(step);
			return condition();
		});
	}
	// Nothing is asked before the delay is over, then one thing is.
	void expect_request_after(Millis at_least, std::size_t before)
	{
		settle();
		REQUIRE(until([&] { return loop.in_flight() == 0; }));
		clock.advance(at_least - Millis(1));
		settle();
		CHECK(loop.in_flight() == 0); // nothing has been begun
		CHECK(server->count() == before);
		clock.advance(Millis(1));
		REQUIRE(until_requests(before + 1));
	}
};

} // namespace

TEST_CASE("reflector: a consistent list, then a watch from there")
{
	ReflectorRig rig;
	auto stream = rig.start(pod("a", "1") + "," + pod("b", "2"));
	CHECK(rig.told == "[a1b2]");
	CHECK(rig.target(0) == "/api/v1/pods?labelSelector=a%3Db&fieldSelector=spec.nodeName%3Dn");
	CHECK(rig.watched_from(1) == "10");
	CHECK(rig.target(1).find("allowWatchBookmarks=true") != std::string::npos);
	CHECK(rig.target(1).find("timeoutSeconds=300") != std::string::npos);
	CHECK(rig.target(1).find("labelSelector=a%3Db&fieldSelector=") != std::string::npos);
	stream->send(event("ADDED", pod("c", "11")) + event("MODIFIED", pod("a", "12")) +
		     event("DELETED", pod("b", "13")));
	rig.until_told("[a1b2]+c11+a12-b13");
	CHECK(rig.reflector->resource_version() == "13");
	CHECK(rig.reflector->synced());
}

TEST_CASE("reflector: the length of a watch is drawn between 5 and 10 minutes")
{
	ReflectorRig rig;
	rig.chance = 0.5;
	rig.start();
	CHECK(rig.target(1).find("timeoutSeconds=450") != std::string::npos);
}

TEST_CASE("reflector: a watch that ends is continued at the last version, bookmarks included")
{
	ReflectorRig rig;
	auto stream = rig.start();
	stream->send(event("ADDED", pod("b", "20")));
	rig.until_told("+b20");
	auto second = rig.server->push_stream();
	stream->end();
	REQUIRE(rig.until_requests(3));
	CHECK(rig.watched_from(2) == "20");
	second->send(bookmark("30"));
	REQUIRE(rig.until([&] { return rig.reflector->resource_version() == "30"; }));
	rig.server->push_stream();
	rig.pass(Millis(1000));
	second->cut();
	REQUIRE(rig.until_requests(4));
	CHECK(rig.watched_from(3) == "30");
	CHECK(rig.told == "[a1]+b20"); // nobody noticed
}

TEST_CASE("reflector: half a line at the end of a watch is no event")
{
	ReflectorRig rig;
	auto stream = rig.start();
	std::string line = event("MODIFIED", pod("a", "20"));
	stream->send(event("ADDED", pod("b", "19")) + line.substr(0, line.size() / 2));
	rig.until_told("+b19");
	rig.server->push_stream();
	stream->cut();
	REQUIRE(rig.until_requests(3));
	CHECK(rig.watched_from(2) == "19");
	CHECK(rig.told == "[a1]+b19");
}

TEST_CASE("reflector: 410 to a watch, by status or by event, leads to a new list at once")
{
	for (bool by_event : {false, true}) {
		INFO(by_event);
		ReflectorRig rig;
		auto stream = rig.start();
		std::size_t n = 3;
		if (by_event) {
			stream->send(event("ERROR", status(410)));
		} else {
			rig.server->push(410, status(410));
			rig.pass(Millis(2000));
			stream->end();
			n = 4;
		}
		rig.server->push(200, list("50", pod("c", "40")));
		rig.server->push_stream();
		REQUIRE(rig.until_requests(n + 1));
		CHECK(rig.is_list(n - 1));
		CHECK(rig.target(n - 1).find("resourceVersion") == std::string::npos);
		CHECK(rig.watched_from(n) == "50");
		CHECK(rig.told == "[a1]lost[c40]");
	}
}

TEST_CASE("reflector: a second 410 soon after the first waits")
{
	ReflectorRig rig;
	auto stream = rig.start();
	rig.server->push(200, list("50"));
	auto second = rig.server->push_stream();
	stream->send(event("ERROR", status(410)));
	REQUIRE(rig.until_requests(4));
	second->send(event("ERROR", status(410)));
	REQUIRE(rig.until([&] { return !rig.reflector->healthy(); }));
	rig.server->push(200, list("60"));
	rig.expect_request_after(Millis(1600), 4);
	CHECK(rig.is_list(4));
}

TEST_CASE("reflector: the first 410 of a server that is back from an outage leads to a list at once")
{
	ReflectorRig rig;
	auto stream = rig.start();
	for (int i = 0; i < 3; i++)
		rig.server->push(503, status(503));
	rig.pass(Millis(2000));
	stream->end();
	std::size_t n = 3;
	for (; n <= 5; n++) {
		REQUIRE(rig.until_requests(n));
		REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
		if (n == 5)
			rig.server->push_stream()->send(event("ERROR", status(410))); // it was started anew
		rig.pass(Millis(60'000));
	}
	rig.server->push(200, list("50", pod("c", "40")));
	REQUIRE(rig.until_requests(n + 1)); // no time passes
	CHECK(rig.is_list(n));
}

TEST_CASE("reflector: 410 to a list is tried again after a pause")
{
	ReflectorRig rig;
	rig.server->push(410, status(410));
	rig.reflector->start();
	rig.until_told("lost");
	CHECK_FALSE(rig.reflector->synced());
	rig.server->push(200, list("10", pod("a", "1")));
	rig.expect_request_after(Millis(800), 1);
	rig.until_told("[a1]");
}

TEST_CASE("reflector: a resourceVersion from the future means that the server was restored")
{
	for (const char *answer :
	     {R"({"kind":"Status","code":504,"message":"Too large resource version: 9, current: 5"})",
	      R"({"kind":"Status","code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}})"}) {
		ReflectorRig rig;
		auto stream = rig.start();
		rig.server->push(504, answer);
		rig.server->push(200, list("5"));
		rig.pass(Millis(2000));
		stream->end();
		REQUIRE(rig.until_requests(4));
		CHECK(rig.is_list(3));
	}
}

TEST_CASE("reflector: a watch that broke is not continued on a server that was restored from a backup")
{
	ReflectorRig rig;
	auto stream = rig.start(pod("a", "1") + "," + pod("b", "2"));
	stream->send(event("MODIFIED", pod("a", "1200")));
	rig.until_told("+a1200");
	// It would accept a watch from 1200 and be silent about all that happens until then.
	rig.server->answer_checks("900");
	rig.server->push(200, list("900", pod("a", "1") + "," + pod("c", "890")));
	rig.server->push_stream();
	rig.pass(Millis(2000));
	stream->cut();
	REQUIRE(rig.until_requests(4));
	CHECK(rig.is_list(2));
	CHECK(rig.watched_from(3) == "900");
	CHECK(rig.told == "[a1b2]+a1200lost[a1c890]");
}

TEST_CASE("reflector: an event older than one before it leads to a list, not into the past")
{
	ReflectorRig rig;
	auto stream = rig.start();
	stream->send(event("MODIFIED", pod("a", "12")) + event("MODIFIED", pod("a", "12")) + bookmark("11") +
		     event("MODIFIED", pod("a", "9")) + event("ADDED", pod("b", "13")));
	rig.server->push(200, list("20", pod("a", "12") + "," + pod("b", "13")));
	auto second = rig.server->push_stream();
	REQUIRE(rig.until_requests(4));
	CHECK(rig.is_list(2));
	CHECK(rig.told == "[a1]+a12+a12lost[a12b13]");
	// Again and again: with growing pauses.
	second->send(event("MODIFIED", pod("a", "12")));
	REQUIRE(rig.until([&] { return !rig.reflector->healthy(); }));
	rig.server->push(200, list("21"));
	rig.expect_request_after(Millis(1600), 4);
}

TEST_CASE("reflector: when nobody answered for a minute all is listed again")
{
	ReflectorRig rig;
	auto stream = rig.start();
	int port = rig.server->port();
	rig.pass(Millis(2000));
	rig.server.reset();
	rig.until_told("lost");
	for (int i = 0; i < 4; i++) {
		rig.clock.advance(Millis(30'000));
		REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
	}
	// By now a restored server may have counted beyond what was seen before.
	rig.server = std::make_unique<HttpsServer>(Pki::get().server, port);
	rig.server->push(200, list("50", pod("c", "40")));
	rig.server->push_stream();
	rig.pass(Millis(30'000));
	rig.until_told("lost[c40]");
	CHECK(rig.is_list(0));
}

TEST_CASE("reflector: a silent watch is renewed, and a server that sends no bookmarks costs no list")
{
	ReflectorRig rig;
	auto stream = rig.start();
	for (std::size_t n = 2; n < 6; n++) {
		rig.pass(Millis(149'000));
		CHECK(rig.server->count() == n);
		auto next = rig.server->push_stream();
		next->send("\n");
		rig.pass(Millis(1'000));
		REQUIRE(rig.until_requests(n + 1));
		CHECK(rig.watched_from(n) == "10");
		REQUIRE(rig.until([&] { return rig.loop.in_flight() == 1 && next->sent(); }));
		rig.loop.run_once(Millis(1'000)); // until it has arrived: the watch is accepted
	}
	CHECK(rig.told == "[a1]"); // nobody noticed
}

TEST_CASE("reflector: a watch that lasts as agreed is followed by the next without a question")
{
	ReflectorRig rig;
	rig.server->answer_checks(""); // a question would be seen
	auto stream = rig.start();
	rig.pass(Millis(140'000));
	stream->send(bookmark("11"));
	REQUIRE(rig.until([&] { return rig.reflector->resource_version() == "11"; }));
	rig.pass(Millis(140'000));
	stream->send(bookmark("12"));
	REQUIRE(rig.until([&] { return rig.reflector->resource_version() == "12"; }));
	rig.pass(Millis(15'000));
	rig.server->push_stream();
	stream->end();
	REQUIRE(rig.until_requests(3));
	CHECK(rig.watched_from(2) == "12");
}

TEST_CASE("reflector: watches that bring one event each and end are not begun more than once a second")
{
	ReflectorRig rig;
	auto stream = rig.start();
	stream->send(event("ADDED", pod("b", "20")));
	stream->end();
	int version = 21;
	std::size_t before = 0;
	for (int second = 0; second < 10; second++) {
		for (int i = 0; i < 5; i++) {
			auto s = rig.server->push_stream();
			s->send(event("MODIFIED", pod("b", std::to_string(version++))));
			s->end();
		}
		for (int i = 0; i < 50; i++)
			rig.loop.run_once(Millis(2));
		CHECK(rig.server->count() <= before + 4);
		before = rig.server->count();
		rig.clock.advance(Millis(1000));
	}
	CHECK(before >= 8); // and it goes on
	CHECK(rig.told.find("lost") == rig.told.npos);
}

TEST_CASE("reflector: 429 and 5xx wait, for Retry-After too, and go on where they were")
{
	ReflectorRig rig;
	auto stream = rig.start();
	rig.server->push({429, status(429), {{"Retry-After", "20"}}, nullptr, false});
	rig.pass(Millis(2000));
	stream->end();
	rig.until_told("lost");
	rig.server->push(503, status(503));
	rig.expect_request_after(Millis(20'000), 3);
	CHECK(rig.watched_from(2) == "10");
	CHECK(rig.watched_from(3) == "10");
	REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
	auto again = rig.server->push_stream();
	rig.expect_request_after(Millis(1600), 4);
	CHECK(rig.watched_from(4) == "10");
	CHECK_FALSE(rig.reflector->healthy());
	again->send(bookmark("12"));
	rig.until_told("regained");
	CHECK(rig.told == "[a1]lostregained");
	CHECK(rig.reflector->healthy());
}

TEST_CASE("reflector: a watch that is accepted and silent is trusted after a second")
{
	ReflectorRig rig;
	auto stream = rig.start();
	rig.server->push(500, status(500));
	rig.pass(Millis(2000));
	stream->end();
	rig.until_told("lost");
	auto second = rig.server->push_stream();
	rig.expect_request_after(Millis(800), 3);
	second->send("\n"); // headers and nothing else
	REQUIRE(rig.until([&] {
		rig.clock.advance(Millis(50));
		return rig.reflector->healthy();
	}));
	CHECK(rig.told == "[a1]lostregained");
}

TEST_CASE("reflector: a watch that is refused again and again is replaced by a list")
{
	ReflectorRig rig;
	auto stream = rig.start();
	for (int i = 0; i < 5; i++)
		rig.server->push(500, status(500));
	rig.server->push(200, list("99", pod("z", "98")));
	rig.server->push_stream();
	rig.pass(Millis(2000));
	stream->end();
	REQUIRE(rig.until_with_pauses(Millis(200), [&] { return rig.told.find("[z98]") != rig.told.npos; }));
	CHECK(rig.told == "[a1]lost[z98]");
	for (std::size_t i = 2; i < 7; i++)
		CHECK(rig.watched_from(i) == "10");
	CHECK(rig.is_list(7));
}

TEST_CASE("reflector: 403 is tried again with a pause, in place; 400 leads to a list")
{
	ReflectorRig rig;
	auto stream = rig.start();
	rig.server->push(403, status(403));
	rig.pass(Millis(2000));
	stream->end();
	rig.until_told("lost");
	rig.server->push(400, status(400));
	rig.expect_request_after(Millis(800), 3);
	CHECK(rig.watched_from(3) == "10");
	REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
	rig.server->push(200, list("11"));
	rig.expect_request_after(Millis(1600), 4);
	CHECK(rig.is_list(4));
}

TEST_CASE("reflector: an ERROR event of 429 goes on in place, any other leads to a list")
{
	ReflectorRig rig;
	auto stream = rig.start();
	stream->send(event("ERROR", status(429)));
	rig.until_told("lost");
	auto second = rig.server->push_stream();
	rig.expect_request_after(Millis(800), 2);
	CHECK(rig.watched_from(2) == "10");
	second->send(event("ERROR", status(400)));
	REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
	rig.server->push(200, list("11"));
	rig.expect_request_after(Millis(1600), 3);
	CHECK(rig.is_list(3));
}

TEST_CASE("reflector: watches that end at once without news do not become a busy loop")
{
	ReflectorRig rig;
	auto stream = rig.start();
	stream->end();
	Millis pause(800);
	for (std::size_t i = 2; i < 5; i++) {
		REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
		CHECK(rig.told == "[a1]");
		rig.server->push_stream()->end();
		rig.expect_request_after(pause, i);
		CHECK(rig.watched_from(i) == "10");
		pause *= 2;
		if (i == 3)
			break; // the third counts as lost
	}
	rig.until_told("lost");
}

TEST_CASE("reflector: a watch with no end is dropped 30 s after its time")
{
	ReflectorRig rig;
	auto stream = rig.start();
	for (const char *version : {"11", "12"}) { // not silent, or it would be renewed
		rig.pass(Millis(140'000));
		stream->send(bookmark(version));
		REQUIRE(rig.until([&] { return rig.reflector->resource_version() == version; }));
	}
	rig.pass(Millis(49'000));
	CHECK(rig.server->count() == 2);
	rig.server->push_stream();
	rig.clock.advance(Millis(1000));
	REQUIRE(rig.until_requests(3));
	CHECK(rig.watched_from(2) == "12");
	CHECK(rig.told == "[a1]");
}

TEST_CASE("reflector: a server that accepts a watch's request and never answers counts as lost")
{
	ReflectorRig rig;
	auto stream = rig.start();
	rig.server->push({0, "", {}, nullptr, true});
	rig.pass(Millis(2000));
	stream->end();
	REQUIRE(rig.until_requests(3));
	rig.pass(Millis(59'999));
	CHECK(rig.told == "[a1]");
	rig.pass(Millis(1));
	CHECK(rig.told == "[a1]lost");
	auto next = rig.server->push_stream();
	rig.expect_request_after(Millis(800), 3);
	next->send(event("ADDED", pod("b", "20")));
	rig.until_told("lostregained+b20");
}

TEST_CASE("reflector: a server that never answers a list costs a minute, then there is a pause")
{
	ReflectorRig rig;
	rig.server->push({0, "", {}, nullptr, true});
	rig.reflector->start();
	REQUIRE(rig.until_requests(1));
	rig.pass(Millis(60'000));
	rig.until_told("lost");
	rig.server->push(200, list("10", pod("a", "1")));
	rig.expect_request_after(Millis(800), 1);
	rig.until_told("[a1]");
}

TEST_CASE("reflector: when nobody listens it waits longer each time, and syncs when somebody does")
{
	int port = free_port();
	ReflectorRig rig(port, false);
	rig.reflector->start();
	rig.until_told("lost");
	for (int i = 0; i < 10; i++) {
		rig.clock.advance(Millis(30'000));
		REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
	}
	CHECK(rig.told == "lost"); // once
	rig.server = std::make_unique<HttpsServer>(Pki::get().server, port);
	rig.server->push(200, list("10", pod("a", "1")));
	rig.server->push_stream();
	rig.pass(Millis(30'000));
	rig.until_told("[a1]");
	CHECK(rig.reflector->healthy());
}

TEST_CASE("reflector: hurry ends a pause within a second, but not one that the server asked for")
{
	ReflectorRig rig;
	auto stream = rig.start();
	rig.reflector->hurry(); // nothing to hurry with
	const bool asked_to_wait = GENERATE(false, true);
	::Answer refusal{503, status(503), {}, nullptr, false};
	if (asked_to_wait)
		refusal.headers = {{"Retry-After", "60"}};
	rig.chance = 0.99;
	rig.pass(Millis(2000));
	for (int i = 0; i < 4; i++)
		rig.server->push(refusal);
	stream->end();
	std::size_t n = 3;
	for (; n <= 5; n++) {
		REQUIRE(rig.until_requests(n));
		REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
		rig.pass(Millis(60'000));
	}
	REQUIRE(rig.until_requests(n)); // a pause of 6.4 s at least begins
	REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
	rig.server->push_stream()->send(bookmark("12"));
	rig.reflector->hurry();
	if (asked_to_wait)
		return rig.expect_request_after(Millis(60'000), n);
	rig.expect_request_after(Millis(990), n);
	rig.until_told("regained");
}

TEST_CASE("reflector: a list that breaks off, or has no version, is not handed on")
{
	ReflectorRig rig;
	std::string whole = list("10", pod("a", "1"));
	const std::string broken[] = {whole.substr(0, whole.size() / 2), R"({"items":[]})",
				      R"({"metadata":{"resourceVersion":"5","continue":"x"},"items":[]})",
				      "<html>"};
	rig.reflector->start();
	for (std::size_t i = 0; i < 4; i++) {
		rig.server->push(200, broken[i]);
		REQUIRE(rig.until_with_pauses(Millis(100), [&] {
			return rig.server->count() > i && rig.loop.in_flight() == 0;
		}));
	}
	CHECK(rig.told == "lost");
	CHECK_FALSE(rig.reflector->synced());
}

TEST_CASE("reflector: an object that cannot be decoded neither stops the stream nor is forgotten")
{
	ReflectorRig rig;
	// what no parser takes, after the metadata
	std::string odd = R"({"metadata":{"name":"odd","namespace":"ns","uid":"u-odd","resourceVersion":"3"},
		"spec":{"x":tru}})";
	auto stream = rig.start(pod("a", "1") + "," + odd + "," + R"({"metadata":{"name":"x"}})");
	CHECK(rig.told == "[a1odd3!]");
	std::string changed = odd;
	changed.replace(changed.find("\"3\""), 3, "\"11\"");
	changed.erase(std::remove(changed.begin(), changed.end(), '\n'), changed.end());
	stream->send(event("MODIFIED", changed) + event("ADDED", R"({"metadata":{}})") +
		     event("WHAT", R"({"metadata":{}})") + event("ADDED", pod("b", "12")));
	rig.until_told("+odd11!+b12");
	changed.replace(changed.find("\"11\""), 4, "\"13\"");
	stream->send(event("DELETED", changed));
	rig.until_told("-odd13!");
}

TEST_CASE("reflector: what an API server takes hides no pod")
{
	ReflectorRig rig;
	const auto odd = [](const std::string &spec) {
		return R"({"metadata":{"name":"odd","namespace":"ns","uid":"u-odd","resourceVersion":"3"},"spec":)" + spec + "}";
	};
	auto stream = rig.start(odd(R"({"nodeName":"n1","volumes":[{"name":"v","csi":{"driver":"d","volumeAttributes":{"\u0000":"x"}}}]})"));
	CHECK(rig.told == "[odd3]");
	std::string changed = odd(R"({"x":99999999999999999999,"x":"\ud800"})");
	changed.replace(changed.find("\"3\""), 3, "\"11\"");
	stream->send(event("MODIFIED", changed));
	rig.until_told("+odd11");
}

TEST_CASE("reflector: of an event that is too large the pod is still known")
{
	ReflectorRig rig;
	auto stream = rig.start();
	std::string big = pod("big", "11");
	big.insert(big.size() - 1, R"(,"pad":")" + std::string(5000, 'x') + "\"");
	stream->send(event("ADDED", big) + event("ADDED", pod("b", "12")));
	rig.until_told("+big11!+b12");
}

TEST_CASE("reflector: an event of which nothing is known leads to a list, not to a loop")
{
	for (const std::string &line : {std::string("garbage\n"), std::string(5000, 'x') + "\n",
					std::string("{}\n"), std::string("[]\n")}) {
		ReflectorRig rig;
		auto stream = rig.start();
		stream->send(line);
		rig.until_told("lost");
		rig.server->push(200, list("50", pod("c", "40")));
		rig.expect_request_after(Millis(800), 2);
		CHECK(rig.is_list(2));
		rig.until_told("[c40]");
	}
}

TEST_CASE("reflector: stop ends everything, from a callback too, and start begins again")
{
	ReflectorRig rig;
	auto stream = rig.start();
	rig.reflector->stop();
	stream->send(event("ADDED", pod("b", "20")));
	rig.settle();
	CHECK(rig.loop.in_flight() == 0);
	CHECK(rig.told == "[a1]");
	rig.pass(Millis(3'600'000));
	CHECK(rig.server->count() == 2);

	rig.server->push(200, list("30", pod("c", "29")));
	auto third = rig.server->push_stream();
	rig.reflector->start();
	CHECK_FALSE(rig.reflector->synced());
	rig.until_told("[c29]");
	REQUIRE(rig.until_requests(4));
	CHECK(rig.is_list(2));

	int seen = 0;
	Reflector<Pod>::Callbacks stopping;
	std::unique_ptr<Reflector<Pod>> other;
	stopping.on_upsert = [&](PodPtr) {
		seen++;
		other->stop();
	};
	rig.server->push(200, list("30"));
	auto fourth = rig.server->push_stream();
	fourth->send(event("ADDED", pod("d", "31")) + event("ADDED", pod("e", "32")));
	other = std::make_unique<Reflector<Pod>>(
		*rig.client, ReflectorOptions{"other", resource_path(pods_resource), "", "", {}}, decode_pod,
		stopping, Random{});
	other->start();
	REQUIRE(rig.until([&] { return seen > 0; }));
	rig.settle();
	CHECK(seen == 1);
}

TEST_CASE("reflector: an exception in a callback neither stops the stream nor repeats the event")
{
	ReflectorRig rig;
	int calls = 0;
	Reflector<Pod>::Callbacks throwing;
	throwing.on_upsert = [&](PodPtr) -> void {
		calls++;
		throw std::runtime_error("bug");
	};
	Reflector<Pod> r(*rig.client, {"pods", resource_path(pods_resource), "", "", {}}, decode_pod, throwing,
			 Random{});
	rig.server->push(200, list("10"));
	auto stream = rig.server->push_stream();
	r.start();
	stream->send(event("ADDED", pod("a", "11")));
	auto second = rig.server->push_stream();
	REQUIRE(rig.until_requests(3));
	CHECK(rig.watched_from(2) == "11");
	CHECK(calls == 1);
	second->send(bookmark("12"));
	REQUIRE(rig.until([&] { return r.resource_version() == "12"; }));
}

namespace {

// What it tells ends in an exception, as often as is wished.
struct FailingRig : ReflectorRig {
	int fail_replace = 0, fail_upsert = 0, fail_lost = 0, fail_regained = 0;

	FailingRig()
	{
		Reflector<Pod>::Callbacks call = callbacks();
		const auto fail = [](int &left) {
			if (left > 0 && left--)
				throw std::runtime_error("bug");
		};
		call.on_replace = [this, fail, f = call.on_replace](std::vector<PodPtr> all) { f(all), fail(fail_replace); };
		call.on_upsert = [this, fail, f = call.on_upsert](PodPtr p) { f(p), fail(fail_upsert); };
		call.on_lost = [this, fail, f = call.on_lost](std::string why) { f(why), fail(fail_lost); };
		call.on_regained = [this, fail, f = call.on_regained] { f(), fail(fail_regained); };
		reflector = std::make_unique<Reflector<Pod>>(*client, ReflectorOptions{"pods", resource_path(pods_resource), "", "", {}},
							     decode_pod, call, [this] { return chance; });
	}
};

} // namespace

TEST_CASE("reflector: a list whose taker fails does not count, and comes again after a pause")
{
	FailingRig rig;
	rig.fail_replace = 2;
	rig.server->push(200, list("10", pod("a", "1")));
	rig.reflector->start();
	rig.until_told("[a1]lost");
	CHECK_FALSE(rig.reflector->synced());
	rig.server->push(200, list("20", pod("b", "12")));
	rig.expect_request_after(Millis(800), 1);
	rig.until_told("lost[b12]lost");
	CHECK_FALSE(rig.reflector->healthy());
	rig.server->push(200, list("30", pod("c", "22")));
	rig.server->push_stream();
	rig.expect_request_after(Millis(1600), 2);
	rig.until_told("[c22]");
	REQUIRE(rig.until_requests(4));
	CHECK(rig.watched_from(3) == "30");
	CHECK(rig.reflector->healthy());
}

TEST_CASE("reflector: it goes on although whoever is told of a loss fails")
{
	FailingRig rig;
	rig.fail_lost = 1;
	rig.server->push(410, status(410));
	rig.reflector->start();
	rig.until_told("lost");
	rig.server->push(200, list("10", pod("a", "1")));
	rig.expect_request_after(Millis(800), 1);
	rig.until_told("[a1]");
}

TEST_CASE("reflector: an event whose taker fails is followed by a list, after a pause in which other events come")
{
	FailingRig rig;
	auto stream = rig.start();
	rig.fail_upsert = 1;
	auto second = rig.server->push_stream();
	stream->send(event("ADDED", pod("b", "11")));
	rig.until_told("+b11lost");
	CHECK_FALSE(rig.reflector->healthy());
	REQUIRE(rig.until_requests(3));
	CHECK(rig.watched_from(2) == "11");
	second->send(event("ADDED", pod("c", "12")));
	rig.until_told("+c12");
	rig.pass(Millis(799));
	CHECK(rig.server->count() == 3);
	CHECK_FALSE(rig.reflector->healthy()); // not regained by a watch that works
	rig.server->push(200, list("20", pod("b", "11") + "," + pod("c", "12")));
	rig.server->push_stream();
	rig.clock.advance(Millis(1));
	REQUIRE(rig.until_requests(5));
	CHECK(rig.is_list(3));
	CHECK(rig.watched_from(4) == "20");
	CHECK(rig.told == "[a1]+b11lost+c12[b11c12]");
	CHECK(rig.reflector->healthy());
}

TEST_CASE("reflector: the pause before a list grows as long as each event's taker fails")
{
	FailingRig rig;
	auto stream = rig.start();
	rig.fail_upsert = 1000;
	std::size_t n = 2;
	int version = 11;
	for (Millis pause(800); pause < Millis(20'000); pause *= 2) {
		CAPTURE(pause.count());
		auto second = rig.server->push_stream();
		stream->send(event("ADDED", pod("b", std::to_string(version++))));
		REQUIRE(rig.until_requests(++n));
		REQUIRE(rig.until([&] { return !rig.reflector->healthy(); }));
		second->send(bookmark(std::to_string(version)));
		REQUIRE(rig.until([&] { return rig.reflector->resource_version() == std::to_string(version); }));
		rig.pass(pause - Millis(1));
		CHECK(rig.server->count() == n);
		rig.server->push(200, list(std::to_string(version++)));
		stream = rig.server->push_stream();
		rig.clock.advance(Millis(1));
		REQUIRE(rig.until_requests(n += 2));
		CHECK(rig.is_list(n - 2));
	}
}

TEST_CASE("reflector: when whoever is told that a watch works again fails, all is listed")
{
	FailingRig rig;
	auto stream = rig.start();
	rig.fail_regained = 1;
	rig.server->push(500, status(500));
	rig.pass(Millis(2000));
	stream->end();
	rig.until_told("lost");
	auto second = rig.server->push_stream();
	rig.expect_request_after(Millis(800), 3);
	second->send(bookmark("12"));
	rig.until_told("regainedlost");
	rig.server->push(200, list("20", pod("a", "1")));
	rig.server->push_stream();
	REQUIRE(rig.until([&] {
		rig.clock.advance(Millis(50));
		return rig.reflector->healthy();
	}));
	CHECK(rig.told == "[a1]lostregainedlost[a1]");
}
