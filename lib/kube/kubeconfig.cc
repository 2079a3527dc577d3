// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/kubeconfig.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/base/yaml.h"

namespace sk8::kube {

namespace {

constexpr std::size_t max_data = 1u << 20; // one inline certificate or key

// "http://user:password@host" -> "http://...@host": errors never hold a secret.
std::string without_password(const std::string &url)
{
	const std::size_t scheme = url.find("://"), at = url.rfind('@');
	const std::size_t from = scheme == url.npos ? 0 : scheme + 3;
	return at == url.npos || at < from ? url : url.substr(0, from) + "..." + url.substr(at);
}

// A quote that is missing makes secrets that follow part of the URL: what cannot be one is
// not shown.
std::string shown(const std::string &url)
{
	auto usual = [](char c) {
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		       std::string_view("-._~:/?#[]@%&=+").find(c) != std::string_view::npos;
	};
	return std::all_of(url.begin(), url.end(), usual) ? " " + one_line(without_password(url), 128) : "";
}

// A list of {name: ..., <inner>: {...}}: the inner mapping of that name.
const YamlNode *named(const YamlNode &doc, std::string_view list, std::string_view inner,
		      std::string_view name)
{
	const YamlNode *all = doc.find(list);
	if (!all)
		return nullptr;
	for (const YamlNode &entry : all->items)
		if (entry.str("name") == name)
			return entry.find(inner);
	return nullptr;
}

std::string known_names(const YamlNode &doc, std::string_view list)
{
	std::vector<std::string> names;
	if (const YamlNode *all = doc.find(list))
		for (const YamlNode &entry : all->items)
			names.push_back(one_line(entry.str("name"), 64));
	return names.empty() ? "the file has none" : "it has " + join(names, ", ");
}

// What we will not do, and what to use instead.
struct Refusal {
	const char *key, *why;
};
constexpr Refusal refused_users[] = {
	{"exec", "an exec plugin cannot run inside slurmctld; use a client certificate or the "
		 "token file of a service account (tokenFile)"},
	{"auth-provider", "auth-provider plugins are not supported; use a client certificate or the "
			  "token file of a service account (tokenFile)"},
	{"username", "Kubernetes no longer accepts passwords; use a client certificate or a token"},
	{"password", "Kubernetes no longer accepts passwords; use a client certificate or a token"},
	{"as", "impersonation is not supported; use credentials of the user itself"},
	{"as-uid", "impersonation is not supported; use credentials of the user itself"},
	{"as-groups", "impersonation is not supported; use credentials of the user itself"},
	{"as-user-extra", "impersonation is not supported; use credentials of the user itself"},
};

class Loader {
public:
	Loader(std::string path, uid_t owner) : path_(std::move(path)), owner_(owner) {}

	Result<ClusterAccess> run(const YamlNode &doc, const std::string &wanted)
	{
		std::string context = wanted.empty() ? std::string(doc.str("current-context")) : wanted;
		if (context.empty())
			return wrong("it has no current-context; name one in the configuration");
		const YamlNode *c = named(doc, "contexts", "context", context);
		if (!c)
			return wrong("context " + one_line(context, 64) + " does not exist; " +
				     known_names(doc, "contexts"));
		out_.source = path_ + ", context " + one_line(context, 64);
		out_.owner = owner_;
		out_.ns = c->str("namespace");
		const YamlNode *cluster = named(doc, "clusters", "cluster", c->str("cluster"));
		if (!cluster)
			return wrong("cluster " + one_line(c->str("cluster"), 64) +
				     " of the context does not exist; " + known_names(doc, "clusters"));
		const YamlNode *user = named(doc, "users", "user", c->str("user"));
		if (!user)
			return wrong("user " + one_line(c->str("user"), 64) +
				     " of the context does not exist; " + known_names(doc, "users"));
		if (Result<void> r = read_cluster(*cluster); !r.ok())
			return r.error();
		if (Result<void> r = read_user(*user); !r.ok())
			return r.error();
		return std::move(out_);
	}

private:
	Error wrong(const std::string &what, int line = 0) const
	{
		return Error{path_ + (line ? ":" + std::to_string(line) : "") + ": " + what};
	}

	Result<void> read_cluster(const YamlNode &cluster)
	{
		const YamlNode *skip = cluster.find("insecure-skip-tls-verify");
		if (skip && !skip->is_null() && skip->text != "false")
			return wrong("insecure-skip-tls-verify is refused: whoever is in between could "
				     "run pods; use certificate-authority",
				     skip->line);
		if (Result<void> r = set_server(std::string(cluster.str("server"))); !r.ok())
			return r;
		out_.tls_server_name = cluster.str("tls-server-name");
		auto allowed = [](char c) {
			return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c >= '0' && c <= '9') || c == '.' || c == '-';
		};
		if (!std::all_of(out_.tls_server_name.begin(), out_.tls_server_name.end(), allowed))
			return wrong("tls-server-name is not the name of a host");
		out_.proxy_url = cluster.str("proxy-url");
		if (!out_.proxy_url.empty() && !out_.proxy_url.starts_with("http://") &&
		    !out_.proxy_url.starts_with("https://") && !out_.proxy_url.starts_with("socks5://"))
			return wrong("proxy-url must start with http://, https:// or socks5://");
		return material(cluster, "certificate-authority", Trust::owned, out_.ca);
	}

