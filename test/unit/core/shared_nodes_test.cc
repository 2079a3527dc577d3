// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/shared_nodes.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;

TEST_CASE("shared nodes: the first group that has a node says how it is shared, and only of those that are")
{
	NodeSettings settings;
	settings.selector = "shared=true";
	settings.sharing = Sharing::dedicated;
	settings.groups = {{"pool in (gpu, big)", Sharing::mixed}, {"pool=big", Sharing::none}, {"pool=cpu", Sharing::none}};
	const SharedNodes nodes(settings);
	struct Row {
		const char *shared, *pool;
		bool has;
		Sharing sharing;
	};
	static const Row rows[] = {
		{"true", "", true, Sharing::dedicated},	  {"true", "gpu", true, Sharing::mixed},
		{"true", "big", true, Sharing::mixed},	  {"true", "cpu", true, Sharing::none},
		{"true", "other", true, Sharing::dedicated}, {"false", "gpu", false, Sharing::none},
		{"", "", false, Sharing::none},
	};
	for (const Row &row : rows) {
		CAPTURE(row.shared, row.pool);
		kube::Node node;
		if (*row.shared)
			node.meta.labels["shared"] = row.shared;
		if (*row.pool)
			node.meta.labels["pool"] = row.pool;
		CHECK(nodes.has(node) == row.has);
		CHECK(nodes.sharing(node) == row.sharing);
	}
}

TEST_CASE("shared nodes: no selector takes all, and one that is none takes none")
{
	NodeSettings settings;
	settings.sharing = Sharing::mixed;
	CHECK(SharedNodes(settings).has({}));
	CHECK(SharedNodes(settings).sharing({}) == Sharing::mixed);
	settings.selector = "a b";
	CHECK_FALSE(SharedNodes(settings).has({}));
	CHECK(SharedNodes(settings).sharing({}) == Sharing::none);
}

TEST_CASE("shared nodes: which jobs have pods is asked of the settings")
{
	ClusterSettings settings;
	CHECK_FALSE(settings.has_containers());
	CHECK_FALSE(settings.wants_natives());
	settings.nodes.groups = {{"pool=gpu", Sharing::dedicated}};
	CHECK(settings.has_containers());
	CHECK(settings.wants_natives());
	CHECK_FALSE(settings.reserves()); // who wants no container does not wait
	settings.nodes.groups = {{"pool=gpu", Sharing::mixed}};
	CHECK(settings.has_containers());
	CHECK(settings.reserves());
}

TEST_CASE("shared nodes: what any node may have is asked of the settings")
{
	NodeSettings settings;
	CHECK(settings.any(Sharing::none));
	CHECK_FALSE(settings.any(Sharing::mixed));
	settings.groups = {{"pool=gpu", Sharing::mixed}};
	CHECK(settings.any(Sharing::mixed));
	CHECK_FALSE(settings.any(Sharing::dedicated));
}
