// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <stdexcept>
#include <unistd.h>

#include "lib/kube/url.h"
#include "test/unit/kube/rig.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

struct ClientRig : Rig {
	HttpsServer server;
	ClusterAccess access = access_to(server.url());

	// Runs one call to its end.
	template <class F>
	Reply reply(F &&start)
	{
		std::optional<Reply> got;
		start([&](Reply r) {
			REQUIRE_FALSE(got.has_value());
			got = std::move(r);
		});
		REQUIRE(until([&] { return got.has_value(); }));
		settle();
		return std::move(*got);
	}
};

const std::string pod_path = resource_path(pods_resource, "ml", "web-1");

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("client: each call has its method, path, type and body")
{
	ClientRig rig;
	Client c(rig.loop, rig.access);
	for (int i = 0; i < 7; i++)
		rig.server.push(200, R"({"kind":"Pod"})");
	Json body = Json::object();
	body.set("a", "b");
	CHECK(rig.reply([&](auto d) { c.get(pod_path, d); }).body["kind"].str() == "Pod");
	CHECK(rig.reply([&](auto d) { c.create(pod_path + "/binding", body, d); }).ok());
	CHECK(rig.reply([&](auto d) { c.replace(pod_path, body, d); }).ok());
	CHECK(rig.reply([&](auto d) { c.patch(pod_path, PatchType::merge, body, d); }).ok());
	CHECK(rig.reply([&](auto d) { c.patch(pod_path, PatchType::strategic, body, d); }).ok());
	CHECK(rig.reply([&](auto d) { c.delete_(pod_path, body, d); }).ok());
	CHECK(rig.reply([&](auto d) { c.delete_(pod_path, Json(), d); }).ok());
	const char *methods[] = {"GET", "POST", "PUT", "PATCH", "PATCH", "DELETE", "DELETE"};
	const char *types[] = {"", "application/json", "application/json", "application/merge-patch+json",
			       "application/strategic-merge-patch+json", "application/json", ""};
	auto seen = rig.server.seen();
	REQUIRE(seen.size() == 7);
	for (std::size_t i = 0; i < 7; i++) {
		CHECK(seen[i].method == methods[i]);
		CHECK(seen[i].content_type == types[i]);
		CHECK(seen[i].body == (*types[i] ? R"({"a":"b"})" : ""));
		CHECK(seen[i].authorization == "Bearer secret-1");
	}
	CHECK(seen[1].target == "/api/v1/namespaces/ml/pods/web-1/binding");
}

TEST_CASE("client: a refusal says verb, resource, object and the server's reason")
{
	ClientRig rig;
	Client c(rig.loop, rig.access);
	rig.server.push(403, R"({"kind":"Status","message":"pods \"web-1\" is forbidden"})");
	Reply r = rig.reply([&](auto d) { c.create(pod_path + "/binding", Json::object(), d); });
	CHECK(r.status == 403);
	CHECK_FALSE(r.ok());
	CHECK(contains(r.error, "cannot create pods/binding ml/web-1"));
	CHECK(contains(r.error, "is forbidden"));
	CHECK(contains(r.error, "give the user of the test the verb create on pods/binding"));
	CHECK(r.body["kind"].str() == "Status");

	rig.server.push({429, "not json", {{"Retry-After", "3"}}, nullptr, false});
	r = rig.reply([&](auto d) { c.get(resource_path(nodes_resource, "", "n1"), d); });
	CHECK(r.status == 429);
	CHECK(r.retry_after == Millis(3000));
	CHECK(contains(r.error, "cannot get nodes n1"));

	rig.clock.advance(Millis(3000)); // for so long nothing that can wait is sent
	rig.server.push(409, "{\"message\":\"forged\\nline\"}");
	r = rig.reply([&](auto d) { c.get(resource_path({"a.b", "v1", "cs"}, "", ""), d); });
	CHECK(contains(r.error, "cannot get cs at"));
	CHECK_FALSE(contains(r.error, "\n"));
}

TEST_CASE("client: what is not JSON, or breaks off, is no success")
{
	ClientRig rig;
	Client c(rig.loop, rig.access);
	rig.server.push(200, "<html>");
	Reply r = rig.reply([&](auto d) { c.get(pod_path, d); });
	CHECK(contains(r.error, "not JSON"));
	CHECK_FALSE(r.ok());
	auto stream = rig.server.push_stream();
	stream->send("{");
	stream->cut();
	r = rig.reply([&](auto d) { c.create(pod_path, Json::object(), d); });
	CHECK(r.status == 0); // nobody knows what the server did
	CHECK(r.error != "");
}

