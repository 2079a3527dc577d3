// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Whatever goes wrong with credentials: no log line at any level and no error has a
// piece of them. What is put in as a secret here has a word that is looked for.
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/kube/credentials.h"
#include "test/unit/kube/rig.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

const std::string canary = "canary7hJ2";
const std::string token = "eyJhbGciOi." + canary + "-and-more";

std::vector<std::string> told; // log lines and errors

struct Listen {
	Listen()
	{
		told.clear();
		set_log_sink([](LogLevel, const char *line) { told.emplace_back(line); }, LogLevel::debug);
	}
	~Listen() { set_log_sink(nullptr, LogLevel::info); }
};

std::string everything()
{
	return join(told, "\n");
}

void check_nothing_told()
{
	const std::string text = everything();
	CAPTURE(text);
	CHECK_FALSE(text.empty()); // something was said
	CHECK(text.find(canary) == text.npos);
	CHECK(text.find(base64_encode(canary).substr(0, 12)) == text.npos);
	CHECK(is_printable(join(told, "")));
}

std::string config(const std::string &cluster, const std::string &user)
{
	return "current-context: one\n"
	       "contexts:\n- name: one\n  context: {cluster: c, user: u}\n"
	       "clusters:\n- name: c\n  cluster: {" + cluster + "}\n"
	       "users:\n- name: u\n  user: {" + user + "}\n";
}

Client::Done keep(std::optional<Reply> &reply)
{
	return [&reply](Reply r) { reply = std::move(r); };
}

// One GET with this access; its error is told.
void fetch(Rig &rig, const ClusterAccess &access)
{
	set_log_sink([](LogLevel, const char *line) { told.emplace_back(line); }, LogLevel::debug);
	ClientOptions options;
	options.timeout = Millis(5'000);
	Client client(rig.loop, access, options);
	std::optional<Reply> reply;
	client.get("/api/v1/namespaces/ns/pods/p", keep(reply));
	REQUIRE(rig.until([&] { return reply.has_value(); }));
	CHECK_FALSE(reply->ok());
	told.push_back(reply->error);
}

} // namespace

TEST_CASE("secrets: a kubeconfig that is wrong is refused without its contents")
{
	const std::string https = "server: 'https://api.example:6443'";
	const std::string encoded = base64_encode("-----BEGIN " + canary), not_pem = base64_encode(canary + canary);
	const std::pair<std::string, std::string> rows[] = {
		{https, "username: admin, password: " + canary},
		{https, "token: '" + token + "', password: '" + canary + "'"},
		{https, "token: '" + token + "', exec: {command: c, env: [{name: A, value: " + canary + "}]}"},
		{https, "token: '" + token + "', auth-provider: {config: {id-token: " + canary + "}}"},
		{https, "token: \"" + token + "\\u0007\""},
		{https, "token: \"" + token + "\\n" + canary + "\""},
		{https, "token: '" + token + "', token: '" + token + "'"},
		{https, "token: '" + token + "', x: ["},
		{https, "token: '" + token + "\n\tx: \""},
		{https, "token: !secret " + token},
		{https, "token: *" + canary},
		{https, "client-key-data: " + encoded + ", client-certificate-data: '" + canary + " !'"},
		{https, "client-key-data: '" + canary + " !', client-certificate-data: " + encoded},
		{https, "client-key-data: " + encoded},
		{https, "client-key-data: " + not_pem + ", client-certificate-data: " + encoded},
		{"server: 'https://admin:" + canary + "@h:6443'", "token: '" + token + "'"},
		{"server: 'http://admin:" + canary + "@h:6443'", "token: '" + token + "'"},
		{"server: 'http://admin:p@" + canary + "@h:6443'", "token: '" + token + "'"},
		{"server: '10.0.0.1:6443\n  password: " + canary + "'", "token: '" + token + "'"},
		{https + ", proxy-url: 'ftp://me:" + canary + "@proxy'", "token: '" + token + "'"},
		{https + ", certificate-authority-data: '" + canary + " !'", "token: '" + token + "'"},
	};
	for (const auto &[cluster, user] : rows) {
		Listen listen;
		TempFolder folder;
		CAPTURE(cluster, user);
		const auto access = load_kubeconfig(folder.write("kc", config(cluster, user)), "", ::geteuid());
		if (!access) {
			told.push_back(access.error().message);
		} else {
			VirtualClock clock;
			Credentials credentials(*access, clock, Millis(1000));
			const auto got = credentials.get();
			REQUIRE_FALSE(got.ok());
			told.push_back(got.error().message);
		}
		check_nothing_told();
	}
}

TEST_CASE("secrets: files of credentials that are wrong are refused without their contents")
{
	for (const std::string &content : {token + "\x01", token + "\n" + token, "-----BEGIN " + canary, canary}) {
		Listen listen;
		TempFolder folder;
		VirtualClock clock;
		ClusterAccess access = access_to("https://127.0.0.1:1");
		access.token = {"", folder.write("token", content), Trust::secret};
		access.client_key = {"", folder.write("key", content), Trust::secret};
		access.client_certificate = access.client_key;
		Credentials credentials(access, clock, Millis(1000));
		const auto got = credentials.get();
		told.push_back(got ? "taken" : got.error().message);
		check_nothing_told();
	}
}

TEST_CASE("secrets: a server that sends the token back does not bring it into a log")
{
	Listen listen;
	Rig rig;
	HttpsServer server;
	ClusterAccess access = access_to(server.url());
	access.token.data = token;
	const std::string quoted = "\"Authorization: Bearer " + token + "\"";
	const std::string bodies[] = {
		R"({"kind":"Status","message":"no such token: )" + token + R"("})",
		R"({"kind":"Status","message":")" + std::string(500, 'x') + token + R"("})", // cut at its middle
		R"({"kind":"Status","message":")" + token + token + R"("})",
		R"({"message":)" + quoted + "}",
		"<html>" + quoted + "</html>",
		quoted,
	};
	for (const int status : {401, 403, 409, 500, 302}) {
		for (const std::string &body : bodies) {
			server.push(status, body);
			fetch(rig, access);
		}
	}
	CHECK(server.seen().front().authorization == "Bearer " + token);
	check_nothing_told();
	CHECK(everything().find("no such token: [secret]") != std::string::npos);
}

TEST_CASE("secrets: keys that TLS refuses and proxies that are not there are told without their secrets")
{
	Listen listen;
	Rig rig;
	HttpsServer server;
	ClusterAccess key = access_to(server.url());
	key.client_certificate.data = Pki::get().client.certificate;
	key.client_key.data = "-----BEGIN PRIVATE KEY-----\n" + canary + "\n-----END PRIVATE KEY-----\n";
	fetch(rig, key);
	key.client_certificate.data = "-----BEGIN CERTIFICATE-----\n" + canary + "\n-----END CERTIFICATE-----\n";
	fetch(rig, key);
	ClusterAccess proxy = access_to(server.url());
	proxy.token.data = token;
	proxy.proxy_url = "http://me:" + canary + "@127.0.0.1:" + std::to_string(free_port());
	fetch(rig, proxy);
	check_nothing_told();
}
