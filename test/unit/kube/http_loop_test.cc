// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <atomic>
#include <stdexcept>
#include <thread>

#include "test/unit/kube/rig.h"

using namespace sk8;
using namespace sk8::kube;

TEST_CASE("http: a request is answered with status, type and body")
{
	HttpsServer server;
	Rig rig;
	server.push({200, "hello", {{"Content-Type", "text/plain"}}, nullptr, false});
	HttpRequest r = request_to(server.url() + "/a%2Fb/../c?x=%20");
	r.bearer_token = "tok";
	r.method = "PATCH";
	r.body = "{}";
	r.content_type = "application/merge-patch+json";
	HttpResponse got = rig.fetch(r);
	CHECK(got.status == 200);
	CHECK(got.body == "hello");
	CHECK(got.content_type == "text/plain");
	CHECK(got.error == "");
	auto seen = server.seen();
	REQUIRE(seen.size() == 1);
	CHECK(seen[0].target == "/a%2Fb/../c?x=%20");
	CHECK(seen[0].authorization == "Bearer tok");
	CHECK(seen[0].method == "PATCH");
	CHECK(seen[0].body == "{}");
	CHECK(seen[0].content_type == "application/merge-patch+json");
}

TEST_CASE("http: a certificate of an unknown authority is refused before anything is sent")
{
	HttpsServer server;
	Rig rig;
	HttpResponse got = rig.fetch(request_to(server.url(), Pki::get().other_ca));
	CHECK(got.status == 0);
	CHECK(got.error != "");
	got = rig.fetch(request_to(server.url(), "")); // the system's authorities
	CHECK(got.status == 0);
	CHECK(server.count() == 0);
}

TEST_CASE("http: a certificate for another name is refused, unless that name is the one wanted")
{
	HttpsServer server(Pki::get().elsewhere);
	Rig rig;
	HttpResponse got = rig.fetch(request_to(server.url()));
	CHECK(got.status == 0);
	CHECK(server.count() == 0);

	server.push(200, "x");
	got = rig.fetch(request_to(server.url() + "/p", Pki::get().ca, "api.example"));
	CHECK(got.error == "");
	CHECK(got.status == 200);
	REQUIRE(server.count() == 1);
	CHECK(server.seen()[0].host == "127.0.0.1:" + std::to_string(server.port()));
	CHECK(server.seen()[0].target == "/p");

	HttpsServer right;
	got = rig.fetch(request_to(right.url(), Pki::get().ca, "wrong.example"));
	CHECK(got.status == 0);
}

TEST_CASE("http: anything but https is refused")
{
	Rig rig;
	for (const char *url : {"http://127.0.0.1:1/", "file:///etc/passwd", "", "HTTPS//x"}) {
		HttpResponse got = rig.fetch(request_to(url));
		CHECK(got.status == 0);
		CHECK(got.error == "only https:// is spoken");
	}
}

TEST_CASE("http: redirects are not followed")
{
	HttpsServer server;
	Rig rig;
	server.push({302, "", {{"Location", server.url() + "/other"}}, nullptr, false});
	CHECK(rig.fetch(request_to(server.url())).status == 302);
	CHECK(server.count() == 1);
}