TEST_CASE("client: 401 brings the new token from the file, and one more try")
{
	ClientRig rig;
	TempFolder folder;
	rig.access.token = {"", folder.write("token", "old"), Trust::secret};
	rig.access.owner = ::geteuid();
	Client c(rig.loop, rig.access);
	rig.server.push(200, "{}");
	CHECK(rig.reply([&](auto d) { c.get(pod_path, d); }).ok());
	folder.write("token", "new");
	rig.clock.advance(Millis(2000)); // long before the cache ends
	rig.server.push(401, R"({"message":"Unauthorized"})");
	rig.server.push(200, "{}");
	CHECK(rig.reply([&](auto d) { c.get(pod_path, d); }).ok());
	auto seen = rig.server.seen();
	REQUIRE(seen.size() == 3);
	CHECK(seen[1].authorization == "Bearer old");
	CHECK(seen[2].authorization == "Bearer new");

	// the same token again: no second try
	rig.clock.advance(Millis(2000));
	rig.server.push(401, "{}");
	Reply r = rig.reply([&](auto d) { c.get(pod_path, d); });
	CHECK(r.status == 401);
	CHECK(contains(r.error, "check the credentials in the test"));
	CHECK_FALSE(contains(r.error, "new"));
	CHECK(rig.server.count() == 4);
}