	Result<void> set_server(std::string url)
	{
		if (url.empty())
			return wrong("the cluster has no server; give https://host:port");
		if (!url.starts_with("https://"))
			return wrong("server" + shown(url) +
				     " is refused: only https:// keeps credentials secret");
		while (url.ends_with('/'))
			url.pop_back();
		auto odd = [](char c) { return c <= ' ' || c == '@' || c == '?' || c == '#' || c == 0x7f; };
		if (url.size() <= 8 || url.size() > 1024 || std::any_of(url.begin(), url.end(), odd))
			return wrong("server is not of the form https://host:port");
		out_.server = std::move(url);
		return {};
	}

	Result<void> read_user(const YamlNode &user)
	{
		for (const Refusal &r : refused_users)
			if (const YamlNode *n = user.find(r.key); n && !n->is_null() &&
								  !(n->is_scalar() && n->text.empty()))
				return wrong(std::string(r.key) + ": " + r.why, n->line);
		if (Result<void> r = material(user, "client-certificate", Trust::owned,
					      out_.client_certificate);
		    !r.ok())
			return r;
		if (Result<void> r = material(user, "client-key", Trust::secret, out_.client_key); !r.ok())
			return r;
		if (out_.client_certificate.given() != out_.client_key.given())
			return wrong("client-certificate and client-key must be given together");
		// As in client-go the file wins: it is the one that is kept fresh.
		out_.token.trust = Trust::secret;
		if (!user.str("tokenFile").empty())
			out_.token.file = absolute(user.str("tokenFile"));
		else
			out_.token.data = trim(user.str("token"));
		if (!out_.token.given() && !out_.client_key.given())
			return wrong("the user has no credentials; give client-certificate and "
				     "client-key, or tokenFile");
		return {};
	}

	Result<void> material(const YamlNode &from, const std::string &key, Trust trust, Material &to)
	{
		to.trust = trust;
		const YamlNode *data = from.find(key + "-data");
		if (data && !data->text.empty() && !data->is_null()) {
			Result<std::string> bytes = base64_decode(data->text, max_data);
			if (!bytes.ok())
				return wrong(key + "-data is not base64: " + bytes.error().message,
					     data->line);
			to.data = std::move(*bytes);
			return {};
		}
		if (!from.str(key).empty())
			to.file = absolute(from.str(key));
		return {};
	}

	std::string absolute(std::string_view file) const
	{
		if (file.starts_with('/'))
			return std::string(file);
		std::size_t slash = path_.rfind('/');
		std::string folder = slash == path_.npos ? "." : path_.substr(0, slash);
		return folder + "/" + std::string(file);
	}

	std::string path_;
	uid_t owner_;
	ClusterAccess out_;
};

} // namespace

Result<ClusterAccess> load_kubeconfig(const std::string &path, const std::string &context,
				      uid_t owner)
{
	Result<std::string> text = read_file(path, max_yaml_bytes, Trust::secret, owner);
	if (!text.ok())
		return text.error();
	Result<YamlNode> doc = parse_yaml(*text, path);
	if (!doc.ok())
		return doc.error();
	if (!doc->is_mapping())
		return Error{path + ": this is no kubeconfig"};
	Result<ClusterAccess> access = Loader(path, owner).run(*doc, context);
	if (access.ok()) {
		access->file = path;
		access->context = context;
	}
	return access;
}

Result<ClusterAccess> in_cluster_access(const std::string &folder)
{
	const char *host = std::getenv("KUBERNETES_SERVICE_HOST");
	const char *port = std::getenv("KUBERNETES_SERVICE_PORT");
	if (!host || !*host)
		return Error{"KUBERNETES_SERVICE_HOST is not set: this does not run in a pod; give a "
			     "kubeconfig"};
	ClusterAccess out;
	out.source = "the pod's service account";
	std::string name = host;
	if (name.find(':') != name.npos)
		name = "[" + name + "]";
	std::optional<std::int64_t> number = parse_integer(port && *port ? port : "443", 1, 65535);
	auto fits = [](char c) {
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		       c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
	};
	if (!number || !std::all_of(name.begin(), name.end(), fits))
		return Error{"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not name a server"};
	out.server = "https://" + name + ":" + std::to_string(*number);
	out.owner = ::geteuid();
	out.ca.file = folder + "/ca.crt";
	// The kubelet writes it for the container's group or user, as it sees fit.
	out.token.file = folder + "/token";
	Result<std::string> token = read_file(out.token.file, max_data, out.token.trust, out.owner);
	if (!token.ok())
		return token.error();
	if (Result<std::string> ns = read_file(folder + "/namespace", 4096); ns.ok())
		out.ns = trim(*ns);
	return out;
}

} // namespace sk8::kube
