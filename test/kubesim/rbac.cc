// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/rbac.h"

#include <algorithm>

namespace kubesim {
namespace {

const Kind &rbac_kind(const char *resource)
{
	return kind_of(resource);
}

bool has(const std::vector<std::string> &list, const std::string &value)
{
	return std::any_of(list.begin(), list.end(), [&](auto &v) { return v == value || v == "*"; });
}

bool path_matches(const std::vector<std::string> &patterns, const std::string &path)
{
	return std::any_of(patterns.begin(), patterns.end(), [&](const std::string &p) {
		if (!p.empty() && p.back() == '*')
			return path.compare(0, p.size() - 1, p, 0, p.size() - 1) == 0;
		return p == path;
	});
}

// What the real server's default roles give to everyone who is authenticated.
bool everyone_may(const Action &a)
{
	static const std::vector<std::string> open_paths = {
		"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/readyz",
		"/healthz/*", "/livez/*", "/readyz/*", "/openapi", "/openapi/*", "/version", "/version/"};
	if (a.resource.empty())
		return a.verb == "get" && path_matches(open_paths, a.path);
	return a.group == "authorization.k8s.io" && a.verb == "create" &&
	       a.resource.rfind("selfsubject", 0) == 0;
}

} // namespace

Rbac::Rbac(Store &store, bool enforced) : store_(store), enforced_(enforced)
{
	store.subscribe([this](std::size_t storage, const Event &) {
		for (const char *r : {"clusterroles", "clusterrolebindings", "roles", "rolebindings"})
			stale_ |= storage == rbac_kind(r).storage;
	});
}

std::vector<Rbac::Rule> Rbac::rules_of(const J &ref, const std::string &ns)
{
	bool cluster = ref["kind"].str() == "ClusterRole";
	ObjectPtr role = store_.find(rbac_kind(cluster ? "clusterroles" : "roles").storage, cluster ? "" : ns,
				     ref["name"].str());
	std::vector<Rule> out;
	if (role)
		role->json()["rules"].each_item([&](const J &r) {
			out.push_back({r["verbs"].strings(), r["apiGroups"].strings(), r["resources"].strings(),
				       r["resourceNames"].strings(), r["nonResourceURLs"].strings()});
		});
	return out;
}

void Rbac::compile()
{
	grants_.clear();
	for (const char *resource : {"clusterrolebindings", "rolebindings"})
		for (const auto &[key, binding] : store_.all(rbac_kind(resource).storage)) {
			J b = binding->json();
			Grant grant;
			grant.ns = binding->ns;
			grant.rules = rules_of(b["roleRef"], binding->ns);
			b["subjects"].each_item([&](const J &s) {
				std::string kind = s["kind"].str(), name = s["name"].str();
				if (kind == "ServiceAccount") {
					kind = "User";
					name = "system:serviceaccount:" + s["namespace"].str() + ":" + name;
				}
				grant.subjects.emplace_back(kind, name);
			});
			grants_.push_back(std::move(grant));
		}
	stale_ = false;
}

bool Rbac::allowed(const User &user, const Action &a)
{
	if (!enforced_ || user.in("system:masters") || everyone_may(a))
		return true;
	if (stale_)
		compile();
	const std::string what = a.subresource.empty() ? a.resource : a.resource + "/" + a.subresource;
	auto permits = [&](const Rule &r) {
		if (!has(r.verbs, a.verb))
			return false;
		if (a.resource.empty())
			return path_matches(r.paths, a.path);
		bool named = has(r.resources, what) || (!a.subresource.empty() && has(r.resources, "*/" + a.subresource));
		return has(r.groups, a.group) && named &&
		       (r.names.empty() || std::count(r.names.begin(), r.names.end(), a.name));
	};
	for (const auto &grant : grants_) {
		if (!grant.ns.empty() && (a.resource.empty() || grant.ns != a.ns))
			continue;
		bool meant = std::any_of(grant.subjects.begin(), grant.subjects.end(), [&](auto &s) {
			return s.first == "User" ? s.second == user.name : s.first == "Group" && user.in(s.second);
		});
		if (meant && std::any_of(grant.rules.begin(), grant.rules.end(), permits))
			return true;
	}
	return false;
}

Failure Rbac::forbidden(const User &user, const Action &a)
{
	const std::string who = "User \"" + user.name + "\" cannot " + a.verb;
	if (a.resource.empty())
		return {403, "Forbidden", "forbidden: " + who + " path \"" + a.path + "\"", J::object()};
	const std::string qualified = a.group.empty() ? a.resource : a.resource + "." + a.group;
	std::string text = qualified + (a.name.empty() ? "" : " \"" + a.name + "\"") + " is forbidden: " + who +
			   " resource \"" + a.resource + (a.subresource.empty() ? "" : "/" + a.subresource) +
			   "\" in API group \"" + a.group + "\"";
	text += a.ns.empty() ? " at the cluster scope" : " in the namespace \"" + a.ns + "\"";
	J details = J::object();
	if (!a.name.empty())
		details.set("name", a.name);
	if (!a.group.empty())
		details.set("group", a.group);
	details.set("kind", a.resource);
	return {403, "Forbidden", text, details};
}

} // namespace kubesim