TEST_CASE("client: another certificate authority means other connections")
{
	ClientRig rig;
	TempFolder folder;
	rig.access.ca = {"", folder.write("ca", Pki::get().ca), Trust::owned};
	rig.access.owner = ::geteuid();
	Client c(rig.loop, rig.access);
	for (int i = 0; i < 3; i++)
		rig.server.push(200, "{}");
	rig.reply([&](auto d) { c.get(pod_path, d); });
	rig.reply([&](auto d) { c.get(pod_path, d); });
	folder.write("ca", Pki::get().ca + Pki::get().other_ca);
	rig.clock.advance(Millis(60'000));
	CHECK(rig.reply([&](auto d) { c.get(pod_path, d); }).ok());
	auto seen = rig.server.seen();
	REQUIRE(seen.size() == 3);
	CHECK(seen[0].connection == seen[1].connection);
	CHECK(seen[1].connection != seen[2].connection);
	// and one that does not know the server any more is believed
	folder.write("ca", Pki::get().other_ca);
	rig.clock.advance(Millis(60'000));
	CHECK(rig.reply([&](auto d) { c.get(pod_path, d); }).status == 0);
	CHECK(rig.server.count() == 3);
}

TEST_CASE("client: a watch has a connection of its own, and ends when the credentials change")
{
	ClientRig rig;
	TempFolder folder;
	rig.access.ca = {"", folder.write("ca", Pki::get().ca), Trust::owned};
	rig.access.owner = ::geteuid();
	Client c(rig.loop, rig.access);
	rig.server.push(200, "{}");
	rig.reply([&](auto d) { c.get(pod_path, d); });
	auto stream = rig.server.push_stream();
	stream->send("one\n");
	int lines = 0;
	bool ended = false;
	c.watch("/api/v1/pods", {}, Millis(600'000),
		{{}, [&](std::string_view, bool) { return ++lines > 0; }, [&](Reply) { ended = true; }});
	REQUIRE(rig.until([&] { return lines == 1; }));
	rig.server.push(200, "{}");
	rig.reply([&](auto d) { c.get(pod_path, d); });
	CHECK_FALSE(ended);
	auto seen = rig.server.seen();
	REQUIRE(seen.size() == 3);
	CHECK(seen[1].connection != seen[0].connection);
	CHECK(seen[2].connection == seen[0].connection);

	folder.write("ca", Pki::get().ca + Pki::get().other_ca);
	rig.clock.advance(Millis(60'000));
	rig.server.push(200, "{}");
	rig.reply([&](auto d) { c.get(pod_path, d); });
	REQUIRE(rig.until([&] { return ended; }));
}

TEST_CASE("client: a client certificate is used, an unusable one is an error")
{
	ClientRig rig;
	rig.access.client_certificate.data = Pki::get().client.certificate;
	rig.access.client_key.data = Pki::get().client.key;
	{
		Client c(rig.loop, rig.access);
		rig.server.push(200, "{}");
		CHECK(rig.reply([&](auto d) { c.get(pod_path, d); }).ok());
	}
	rig.access.client_key.data = Pki::get().server.key; // of another certificate
	Client c(rig.loop, rig.access);
	CHECK(rig.reply([&](auto d) { c.get(pod_path, d); }).status == 0);
	CHECK(rig.server.count() == 1);
}

TEST_CASE("client: without readable credentials a call fails, later, with the reason")
{
	ClientRig rig;
	rig.access.token = {"", "/nowhere/token", Trust::secret};
	Client c(rig.loop, rig.access);
	bool inside = true, done = false;
	std::string error;
	c.get(pod_path, [&](Reply r) {
		CHECK_FALSE(inside);
		done = true;
		error = r.error;
	});
	inside = false;
	REQUIRE(rig.until([&] { return done; }));
	CHECK(contains(error, "/nowhere/token"));
	// and can be cancelled
	done = false;
	c.cancel(c.get(pod_path, [&](Reply) { done = true; }));
	rig.settle();
	CHECK_FALSE(done);
}

TEST_CASE("client: a list comes item by item, and is believed only when it is complete")
{
	ClientRig rig;
	Client c(rig.loop, rig.access);
	std::vector<std::string> items;
	auto add = [&](std::string_view item) { items.emplace_back(item); };
	Query query{{"labelSelector", "a=b,c"}};
	rig.server.push(200, R"({"metadata":{"resourceVersion":"5"},"items":[{"a":1},{"b":2}]})");
	Reply r = rig.reply([&](auto d) { c.list("/api/v1/pods", query, add, d); });
	CHECK(r.ok());
	CHECK(items == std::vector<std::string>{R"({"a":1})", R"({"b":2})"});
	CHECK(r.body["metadata"]["resourceVersion"].str() == "5");
	CHECK(rig.server.seen()[0].target == "/api/v1/pods?labelSelector=a%3Db%2Cc");

	for (const char *broken : {R"({"items":[{"a":1})", "<html>", "", R"({"items":[1]})"}) {
		INFO(broken);
		rig.server.push(200, broken);
		r = rig.reply([&](auto d) { c.list("/api/v1/pods", {}, add, d); });
		CHECK_FALSE(r.ok());
		CHECK(contains(r.error, "cannot list pods"));
	}
	auto stream = rig.server.push_stream();
	stream->send(R"({"items":[{"a":1})");
	stream->cut();
	CHECK_FALSE(rig.reply([&](auto d) { c.list("/api/v1/pods", {}, add, d); }).ok());
	rig.server.push(410, R"({"kind":"Status","message":"too old"})");
	CHECK(rig.reply([&](auto d) { c.list("/api/v1/pods", {}, add, d); }).status == 410);
	rig.server.push(200, R"({"items":[{"a":1}]})");
	CHECK_FALSE(rig.reply([&](auto d) {
			       c.list(
				       "/api/v1/pods", {},
				       [](std::string_view) { throw std::runtime_error("bug"); }, d);
		       }).ok());
}

TEST_CASE("client: a list that stalls is given up")
{
	ClientRig rig;
	Client c(rig.loop, rig.access);
	auto stream = rig.server.push_stream();
	stream->send(R"({"items":[{"a":1},)");
	int items = 0;
	std::optional<Reply> got;
	c.list("/api/v1/pods", {}, [&](std::string_view) { items++; }, [&](Reply r) { got = std::move(r); });
	REQUIRE(rig.until([&] { return items == 1; }));
	rig.clock.advance(Millis(60'000));
	REQUIRE(rig.until([&] { return got.has_value(); }));
	CHECK(got->status == 0);
	CHECK(contains(got->error, "nothing came for 60 s"));
}

TEST_CASE("client: a watch says when it is up, gives lines, and ends plainly however it ends")
{
	ClientRig rig;
	Client c(rig.loop, rig.access, [] {
		ClientOptions o;
		o.max_item = 8;
		return o;
	}());
	for (int how = 0; how < 4; how++) {
		INFO(how);
		auto stream = rig.server.push_stream();
		int up = 0;
		std::vector<std::pair<std::string, bool>> lines;
		std::optional<Reply> got;
		c.watch("/api/v1/pods", {{"watch", "true"}}, Millis(330'000),
			{[&] { up++; },
			 [&](std::string_view line, bool cut) {
				 lines.emplace_back(line, cut);
				 return line != "stop";
			 },
			 [&](Reply r) { got = std::move(r); }});
		stream->send("one\n12345678901\nta");
		REQUIRE(rig.until([&] { return lines.size() == 2; }));
		CHECK(up == 1);
		CHECK(lines[1] == std::pair<std::string, bool>{"12345678", true});
		if (how == 0)
			stream->end();
		if (how == 1)
			stream->cut();
		if (how == 2)
			rig.clock.advance(Millis(330'000));
		if (how == 3)
			stream->send("il\nstop\nmore\n");
		REQUIRE(rig.until([&] { return got.has_value(); }));
		CHECK(got->ok());
		CHECK(lines.size() == (how == 3 ? 4 : 2));
	}
	rig.server.push(403, "{}");
	int up = 0;
	std::optional<Reply> got;
	c.watch("/api/v1/pods", {}, Millis(1000),
		{[&] { up++; }, [](std::string_view, bool) { return true; },
		 [&](Reply r) { got = std::move(r); }});
	REQUIRE(rig.until([&] { return got.has_value(); }));
	CHECK(up == 0);
	CHECK(contains(got->error, "cannot watch pods"));
}

TEST_CASE("client: a client that ends calls nobody back")
{
	ClientRig rig;
	int calls = 0;
	auto stream = rig.server.push_stream();
	{
		Client c(rig.loop, rig.access);
		c.get(pod_path, [&](Reply) { calls++; });
		REQUIRE(rig.until([&] { return rig.server.count() == 1; }));
	}
	stream->send("{}");
	stream->end();
	rig.settle();
	CHECK(rig.loop.in_flight() == 0);
	CHECK(calls == 0);
}
