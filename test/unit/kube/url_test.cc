// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/url.h"
#include "test/unit/catch.h"

using namespace sk8::kube;

TEST_CASE("paths name group, version, namespace, object and subresource")
{
	const ResourceType leases{"coordination.k8s.io", "v1", "leases"};
	CHECK(resource_path(pods_resource) == "/api/v1/pods");
	CHECK(resource_path(nodes_resource, "", "n1") == "/api/v1/nodes/n1");
	CHECK(resource_path(pods_resource, "ns", "p", "binding") ==
	      "/api/v1/namespaces/ns/pods/p/binding");
	CHECK(resource_path(leases, "kube-system", "slurm") ==
	      "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/slurm");
}

TEST_CASE("nothing in a name can leave its place in the path")
{
	CHECK(resource_path(pods_resource, "a/b", "../x?y#z") ==
	      "/api/v1/namespaces/a%2Fb/pods/..%2Fx%3Fy%23z");
	CHECK(resource_path(pods_resource, "..", ".") == "/api/v1/namespaces/%2E%2E/pods/%2E");
}

TEST_CASE("query parameters are encoded byte by byte")
{
	CHECK(encode_query({}) == "");
	CHECK(encode_query({{"labelSelector", "a in (b,c),d!=e"}, {"watch", "true"}}) ==
	      "?labelSelector=a%20in%20%28b%2Cc%29%2Cd%21%3De&watch=true");
	CHECK(percent_encode("\xc3\xa9 &+%") == "%C3%A9%20%26%2B%25");
}
