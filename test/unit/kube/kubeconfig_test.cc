// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <cstdlib>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/kube/kubeconfig.h"
#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::kube;

namespace {

// A kubeconfig with these members of the cluster and the user.
std::string config(const std::string &cluster, const std::string &user)
{
	return "apiVersion: v1\nkind: Config\ncurrent-context: one\n"
	       "contexts:\n- name: one\n  context: {cluster: c, user: u, namespace: ml}\n"
	       "- name: two\n  context: {cluster: c2, user: u}\n"
	       "- name: lost\n  context: {cluster: nowhere, user: u}\n"
	       "clusters:\n- name: c\n  cluster: {" + cluster + "}\n"
	       "- name: c2\n  cluster: {server: 'https://two:6443/'}\n"
	       "users:\n- name: u\n  user: {" + user + "}\n";
}

const std::string server = "server: 'https://api.example:6443'";

Result<ClusterAccess> load(const std::string &text, const std::string &context = "", int mode = 0600)
{
	TempFolder folder;
	auto out = load_kubeconfig(folder.write("kc", text, mode), context, ::geteuid());
	return out;
}

std::string error_of(const std::string &cluster, const std::string &user, const std::string &context = "")
{
	auto out = load(config(cluster, user), context);
	return out.ok() ? "" : out.error().message;
}

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("kubeconfig: inline data is decoded, files are relative to the kubeconfig's folder")
{
	TempFolder folder;
	std::string path = folder.write(
		"kc", config(server + ", certificate-authority-data: " + base64_encode("CA") +
				     ", tls-server-name: other.example, proxy-url: 'http://proxy:3128'",
			     "client-certificate: pki/me.crt, client-key: /abs/me.key, tokenFile: tok, "
			     "token: ignored"));
	auto a = load_kubeconfig(path, "", ::geteuid());
	REQUIRE(a.ok());
	CHECK(a->server == "https://api.example:6443");
	CHECK(a->ca.data == "CA");
	CHECK(a->tls_server_name == "other.example");
	CHECK(a->proxy_url == "http://proxy:3128");
	CHECK(a->ns == "ml");
	CHECK(a->client_certificate.file == folder.path + "/pki/me.crt");
	CHECK(a->client_key.file == "/abs/me.key");
	CHECK(a->client_key.trust == Trust::secret);
	CHECK(a->token.file == folder.path + "/tok"); // the file is the one kept fresh
	CHECK(a->token.data == "");
	CHECK(contains(a->source, "context one"));
}

TEST_CASE("kubeconfig: another context can be named, and JSON is read too")
{
	auto a = load(config(server, "token: t"), "two");
	REQUIRE(a.ok());
	CHECK(a->server == "https://two:6443");
	CHECK(a->token.data == "t");
	auto j = load(R"({"current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":"https://h"}}],
		"users":[{"name":"u","user":{"token":"t"}}]})");
	REQUIRE(j.ok());
	CHECK(j->server == "https://h");
}

TEST_CASE("kubeconfig: what would be insecure or cannot work is refused with what to do instead")
{
	struct Row {
		std::string cluster, user;
		const char *says;
	};
	const std::string data = base64_encode("x");
	const Row rows[] = {
		{server + ", insecure-skip-tls-verify: true", "token: t", "certificate-authority"},
		{"server: 'http://h:8080'", "token: t", "only https://"},
		{"server: 'https://'", "token: t", "https://host:port"},
		{"server: 'https://u:p@h'", "token: t", "https://host:port"},
		{"server: 'https://h h'", "token: t", "https://host:port"},
		{"namespace: x", "token: t", "has no server"},
		{server, "exec: {command: aws}", "tokenFile"},
		{server, "auth-provider: {name: gcp}", "tokenFile"},
		{server, "username: a, password: b", "certificate or a token"},
		{server, "as: root, token: t", "impersonation"},
		{server, "{}", "no credentials"},
		{server, "client-certificate-data: " + data, "together"},
		{server, "client-key-data: " + data, "together"},
		{server, "client-certificate-data: '!', client-key-data: " + data, "base64"},
		{server + ", proxy-url: 'ftp://x'", "token: t", "proxy-url"},
		{server + ", tls-server-name: 'a/b'", "token: t", "tls-server-name"},
	};
	for (const Row &row : rows) {
		std::string user = row.user == "{}" ? "" : row.user;
		std::string error = error_of(row.cluster, user);
		INFO(row.cluster << " | " << row.user << " -> " << error);
		CHECK(contains(error, row.says));
	}
	CHECK(error_of(server + ", insecure-skip-tls-verify: false", "token: t") == "");
}

TEST_CASE("kubeconfig: names that lead nowhere are named, with those that exist")
{
	CHECK(contains(error_of(server, "token: t", "three"), "it has one, two, lost"));
	CHECK(contains(error_of(server, "token: t", "lost"), "cluster nowhere"));
	CHECK(contains(load("kind: Config\n").error().message, "no current-context"));
	CHECK(contains(load("- a\n").error().message, "no kubeconfig"));
	CHECK_FALSE(load("{").ok());
	CHECK_FALSE(load("").ok());
}

TEST_CASE("kubeconfig: a file that others can read is refused")
{
	auto a = load(config(server, "token: t"), "", 0644);
	REQUIRE_FALSE(a.ok());
	CHECK_FALSE(contains(a.error().message, "token: t"));
	CHECK_FALSE(load_kubeconfig("/nowhere/at/all", "", 0).ok());
}

TEST_CASE("in a pod the service account is used")
{
	TempFolder folder;
	folder.write("token", "tok\n");
	folder.write("ca.crt", "CA");
	folder.write("namespace", "here\n");
	::unsetenv("KUBERNETES_SERVICE_HOST");
	CHECK_FALSE(in_cluster_access(folder.path).ok());
	::setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	::setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
	auto a = in_cluster_access(folder.path);
	REQUIRE(a.ok());
	CHECK(a->server == "https://[fd00::1]:6443");
	CHECK(a->token.file == folder.path + "/token");
	CHECK(a->ca.file == folder.path + "/ca.crt");
	CHECK(a->ns == "here");
	::setenv("KUBERNETES_SERVICE_PORT", "x", 1);
	CHECK_FALSE(in_cluster_access(folder.path).ok());
	::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	CHECK_FALSE(in_cluster_access("/nowhere").ok());
	::unsetenv("KUBERNETES_SERVICE_HOST");
	::unsetenv("KUBERNETES_SERVICE_PORT");
}
