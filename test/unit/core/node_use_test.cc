// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_use.h"

#include "test/unit/catch.h"

#include <cstdint>

using namespace sk8;
using namespace sk8::core;
using Names = std::set<std::string>;

TEST_CASE("nodes that have all the pods that they can have are told, and when these become others")
{
	NodeUse use;
	CHECK(use.full().empty());
	(void) use.set_slots("n1", 2);
	(void) use.add("a", "n1", {});
	(void) use.add("b", "n2", {});
	CHECK_FALSE(use.full_changed());
	(void) use.add("c", "n1", {});
	CHECK(use.full() == Names{"n1"});
	CHECK(use.full_changed());
	CHECK_FALSE(use.full_changed());
	(void) use.add("d", "n1", {}); // more than it can have
	(void) use.remove("a");
	CHECK(use.full() == Names{"n1"});
	CHECK_FALSE(use.full_changed());
	(void) use.remove("c");
	CHECK(use.full().empty());
	CHECK(use.full_changed());
	(void) use.set_slots("n2", 1);
	CHECK(use.full() == Names{"n2"});
	(void) use.add("b", "n1", {}); // it is elsewhere now
	CHECK(use.full() == Names{"n1"});
	(void) use.set_slots("n1", 0); // nobody knows
	CHECK(use.full().empty());
}

static kube::Pod wishing(std::int64_t storage)
{
	kube::Pod out;
	if (storage)
		out.request.extended["ephemeral-storage"] = storage;
	return out;
}

static constexpr std::int64_t mib = 1 << 20;

TEST_CASE("storage of a node is what its pods leave of it, and no pod is in its own way")
{
	NodeUse use;
	(void) use.add("a", "n1", {}, 70 * mib);
	CHECK(use.objection("b", wishing(500 * mib), "n1").empty()); // nobody knows how much it has
	use.set_storage("n1", 100 * mib);
	CHECK(use.objection("b", wishing(30 * mib), "n1").empty());
	CHECK(use.objection("b", wishing(40 * mib), "n1") ==
	      "its pods leave 30 MiB of its ephemeral-storage, and this one requests 40");
	CHECK(use.objection("a", wishing(70 * mib), "n1").empty());
	CHECK(use.objection("b", wishing(0), "n1").empty());
	use.set_storage("n1", 60 * mib); // less than its pods have
	CHECK_FALSE(use.objection("b", wishing(1), "n1").empty());
	CHECK(use.objection("b", wishing(0), "n1").empty());
	(void) use.add("a", "n2", {}, 70 * mib); // it is elsewhere now
	CHECK(use.objection("b", wishing(60 * mib), "n1").empty());
	CHECK(use.excluded("b", wishing(60 * mib)).empty());
	CHECK(use.excluded("b", wishing(61 * mib)) == Names{"n1"});
	CHECK(use.excluded("b", wishing(0)).empty());
}

TEST_CASE("storage of a node is news only to who may lack some")
{
	NodeUse use;
	use.set_storage("n1", 100 * mib);
	(void) use.add("a", "n1", {}, 90 * mib);
	CHECK_FALSE(use.room_changed()); // nobody has asked
	(void) use.remove("a");
	(void) use.excluded("w", wishing(20 * mib));
	(void) use.add("b", "n1", {}, 80 * mib);
	CHECK_FALSE(use.room_changed()); // enough is left
	(void) use.add("c", "n1", {}, 1);
	CHECK(use.room_changed());
	CHECK_FALSE(use.room_changed());
	(void) use.add("d", "n1", {}, 0);
	CHECK_FALSE(use.room_changed());
	(void) use.remove("c");
	CHECK(use.room_changed());
	use.set_storage("n1", 99 * mib);
	CHECK(use.room_changed());
}

TEST_CASE("storage: absurd requests take a whole node and nothing else")
{
	NodeUse use;
	use.set_storage("n1", INT64_MAX);
	for (int i = 0; i < 100; i++)
		(void) use.add(std::to_string(i), "n1", {}, INT64_MAX);
	CHECK(use.objection("w", wishing(INT64_MAX), "n1").empty()); // more than any node has counts as that
	use.set_storage("n1", mib);
	CHECK_FALSE(use.objection("w", wishing(1), "n1").empty());
	for (int i = 0; i < 100; i++)
		(void) use.remove(std::to_string(i));
	CHECK(use.objection("w", wishing(mib), "n1").empty());
	(void) use.add("less than nothing", "n1", {}, -5);
	CHECK(use.objection("w", wishing(mib), "n1").empty());
}
