// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/job_kubeconfig.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::agent;

TEST_CASE("kubeconfig of jobs: it says where the API server is and which files of the container prove who they are")
{
	kube::ClusterAccess kubelet;
	kubelet.server = "https://10.0.0.1:6443";
	CHECK(job_kubeconfig(kubelet, "jobs") ==
	      R"({"apiVersion":"v1","kind":"Config","clusters":[{"name":"job","cluster":{"server":"https://10.0.0.1:6443",)"
	      R"("certificate-authority":"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"}}],)"
	      R"("users":[{"name":"job","user":{"tokenFile":"/var/run/secrets/kubernetes.io/serviceaccount/token"}}],)"
	      R"("contexts":[{"name":"job","context":{"cluster":"job","user":"job","namespace":"jobs"}}],"current-context":"job"})" "\n");
	kubelet.tls_server_name = "api.example.com";
	kubelet.proxy_url = "socks5://proxy:1080";
	CHECK(job_kubeconfig(kubelet, "jobs").find(R"("tls-server-name":"api.example.com","proxy-url":"socks5://proxy:1080"}})") != std::string::npos);
}

TEST_CASE("kubeconfig of jobs: nothing of the kubelet's secrets is in it")
{
	kube::ClusterAccess kubelet;
	kubelet.server = "https://10.0.0.1:6443";
	const std::string without = job_kubeconfig(kubelet, "jobs");
	kubelet.source = kubelet.file = kubelet.client_key.file = kubelet.client_certificate.file = "/secret/file";
	kubelet.client_key.data = kubelet.client_certificate.data = kubelet.token.data = kubelet.ca.data = "secret";
	kubelet.token.file = "/secret/token";
	kubelet.proxy_url = "http://me:secret@proxy:3128";
	CHECK(job_kubeconfig(kubelet, "jobs") == without);
}