TEST_CASE("http: Retry-After is read and limited to five minutes")
{
	HttpsServer server;
	Rig rig;
	server.push({429, "", {{"Retry-After", "7"}}, nullptr, false});
	server.push({503, "", {{"Retry-After", "999999"}}, nullptr, false});
	server.push({503, "", {{"Retry-After", "soon"}}, nullptr, false});
	CHECK(rig.fetch(request_to(server.url())).retry_after == Millis(7000));
	CHECK(rig.fetch(request_to(server.url())).retry_after == Millis(300'000));
	CHECK_FALSE(rig.fetch(request_to(server.url())).retry_after.has_value());
}

TEST_CASE("http: a server that accepts and never answers costs one timeout of virtual time")
{
	Rig rig;
	SilentServer silent;  // not even TLS
	HttpsServer hanging; // TLS, then nothing
	hanging.push({0, "", {}, nullptr, true});
	for (const std::string &url : {silent.url(), hanging.url()}) {
		INFO(url);
		HttpRequest r = request_to(url);
		r.timeout = Millis(30'000);
		std::optional<HttpResponse> got;
		rig.loop.start(r, [&](HttpResponse x) { got = std::move(x); });
		rig.settle();
		if (url == hanging.url())
			REQUIRE(rig.until([&] { return hanging.count() == 1; }));
		rig.clock.advance(Millis(29'999));
		rig.settle();
		CHECK_FALSE(got.has_value());
		rig.clock.advance(Millis(1));
		rig.settle();
		REQUIRE(got.has_value());
		CHECK(got->status == 0);
		CHECK(got->error == "no complete answer within 30 s");
	}
	CHECK(rig.loop.in_flight() == 0);
}

TEST_CASE("http: a connection that is not made in time fails by itself")
{
	Rig rig;
	SilentServer silent;
	HttpRequest r = request_to(silent.url());
	r.connect_timeout = Millis(50); // real time: libcurl's
	r.timeout = Millis(0);
	CHECK(rig.fetch(r).error != "");
}

TEST_CASE("http: nobody listening is an error at once")
{
	Rig rig;
	HttpResponse got = rig.fetch(request_to("https://127.0.0.1:" + std::to_string(free_port())));
	CHECK(got.status == 0);
	CHECK(got.error != "");
	CHECK(got.not_sent);
}

TEST_CASE("http: a body may come in pieces, and a stalled one is given up")
{
	HttpsServer server;
	Rig rig;
	auto stream = server.push_stream();
	HttpRequest r = request_to(server.url());
	std::string data;
	int status = 0;
	r.timeout = Millis(0);
	r.idle_timeout = Millis(10'000);
	r.on_status = [&](int s) { status = s; };
	r.on_data = [&](std::string_view bytes) {
		data += bytes;
		return true;
	};
	std::optional<HttpResponse> got;
	rig.loop.start(r, [&](HttpResponse x) { got = std::move(x); });
	stream->send("one");
	REQUIRE(rig.until([&] { return data == "one"; }));
	CHECK(status == 200);
	rig.clock.advance(Millis(9'000));
	stream->send("two");
	REQUIRE(rig.until([&] { return data == "onetwo"; }));
	rig.clock.advance(Millis(9'999)); // counted anew
	rig.settle();
	CHECK_FALSE(got.has_value());
	rig.clock.advance(Millis(1));
	REQUIRE(rig.until([&] { return got.has_value(); }));
	CHECK(got->status == 200);
	CHECK(got->error == "nothing came for 10 s");
}

TEST_CASE("http: a connection that breaks within the body is an error with the status")
{
	HttpsServer server;
	Rig rig;
	auto stream = server.push_stream();
	stream->send("half");
	stream->cut();
	HttpResponse got = rig.fetch(request_to(server.url()));
	CHECK(got.status == 200);
	CHECK(got.error != "");
}

TEST_CASE("http: a body above the limit is refused")
{
	HttpsServer server;
	Rig rig;
	HttpRequest r = request_to(server.url());
	r.max_body = 1000;
	server.push(200, std::string(1000, 'x'));
	CHECK(rig.fetch(r).error == "");
	server.push(200, std::string(1001, 'x'));
	CHECK(rig.fetch(r).error == "the answer is larger than 1000 bytes");
}

TEST_CASE("http: the reader of a body can stop it, cancel it, or throw")
{
	HttpsServer server;
	Rig rig;
	for (int how = 0; how < 3; how++) {
		INFO(how);
		auto stream = server.push_stream();
		stream->send("x");
		HttpRequest r = request_to(server.url());
		std::optional<HttpResponse> got;
		HttpLoop::RequestId id = 0;
		int calls = 0;
		r.on_data = [&](std::string_view) -> bool {
			calls++;
			if (how == 1)
				rig.loop.cancel(id);
			if (how == 2)
				throw std::runtime_error("bug");
			return how == 1;
		};
		id = rig.loop.start(r, [&](HttpResponse x) { got = std::move(x); });
		REQUIRE(rig.until([&] { return rig.loop.in_flight() == 0; }));
		rig.settle();
		CHECK(calls == 1);
		CHECK(got.has_value() == (how != 1));
		if (how == 0) {
			CHECK(got->stopped);
			CHECK(got->error == "");
		}
		if (how == 2)
			CHECK(got->error != "");
	}
}

TEST_CASE("http: requests share a connection, those that want their own get it")
{
	HttpsServer server;
	Rig rig;
	const HttpRequest shared = request_to(server.url());
	for (int i = 0; i < 4; i++)
		server.push(200, "x");
	rig.fetch(shared);
	rig.fetch(shared);
	HttpRequest own = shared;
	own.own_connection = true;
	rig.fetch(own);
	rig.fetch(shared);
	auto seen = server.seen();
	REQUIRE(seen.size() == 4);
	CHECK(seen[0].connection == seen[1].connection);
	CHECK(seen[2].connection != seen[0].connection);
	CHECK(seen[3].connection == seen[0].connection);
}

TEST_CASE("http: a request with other credentials never uses the connection of the first")
{
	HttpsServer server;
	Rig rig;
	HttpRequest one = request_to(server.url()), two = request_to(server.url());
	for (const HttpRequest &r : {one, two, two, one}) {
		server.push(200, "x");
		rig.fetch(r);
	}
	auto seen = server.seen();
	REQUIRE(seen.size() == 4);
	CHECK(seen[0].connection != seen[1].connection);
	CHECK(seen[1].connection == seen[2].connection);
	CHECK(seen[3].connection != seen[2].connection);
}

TEST_CASE("http: after renew_connections nothing uses an old connection, and what runs ends well")
{
	HttpsServer server;
	Rig rig;
	const HttpRequest shared = request_to(server.url());
	auto slow = server.push_stream();
	std::optional<HttpResponse> finished, ended;
	rig.loop.start(shared, [&](HttpResponse r) { finished = std::move(r); });
	REQUIRE(rig.until([&] { return server.count() == 1; }));
	auto forever = server.push_stream();
	HttpRequest watch = shared;
	watch.own_connection = true;
	rig.loop.start(watch, [&](HttpResponse r) { ended = std::move(r); });
	REQUIRE(rig.until([&] { return server.count() == 2; }));

	rig.loop.renew_connections();
	REQUIRE(rig.until([&] { return ended.has_value(); }));
	CHECK(ended->error == "the connection ended because the credentials changed");
	CHECK_FALSE(finished.has_value());
	server.push(200, "x");
	rig.fetch(shared);
	slow->send("done");
	slow->end();
	REQUIRE(rig.until([&] { return finished.has_value(); }));
	CHECK(finished->body == "done");
	server.push(200, "x");
	rig.fetch(shared);
	auto seen = server.seen();
	REQUIRE(seen.size() == 4);
	CHECK(seen[2].connection != seen[0].connection);
	CHECK(seen[3].connection == seen[2].connection);
}

TEST_CASE("http: more requests than the pool allows wait their turn, a watch does not")
{
	const int pool = RequestLimits().in_flight;
	HttpsServer server;
	Rig rig;
	std::vector<std::shared_ptr<Stream>> streams;
	int done = 0;
	for (int i = 0; i < pool; i++) {
		streams.push_back(server.push_stream());
		HttpRequest r = request_to(server.url());
		r.priority = Priority::urgent; // others leave one place
		rig.loop.start(r, [&](HttpResponse) { done++; });
	}
	REQUIRE(rig.until([&] { return int(server.count()) == pool; }));
	server.push(200, "watch");
	HttpRequest watch = request_to(server.url());
	watch.own_connection = true;
	bool watch_done = false, late_done = false;
	rig.loop.start(request_to(server.url() + "/late"), [&](HttpResponse) { late_done = true; });
	rig.loop.start(watch, [&](HttpResponse) { watch_done = true; });
	REQUIRE(rig.until([&] { return watch_done; }));
	CHECK_FALSE(late_done);
	server.push(200, "late");
	streams[0]->end();
	REQUIRE(rig.until([&] { return late_done; }));
	CHECK(done == 1);
	for (auto &s : streams)
		s->end();
	REQUIRE(rig.until([&] { return done == pool; }));
}

TEST_CASE("loop: timers run in order of time, once, and can be cancelled")
{
	Rig rig;
	std::string order;
	rig.loop.after(Millis(20), [&] { order += 'b'; });
	rig.loop.after(Millis(10), [&] {
		order += 'a';
		rig.loop.after(Millis(0), [&] { order += 'x'; });
	});
	auto id = rig.loop.after(Millis(15), [&] { order += '!'; });
	rig.loop.after(Millis(20), [&] { throw std::runtime_error("bug"); });
	rig.loop.after(Millis(20), [&] { order += 'c'; });
	rig.loop.cancel_timer(id);
	rig.loop.cancel_timer(id);
	rig.loop.cancel_timer(12345);
	rig.settle();
	CHECK(order == "");
	rig.clock.advance(Millis(10));
	rig.loop.run_once(Millis(0));
	CHECK(order == "a"); // not yet what it added
	rig.loop.run_once(Millis(0));
	CHECK(order == "ax");
	rig.clock.advance(Millis(100));
	rig.settle();
	CHECK(order == "axbc");
}

TEST_CASE("loop: a timer can cancel the next one")
{
	Rig rig;
	bool ran = false;
	HttpLoop::TimerId second = 0;
	rig.loop.after(Millis(1), [&] { rig.loop.cancel_timer(second); });
	second = rig.loop.after(Millis(2), [&] { ran = true; });
	rig.clock.advance(Millis(5));
	rig.settle();
	CHECK_FALSE(ran);
}

TEST_CASE("loop: other threads post functions, which run in order on the loop's thread")
{
	Rig rig;
	std::vector<int> got;
	auto me = std::this_thread::get_id();
	bool here = true;
	std::thread other([&] {
		for (int i = 0; i < 1000; i++)
			rig.loop.post([&, i] {
				here = here && std::this_thread::get_id() == me;
				got.push_back(i);
			});
	});
	// Far longer than the test may take: only being woken ends these waits.
	while (got.size() < 1000)
		rig.loop.run_once(Millis(60'000));
	other.join();
	CHECK(here);
	for (int i = 0; i < 1000; i++)
		REQUIRE(got[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("loop: wake ends a wait, also one that has not begun")
{
	Rig rig;
	rig.loop.wake();
	auto begin = std::chrono::steady_clock::now();
	rig.loop.run_once(Millis(30'000));
	std::thread other([&] { rig.loop.wake(); });
	rig.loop.run_once(Millis(30'000));
	other.join();
	CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("loop: a loop that ends drops what runs and calls nobody")
{
	HttpsServer server;
	auto stream = server.push_stream();
	int calls = 0;
	{
		Rig rig;
		HttpRequest r = request_to(server.url());
		r.on_data = [](std::string_view) { return true; };
		rig.loop.start(r, [&](HttpResponse) { calls++; });
		rig.loop.after(Millis(0), [] {});
		REQUIRE(rig.until([&] { return server.count() == 1; }));
		HttpLoop::RequestId id = rig.loop.start(r, [&](HttpResponse) { calls++; });
		rig.loop.cancel(id);
		rig.loop.start(r, [&](HttpResponse) { calls++; });
		rig.loop.post([&] { calls++; });
	}
	CHECK(calls == 0);
}
