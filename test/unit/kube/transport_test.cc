// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Faults between us and the API server: names, proxies, certificates, answers that
// are none. doc/reliability.md names these tests.
#include <cstdlib>
#include <thread>
#include <unistd.h>

#include "lib/kube/url.h"
#include "test/unit/kube/fake_dns.h"
#include "test/unit/kube/rig.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

const std::string pods_path = resource_path(pods_resource);

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

struct TransportRig : Rig {
	Reply get(Client &c)
	{
		std::optional<Reply> got;
		c.get(pods_path, [&](Reply r) { got = std::move(r); });
		REQUIRE(until([&] { return got.has_value(); }));
		return std::move(*got);
	}
};

std::string at_name(const HttpsServer &server)
{
	return "https://api.example:" + std::to_string(server.port());
}

// A variable of the environment for the time of a test.
struct Variable {
	std::string name;
	Variable(const std::string &n, const std::string &value) : name(n)
	{
		::setenv(name.c_str(), value.c_str(), 1);
	}
	~Variable() { ::unsetenv(name.c_str()); }
};

} // namespace

// --- answers that are none -----------------------------------------------------------

TEST_CASE("transport: an answer of another type is not the API server's, whatever its status")
{
	TransportRig rig;
	HttpsServer server;
	Client c(rig.loop, access_to(server.url()));
	server.push({200, R"({"kind":"Pod"})", {{"Content-Type", "text/html; charset=utf-8"}}, nullptr, false});
	Reply r = rig.get(c);
	CHECK(r.status == 0); // nobody knows what became of the request
	CHECK(contains(r.error, "the answer is text/html; charset=utf-8 instead of application/json"));
	server.push({200, R"({"kind":"Pod"})", {{"Content-Type", "application/json; charset=utf-8"}}, nullptr, false});
	CHECK(rig.get(c).ok());

	// A watch must not take it for a plain end.
	server.push({200, "<html>\n", {{"Content-Type", "text/html"}}, nullptr, false});
	std::optional<Reply> ended;
	bool up = false;
	c.watch(pods_path, {}, Millis(0),
		{[&] { up = true; }, [&](std::string_view, bool) { return true; },
		 [&](Reply x) { ended = std::move(x); }});
	REQUIRE(rig.until([&] { return ended.has_value(); }));
	CHECK(ended->status == 0);
	CHECK_FALSE(up);
}

TEST_CASE("transport: endless headers are refused")
{
	TransportRig rig;
	HttpsServer server;
	Client c(rig.loop, access_to(server.url()));
	::Answer answer{200, "{}", {}, nullptr, false};
	for (int i = 0; i < 40; i++)
		answer.headers.emplace_back("X-" + std::to_string(i), std::string(600, 'x'));
	server.push(answer);
	CHECK(rig.get(c).ok());
	for (int i = 40; i < 120; i++)
		answer.headers.emplace_back("X-" + std::to_string(i), std::string(600, 'x'));
	server.push(answer);
	Reply r = rig.get(c);
	CHECK_FALSE(r.ok());
	CHECK(contains(r.error, "headers are larger"));
}

