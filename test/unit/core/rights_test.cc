// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// etc/kubernetes-rbac.yaml gives exactly what the engine needs (lib/core/rights.h).
#include "lib/core/rights.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "lib/base/yaml.h"
#include "test/unit/catch.h"

using namespace sk8;

static std::string manifest()
{
	std::ifstream file(TOP_SRCDIR "/etc/kubernetes-rbac.yaml");
	std::ostringstream text;
	text << file.rdbuf();
	return text.str();
}

// "storage.k8s.io storageclasses get" of each rule of each ClusterRole.
static std::set<std::string> granted()
{
	std::set<std::string> out;
	std::string rest = manifest();
	while (!rest.empty()) {
		const auto end = rest.find("\n---\n");
		auto document = parse_yaml(rest.substr(0, end), std::string("kubernetes-rbac.yaml"));
		REQUIRE(document);
		rest = end == rest.npos ? "" : rest.substr(end + 5);
		const YamlNode *rules = document->find("rules");
		if (document->str("kind") != "ClusterRole" || !rules)
			continue;
		for (const YamlNode &rule : rules->items)
			for (const YamlNode &group : rule.find("apiGroups")->items)
				for (const YamlNode &resource : rule.find("resources")->items)
					for (const YamlNode &verb : rule.find("verbs")->items)
						out.insert(group.text + " " + resource.text + " " + verb.text);
	}
	return out;
}

TEST_CASE("the manifest of rights gives what the engine needs and nothing else")
{
	std::set<std::string> needed;
	for (const core::Right &r : core::needed_rights)
		CHECK(needed.insert(std::string(r.group) + " " + std::string(r.resource) + " " + std::string(r.verb)).second);
	const std::set<std::string> given = granted();
	for (const auto &right : needed) {
		CAPTURE(right);
		CHECK(given.contains(right));
	}
	for (const auto &right : given) {
		CAPTURE(right);
		CHECK(needed.contains(right));
	}
}
