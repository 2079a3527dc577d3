// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// /version, /api, /apis and what kubectl needs of OpenAPI: which resources take
// fieldValidation (so that kubectl leaves validation to the server). The schemas
// themselves are not served: `kubectl explain` does not work.
#include <set>

#include "test/kubesim/api.h"

namespace kubesim {
namespace {

const char authorization_group[] = "authorization.k8s.io";

J verbs(bool subresource, const Kind &kind)
{
	if (subresource)
		return J::list({"get", "patch", "update"});
	std::vector<std::string> all = {"create", "delete", "deletecollection", "get",
					"list",   "patch",  "update",           "watch"};
	if (std::string_view(kind.resource) == "namespaces")
		all.erase(all.begin() + 2);
	return J::list(all);
}

J resource_row(const Kind &k)
{
	J row = J::make("name", k.resource, "singularName", k.singular, "namespaced", k.namespaced, "kind", k.kind,
			"verbs", verbs(false, k));
	auto names = [](const std::vector<const char *> &list) {
		return J::list(std::vector<std::string>(list.begin(), list.end()));
	};
	if (!k.short_names.empty())
		row.set("shortNames", names(k.short_names));
	if (!k.categories.empty())
		row.set("categories", names(k.categories));
	return row;
}

J sub_row(const Kind &k, const char *sub, const char *kind, const std::vector<std::string> &v)
{
	return J::make("name", std::string(k.resource) + "/" + sub, "singularName", "", "namespaced", k.namespaced,
		       "kind", kind, "verbs", J::list(v));
}

J resource_list(const std::string &group, const std::string &version)
{
	J list = J::array();
	for (const auto &k : kinds()) {
		if (group != k.group || version != k.version)
			continue;
		list.append(resource_row(k));
		if (std::string_view(k.resource) == "pods") {
			list.append(sub_row(k, "binding", "Binding", {"create"}));
			J eviction = sub_row(k, "eviction", "Eviction", {"create"});
			eviction.set("group", "policy").set("version", "v1");
			list.append(eviction);
			list.append(sub_row(k, "log", "Pod", {"get"}));
			list.append(sub_row(k, "resize", "Pod", {"get", "patch", "update"}));
		}
		if (k.has_status)
			list.append(sub_row(k, "status", k.kind, {"get", "patch", "update"}));
	}
	if (group == authorization_group && version == "v1")
		list.append(J::make("name", "selfsubjectaccessreviews", "singularName", "selfsubjectaccessreview",
				    "namespaced", false, "kind", "SelfSubjectAccessReview", "verbs",
				    J::list({"create"})));
	if (list.size() == 0)
		return {};
	return J::make("kind", "APIResourceList", "apiVersion", "v1", "groupVersion",
		       group.empty() ? version : group + "/" + version, "resources", list);
}

std::set<std::string> groups()
{
	std::set<std::string> out = {authorization_group};
	for (const auto &k : kinds())
		if (*k.group)
			out.insert(k.group);
	return out;
}

J group_row(const std::string &group)
{
	J version = J::make("groupVersion", group + "/v1", "version", "v1");
	J versions = J::array();
	versions.append(version);
	return J::make("name", group, "versions", versions, "preferredVersion", version);
}

J version_info()
{
	return J::make("major", "1", "minor", "35", "gitVersion", "v1.35.4+kubesim", "gitCommit", "", "gitTreeState",
		       "clean", "buildDate", "1970-01-01T00:00:00Z", "goVersion", "none", "compiler", "g++",
		       "platform", "linux/amd64");
}

J group_list()
{
	J list = J::array();
	for (const auto &g : groups())
		list.append(group_row(g));
	return J::make("kind", "APIGroupList", "apiVersion", "v1", "groups", list);
}

J api_versions()
{
	J addresses = J::array();
	addresses.append(J::make("clientCIDR", "0.0.0.0/0", "serverAddress", ""));
	return J::make("kind", "APIVersions", "versions", J::list({"v1"}), "serverAddressByClientCIDRs", addresses);
}

J openapi3_index()
{
	J paths = J::make("api/v1", J::make("serverRelativeURL", "/openapi/v3/api/v1"));
	for (const auto &g : groups())
		paths.set("apis/" + g + "/v1", J::make("serverRelativeURL", "/openapi/v3/apis/" + g + "/v1"));
	return J::make("paths", paths);
}

J openapi3_group(const std::string &prefix) // "api/v1", "apis/G/V"
{
	J paths = J::object();
	for (const auto &k : kinds()) {
		const std::string own = (*k.group ? "apis/" : "api/") + k.api_version();
		if (own != prefix)
			continue;
		J parameters = J::array();
		for (const char *name : {"fieldValidation", "dryRun", "fieldManager"})
			parameters.append(J::make("name", name, "in", "query", "schema", J::make("type", "string")));
		J gvk = J::make("group", k.group, "kind", k.kind, "version", k.version);
		J operation = J::make("parameters", parameters, "responses",
				      J::make("200", J::make("description", "OK")),
				      "x-kubernetes-group-version-kind", gvk);
		J both = J::make("patch", operation.copy(), "post", operation.copy());
		paths.set("/" + prefix + (k.namespaced ? "/namespaces/{namespace}/" : "/") + k.resource + "/{name}",
			  both);
	}
	if (paths.size() == 0)
		return {};
	return J::make("openapi", "3.0.0", "info", J::make("title", "kubesim", "version", "v1.35"), "paths", paths,
		       "components", J::make("schemas", J::object()));
}

// An OpenAPI 2 document without definitions, which makes older kubectl skip its own
// validation. They ask for it in protobuf: fields 1 (swagger), 2 (info), 8 (paths).
Reply openapi2(const Request &r)
{
	if (r.accept.find("protobuf") == std::string::npos)
		return Reply::json(200, J::make("swagger", "2.0", "info",
						J::make("title", "kubesim", "version", "v1.35"), "paths", J::object(),
						"definitions", J::object())
						.dump());
	Reply reply;
	reply.type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
	reply.body = std::string("\x0a\x03" "2.0" "\x12\x10\x0a\x07" "kubesim" "\x12\x05" "v1.35" "\x42\x00", 25);
	return reply;
}

} // namespace

Reply serve_discovery(const Request &r)
{
	auto answer = [](const J &j) { return j ? Reply::json(200, j.dump()) : Reply::text(404, "404 page not found\n"); };
	std::string path = r.path;
	while (path.size() > 1 && path.back() == '/')
		path.pop_back();
	if (path == "/version")
		return answer(version_info());
	if (path == "/api")
		return answer(api_versions());
	if (path == "/apis")
		return answer(group_list());
	if (path == "/api/v1")
		return answer(resource_list("", "v1"));
	if (path == "/openapi/v2")
		return openapi2(r);
	if (path == "/openapi/v3")
		return answer(openapi3_index());
	const std::string v3 = "/openapi/v3/", apis = "/apis/";
	if (path.compare(0, v3.size(), v3) == 0)
		return answer(openapi3_group(path.substr(v3.size())));
	if (path.compare(0, apis.size(), apis) == 0) {
		const std::string rest = path.substr(apis.size());
		std::size_t slash = rest.find('/');
		if (slash != rest.npos)
			return answer(resource_list(rest.substr(0, slash), rest.substr(slash + 1)));
		if (!groups().count(rest))
			return answer({});
		J group = group_row(rest);
		group.set("kind", "APIGroup").set("apiVersion", "v1");
		return answer(group);
	}
	Reply none;
	none.code = 0;
	return none;
}

} // namespace kubesim
