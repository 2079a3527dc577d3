// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/service_account.h"

#include <algorithm>
#include <set>

#include "lib/base/text.h"

namespace sk8::core {

// The kubelet renews it when a fifth of this is left (pkg/kubelet/token/token_manager.go).
static constexpr std::int64_t token_seconds = 3600;
static constexpr std::string_view folder = SK8_TOKEN_FOLDER;

// IsDNS1123Subdomain() of Kubernetes allows a little less: what it refuses no account has.
static bool is_name(std::string_view name)
{
	const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
	return !name.empty() && name.size() <= longest_service_account && good(name.front()) && good(name.back()) &&
	       std::ranges::all_of(name, [&](char c) { return good(c) || c == '-' || c == '.'; });
}

std::string bad_service_account(std::string_view name, const std::vector<std::string> &allowed, const TemplateUser &who)
{
	if (!is_name(name))
		return "no ServiceAccount can have that name";
	const std::string why = not_taken(allowed, name, who, "reservations.serviceAccounts");
	return why.empty() ? "" : "ServiceAccount " + one_line(name, 64) + why;
}

static Json list_of(const Json &item)
{
	return Json::array().append(item);
}

// What the ServiceAccount admission plugin of Kubernetes adds to pods (plugin/pkg/admission/serviceaccount/admission.go). No other
// user can read the token: all containers of the pod run as the job's, and then the kubelet makes it the file's owner.
Json token_volume()
{
	Json token = Json::object(), ca = Json::object(), ns = Json::object();
	token.set("path", "token").set("expirationSeconds", Json::integer(token_seconds));
	ca.set("name", "kube-root-ca.crt").set("items", list_of(Json::object().set("key", "ca.crt").set("path", "ca.crt")));
	ns.set("path", "namespace").set("fieldRef", Json::object().set("fieldPath", "metadata.namespace"));
	Json sources = Json::array();
	sources.append(Json::object().set("serviceAccountToken", token)).append(Json::object().set("configMap", ca));
	sources.append(Json::object().set("downwardAPI", Json::object().set("items", list_of(ns))));
	return Json::object().set("name", account_volume).set("projected", Json::object().set("sources", sources));
}

Json token_mount()
{
	return Json::object().set("name", account_volume).set("mountPath", folder).set("readOnly", Json::boolean(true));
}

bool takes_token_folder(const PodTemplate &more)
{
	static constexpr std::string_view also = "/run/secrets/kubernetes.io/serviceaccount"; // /var/run is a link to /run in most images
	std::set<std::string_view> of_others; // names of volumes
	more.volumes.each_item([&](const Json &v) {
		if (has_files_of_others(v))
			of_others.insert(v["name"].str());
	});
	bool takes = false;
	more.job_mounts.each_item([&](const Json &mount) {
		const std::string_view path = mount["mountPath"].str();
		for (const std::string_view token : {folder, also})
			takes |= path == token || is_below(path, token) || (is_below(token, path) && of_others.contains(mount["name"].str()));
	});
	return takes;
}

bool is_unknown_account(std::string_view error)
{
	return error.find("error looking up service account") != error.npos && error.find("not found") != error.npos;
}

} // namespace sk8::core
