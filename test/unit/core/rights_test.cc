// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// etc/kubernetes-rbac.yaml gives exactly what the engine needs (lib/core/rights.h).
#include "lib/core/rights.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lib/base/yaml.h"
#include "lib/core/settings.h"
#include "test/unit/catch.h"

using namespace sk8;

static std::string manifest(const std::string &name)
{
	std::ifstream file(TOP_SRCDIR "/etc/" + name);
	std::ostringstream text;
	text << file.rdbuf();
	return text.str();
}

static std::vector<YamlNode> documents(const std::string &name)
{
	std::vector<YamlNode> out;
	std::string rest = manifest(name);
	while (!rest.empty()) {
		const auto end = rest.find("\n---\n");
		auto document = parse_yaml(rest.substr(0, end), name);
		REQUIRE(document);
		out.push_back(std::move(*document));
		rest = end == rest.npos ? "" : rest.substr(end + 5);
	}
	return out;
}

// "storage.k8s.io storageclasses get" of each rule of each object of this kind.
static std::set<std::string> granted(const std::string &name, const std::string &kind)
{
	std::set<std::string> out;
	for (const YamlNode &document : documents(name)) {
		const YamlNode *rules = document.find("rules");
		if (document.str("kind") != kind || !rules)
			continue;
		for (const YamlNode &rule : rules->items)
			for (const YamlNode &group : rule.find("apiGroups")->items)
				for (const YamlNode &resource : rule.find("resources")->items)
					for (const YamlNode &verb : rule.find("verbs")->items)
						out.insert(group.text + " " + resource.text + " " + verb.text);
	}
	return out;
}

static void compare(auto &rights, const std::set<std::string> &given)
{
	std::set<std::string> needed;
	for (const core::Right &r : rights)
		CHECK(needed.insert(std::string(r.group) + " " + std::string(r.resource) + " " + std::string(r.verb)).second);
	for (const auto &right : needed) {
		CAPTURE(right);
		CHECK(given.contains(right));
	}
	for (const auto &right : given) {
		CAPTURE(right);
		CHECK(needed.contains(right));
	}
}

TEST_CASE("the manifest of rights gives what the engine needs and nothing else")
{
	std::vector<core::Right> all(std::begin(core::needed_rights), std::end(core::needed_rights));
	all.insert(all.end(), std::begin(core::exclusive_rights), std::end(core::exclusive_rights));
	compare(all, granted("kubernetes-rbac.yaml", "ClusterRole"));
}

TEST_CASE("the manifest of claimed devices gives what they need and nothing else")
{
	compare(core::device_rights, granted("kubernetes-devices.yaml", "ClusterRole"));
}

TEST_CASE("the manifest of reservation pods gives what they need in their namespace and nothing else")
{
	compare(core::reservation_rights, granted("kubernetes-reservations.yaml", "Role"));
}

// The label that Pod Security goes by is kubernetes-containers.yaml's, or an administrator's, once the namespace is there.
TEST_CASE("manifests that are applied again with a new version say nothing of the namespace of reservation pods")
{
	for (const char *name : {"kubernetes-rbac.yaml", "kubernetes-reservations.yaml", "kubernetes-devices.yaml", "kubernetes-resubmit.yaml"}) {
		CAPTURE(name);
		for (const auto &document : documents(name)) {
			const YamlNode *meta = document.find("metadata");
			CHECK_FALSE((document.str("kind") == "Namespace" && meta && meta->find("labels")));
			CHECK_FALSE((document.str("kind") == "Namespace" && meta && meta->str("name") == "slurm-k8s-jobs"));
		}
	}
	const auto made = documents("kubernetes-reservations-namespace.yaml");
	REQUIRE(made.size() == 1);
	CHECK(made[0].find("metadata")->str("name") == core::ReservationSettings().ns);
	CHECK(made[0].find("metadata")->find("labels")->str("pod-security.kubernetes.io/enforce") == "restricted");
}
