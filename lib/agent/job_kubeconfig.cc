// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/job_kubeconfig.h"

#include "lib/base/json.h"
#include "lib/sk8_container.h"

namespace sk8::agent {

static Json named(const char *kind, const Json &what)
{
	return Json::array().append(Json::object().set("name", "job").set(kind, what));
}

std::string job_kubeconfig(const kube::ClusterAccess &kubelet, const std::string &ns)
{
	Json cluster = Json::object(), context = Json::object(), out = Json::object();
	cluster.set("server", kubelet.server).set("certificate-authority", SK8_TOKEN_FOLDER "/ca.crt");
	if (!kubelet.tls_server_name.empty())
		cluster.set("tls-server-name", kubelet.tls_server_name);
	if (!kubelet.proxy_url.empty() && kubelet.proxy_url.find('@') == std::string::npos) // before it there is a password
		cluster.set("proxy-url", kubelet.proxy_url);
	context.set("cluster", "job").set("user", "job").set("namespace", ns);
	out.set("apiVersion", "v1").set("kind", "Config").set("clusters", named("cluster", cluster));
	out.set("users", named("user", Json::object().set("tokenFile", SK8_TOKEN_FOLDER "/token")));
	out.set("contexts", named("context", context)).set("current-context", "job");
	return out.dump() + "\n"; // JSON is YAML
}

} // namespace sk8::agent