TEST_CASE("transport: a list that trickles is given up after ten minutes")
{
	TransportRig rig;
	HttpsServer server;
	Client c(rig.loop, access_to(server.url()));
	auto stream = server.push_stream();
	std::optional<Reply> got;
	int items = 0;
	c.list(pods_path, {}, [&](std::string_view) { items++; }, [&](Reply r) { got = std::move(r); });
	stream->send(R"({"items":[{"a":0})");
	for (int minute = 0; minute < 11 && !got; minute++) {
		REQUIRE(rig.until([&] { return items == minute + 1; }));
		rig.clock.advance(Millis(59'000));
		rig.settle();
		CHECK(got.has_value() == (minute == 10));
		stream->send(R"(,{"a":0})");
	}
	REQUIRE(got.has_value());
	CHECK(contains(got->error, "no complete answer within 600 s"));
}

TEST_CASE("transport: a list without end is refused")
{
	TransportRig rig;
	HttpsServer server;
	ClientOptions options;
	options.max_items = 3;
	Client c(rig.loop, access_to(server.url()), options);
	for (const char *items : {"{},{},{}", "{},{},{},{}"}) {
		server.push(200, std::string(R"({"items":[)") + items + "]}");
		std::optional<Reply> got;
		c.list(pods_path, {}, [](std::string_view) {}, [&](Reply r) { got = std::move(r); });
		REQUIRE(rig.until([&] { return got.has_value(); }));
		CHECK(got->ok() == (std::string(items) == "{},{},{}"));
	}
}

// --- connections ---------------------------------------------------------------------

namespace {

// Two connections that are idle, for longer than libcurl's whole seconds of real time.
void make_idle(TransportRig &rig, HttpsServer &server, Client &c)
{
	std::shared_ptr<Stream> slow[] = {server.push_stream(), server.push_stream()};
	int done = 0;
	for (int i = 0; i < 2; i++)
		c.get(pods_path, [&](Reply) { done++; });
	REQUIRE(rig.until([&] { return server.count() == 2; }));
	for (auto &s : slow) {
		s->send("{}");
		s->end();
	}
	REQUIRE(rig.until([&] { return done == 2; }));
	std::this_thread::sleep_for(std::chrono::milliseconds(1'100));
}

} // namespace

TEST_CASE("transport: after a request without an answer no connection is used that was idle")
{
	TransportRig rig;
	HttpsServer server;
	Client c(rig.loop, access_to(server.url()));
	make_idle(rig, server, c);
	bool done = false;
	server.push({0, "", {}, nullptr, true}); // as a peer that is gone
	c.get(pods_path, [&](Reply) { done = true; });
	REQUIRE(rig.until([&] { return server.count() == 3; }));
	rig.clock.advance(Millis(30'000));
	REQUIRE(rig.until([&] { return done; }));
	server.push(200, "{}");
	CHECK(rig.get(c).ok());
	auto seen = server.seen();
	CHECK((seen[2].connection == seen[0].connection || seen[2].connection == seen[1].connection));
	for (int i = 0; i < 3; i++)
		CHECK(seen[3].connection != seen[static_cast<std::size_t>(i)].connection);
}

TEST_CASE("transport: after a watch that broke off no connection is used that was idle")
{
	TransportRig rig;
	HttpsServer server;
	Client c(rig.loop, access_to(server.url()));
	make_idle(rig, server, c);
	auto stream = server.push_stream();
	bool up = false, ended = false;
	c.watch(pods_path, {}, Millis(600'000),
		{[&] { up = true; }, [](std::string_view, bool) { return true; }, [&](Reply) { ended = true; }});
	REQUIRE(rig.until([&] { return up; }));
	stream->cut();
	REQUIRE(rig.until([&] { return ended; }));
	server.push(200, "{}");
	CHECK(rig.get(c).ok());
	auto seen = server.seen();
	for (int i = 0; i < 3; i++)
		CHECK(seen[3].connection != seen[static_cast<std::size_t>(i)].connection);
}

TEST_CASE("transport: a request that waits too long for its turn says that it was not sent")
{
	TransportRig rig;
	HttpsServer server;
	Client c(rig.loop, access_to(server.url()));
	rig.loop.set_limits({.in_flight = 1, .per_second = 100});
	server.push({0, "", {}, nullptr, true});
	std::vector<Reply> replies;
	for (int i = 0; i < 2; i++)
		c.get(pods_path, [&](Reply r) { replies.push_back(std::move(r)); });
	REQUIRE(rig.until([&] { return server.count() == 1; }));
	rig.clock.advance(Millis(30'000));
	REQUIRE(rig.until([&] { return replies.size() == 2; }));
	CHECK(contains(replies[0].error + replies[1].error, "no complete answer within 30 s"));
	CHECK(contains(replies[0].error + replies[1].error, "not sent within 30 s"));
	for (const Reply &r : replies)
		CHECK(r.not_sent == contains(r.error, "not sent within 30 s"));
	CHECK(server.count() == 1);
}

TEST_CASE("transport: a Binding overtakes waiting events, and 429 holds back all but the urgent")
{
	TransportRig rig;
	HttpsServer server;
	Client c(rig.loop, access_to(server.url()));
	rig.loop.set_limits({.in_flight = 1, .per_second = 1000});
	auto first = server.push_stream();
	int done = 0;
	auto count = [&](Reply) { done++; };
	c.get("/api/v1/pods/first", count);
	REQUIRE(rig.until([&] { return server.count() == 1; }));
	c.create("/api/v1/events", Json::object(), count, Priority::low);
	c.get("/api/v1/pods/second", count);
	c.create("/api/v1/namespaces/a/pods/p/binding", Json::object(), count, Priority::urgent);
	server.push({429, "{}", {{"Retry-After", "3"}}, nullptr, false}); // to the Binding
	first->send("{}");
	first->end();
	REQUIRE(rig.until([&] { return done == 2; }));
	rig.settle();
	CHECK(server.count() == 2);
	CHECK(server.seen()[1].target == "/api/v1/namespaces/a/pods/p/binding");
	server.push(200, "{}");
	c.delete_("/api/v1/namespaces/a/pods/p", Json(), count);
	REQUIRE(rig.until([&] { return done == 3; }));
	CHECK(server.seen()[2].method == "DELETE");
	rig.clock.advance(Millis(2'999));
	rig.settle();
	CHECK(server.count() == 3);
	server.push(200, "{}");
	server.push(200, "{}");
	rig.clock.advance(Millis(1));
	REQUIRE(rig.until([&] { return done == 5; }));
	CHECK(server.seen()[3].target == "/api/v1/pods/second");
	CHECK(server.seen()[4].target == "/api/v1/events");
}

TEST_CASE("transport: an eviction that a PodDisruptionBudget refuses holds back nobody")
{
	TransportRig rig;
	HttpsServer server;
	Client c(rig.loop, access_to(server.url()));
	int refused = 0, read = 0;
	server.push({429,
		     R"({"kind":"Status","code":429,"message":"Cannot evict pod","details":{"causes":[{"reason":"DisruptionBudget"}]}})",
		     {},
		     nullptr,
		     false});
	c.create("/api/v1/namespaces/a/pods/p/eviction", Json::object(), [&](Reply r) { refused = r.status; });
	REQUIRE(rig.until([&] { return refused == 429; }));
	server.push(200, "{}");
	c.get("/api/v1/pods/another", [&](Reply r) { read = r.status; });
	REQUIRE(rig.until([&] { return read == 200; }));
}

// --- names ---------------------------------------------------------------------------

TEST_CASE("transport: a name that leads elsewhere is followed as soon as the old place is gone")
{
	TransportRig rig;
	FakeDns dns;
	auto old = std::make_unique<HttpsServer>(Pki::get().elsewhere);
	HttpsServer fresh(Pki::get().elsewhere, old->port(), "127.0.0.2");
	dns.set("api.example", {"127.0.0.1"});
	Client c(rig.loop, access_to(at_name(*old)));
	old->push(200, "{}");
	CHECK(rig.get(c).ok());

	dns.set("api.example", {"127.0.0.2"});
	old->push(200, "{}");
	CHECK(rig.get(c).ok()); // the connection still works
	old.reset();
	fresh.push(200, "{}");
	int tries = 1;
	while (!rig.get(c).ok())
		REQUIRE(++tries <= 2); // libcurl's cache costs one
	CHECK(fresh.count() == 1);
}

TEST_CASE("transport: a resolver that hangs holds up nothing else")
{
	TransportRig rig;
	FakeDns dns;
	HttpsServer server;
	dns.hang("api.example");
	Client lost(rig.loop, access_to(at_name(server))), well(rig.loop, access_to(server.url()));
	std::optional<Reply> got;
	lost.get(pods_path, [&](Reply r) { got = std::move(r); });
	REQUIRE(rig.until([&] { return FakeDns::asked("api.example") == 1; }));
	server.push(200, "{}");
	CHECK(rig.get(well).ok());
	rig.clock.advance(Millis(30'000));
	auto begin = std::chrono::steady_clock::now();
	REQUIRE(rig.until([&] { return got.has_value(); }));
	CHECK(got->status == 0);
	server.push(200, "{}");
	CHECK(rig.get(well).ok());
	CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("transport: IPv6 is spoken, by address and by name, and IPv4 if that is what answers")
{
	TransportRig rig;
	HttpsServer six(Pki::get().server, 0, "::1");
	CHECK(contains(six.url(), "https://[::1]:"));
	six.push(200, "{}");
	Client c(rig.loop, access_to(six.url()));
	Reply r = rig.get(c);
	CHECK(r.error == "");
	CHECK(six.seen()[0].host == "[::1]:" + std::to_string(six.port()));

	FakeDns dns;
	HttpsServer four(Pki::get().elsewhere); // nobody listens there on IPv6
	dns.set("api.example", {"::1", "127.0.0.1"});
	four.push(200, "{}");
	Client both(rig.loop, access_to(at_name(four)));
	CHECK(rig.get(both).error == "");
}

// --- proxies -------------------------------------------------------------------------

TEST_CASE("transport: the environment's proxy is never used, the kubeconfig's is, and it sees no credentials")
{
	TransportRig rig;
	HttpsServer server;
	TunnelProxy proxy;
	const std::string url = "http://127.0.0.1:" + std::to_string(proxy.port());
	Variable v1("HTTPS_PROXY", url), v2("https_proxy", url), v3("ALL_PROXY", url), v4("all_proxy", url);
	server.push(200, "{}");
	ClusterAccess access = access_to(server.url());
	Client direct(rig.loop, access);
	CHECK(rig.get(direct).ok());
	CHECK(proxy.heard().empty());

	Variable v5("NO_PROXY", "*"), v6("no_proxy", "*");
	access.proxy_url = url;
	Client through(rig.loop, access);
	server.push(200, "{}");
	Reply r = rig.get(through);
	CHECK(r.error == "");
	CHECK(contains(proxy.heard(), "CONNECT 127.0.0.1:" + std::to_string(server.port())));
	CHECK_FALSE(contains(proxy.heard(), "secret-1"));
	CHECK_FALSE(contains(proxy.heard(), "/api/v1/pods"));
	CHECK(server.seen()[1].authorization == "Bearer secret-1");
}

TEST_CASE("transport: a proxy's 404 is not the API server's")
{
	TransportRig rig;
	TunnelProxy proxy;
	ClusterAccess access = access_to("https://127.0.0.1:" + std::to_string(free_port()));
	access.proxy_url = "http://127.0.0.1:" + std::to_string(proxy.port());
	Client c(rig.loop, access);
	Reply r = rig.get(c);
	CHECK(r.status == 0); // or a pod would count as gone
	CHECK(contains(r.error, "404"));
	CHECK(contains(proxy.heard(), "CONNECT "));
}

// --- certificates and credentials ----------------------------------------------------

TEST_CASE("transport: a server whose certificate has expired gets no credentials, and is used again once renewed")
{
	TransportRig rig;
	auto server = std::make_unique<HttpsServer>(Pki::get().expired);
	int port = server->port();
	Client c(rig.loop, access_to(server->url()));
	Reply r = rig.get(c);
	CHECK(r.status == 0);
	CHECK(contains(r.error, "expired"));
	CHECK(server->count() == 0);
	server.reset();
	server = std::make_unique<HttpsServer>(Pki::get().server, port);
	server->push(200, "{}");
	CHECK(rig.get(c).ok());
}

TEST_CASE("transport: 401 brings a renewed client certificate from its file, on a new connection")
{
	TransportRig rig;
	HttpsServer server;
	TempFolder folder;
	ClusterAccess access = access_to(server.url());
	const Pki &pki = Pki::get();
	access.client_certificate = {"", folder.write("crt", pki.client.certificate), Trust::owned};
	access.client_key = {"", folder.write("key", pki.client.key), Trust::secret};
	access.owner = ::geteuid();
	Client c(rig.loop, access);
	server.push(200, "{}");
	CHECK(rig.get(c).ok());
	folder.write("crt", pki.server.certificate);
	folder.write("key", pki.server.key);
	rig.clock.advance(Millis(2'000));
	server.push(401, "{}"); // what an API server says to an expired certificate
	server.push(200, "{}");
	CHECK(rig.get(c).ok());
	auto seen = server.seen();
	REQUIRE(seen.size() == 3);
	CHECK(seen[1].connection == seen[0].connection);
	CHECK(seen[2].connection != seen[1].connection);
}

TEST_CASE("transport: a server that is not believed brings a renewed certificate authority from its file")
{
	TransportRig rig;
	HttpsServer server;
	TempFolder folder;
	ClusterAccess access = access_to(server.url());
	access.ca = {"", folder.write("ca", Pki::get().other_ca), Trust::owned};
	access.owner = ::geteuid();
	Client c(rig.loop, access);
	CHECK(rig.get(c).status == 0);
	folder.write("ca", Pki::get().ca);
	rig.clock.advance(Millis(1'000));
	CHECK(rig.get(c).status == 0); // which looks at the file
	server.push(200, "{}");
	CHECK(rig.get(c).ok());
	CHECK(server.count() == 1);
}

TEST_CASE("transport: a rewritten kubeconfig counts within a minute, after a 401 at once")
{
	TransportRig rig;
	HttpsServer server, moved;
	TempFolder folder;
	folder.write("ca", Pki::get().ca);
	auto write = [&](const std::string &url, const std::string &token) {
		return folder.write("config", "current-context: x\n"
					      "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
					      "clusters: [{name: x, cluster: {server: '" + url +
						      "', certificate-authority: ca}}]\n"
					      "users: [{name: x, user: {token: " + token + "}}]\n");
	};
	auto access = load_kubeconfig(write(server.url(), "first"), "", ::geteuid());
	INFO((access.ok() ? "" : access.error().message));
	REQUIRE(access.ok());
	Client c(rig.loop, *access);
	server.push(200, "{}");
	CHECK(rig.get(c).ok());

	write(server.url(), "second");
	rig.clock.advance(Millis(2'000));
	server.push(401, "{}");
	server.push(200, "{}");
	CHECK(rig.get(c).ok());
	CHECK(server.seen()[1].authorization == "Bearer first");
	CHECK(server.seen()[2].authorization == "Bearer second");

	write(moved.url(), "third");
	rig.clock.advance(Millis(60'000));
	moved.push(200, "{}");
	CHECK(rig.get(c).ok());
	REQUIRE(moved.count() == 1);
	CHECK(moved.seen()[0].authorization == "Bearer third");

	folder.write("config", "half a fi");
	rig.clock.advance(Millis(60'000));
	moved.push(200, "{}");
	CHECK(rig.get(c).ok()); // what was read before stays
}
