// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/settings.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::agent;

TEST_CASE("agent settings: an empty file is good for a node that kubeadm has made")
{
	const auto s = parse_agent_settings("{}", "f");
	REQUIRE(s);
	CHECK(s->kubeconfig == "/etc/kubernetes/kubelet.conf");
	CHECK(s->pinning);
	CHECK_FALSE(s->confine_foreign_pods);
	CHECK(s->cgroup_root == "/");
}

TEST_CASE("agent settings: what is wrong is said with its line")
{
	const struct {
		const char *text, *part;
	} rows[] = {
		{"kubeconfig: kubelet.conf", "f:1: kubeconfig: \"kubelet.conf\" is no absolute path"},
		{"pinning: perhaps", "f:1: pinning:"},
		{"pining: true", "pinning"},
		{"cgroupRoot: kubepods", "no absolute path"},
	};
	for (const auto &row : rows) {
		INFO(row.text);
		const auto s = parse_agent_settings(row.text, "f");
		REQUIRE_FALSE(s);
		INFO(s.error().message);
		CHECK(s.error().message.find(row.part) != std::string::npos);
	}
}
