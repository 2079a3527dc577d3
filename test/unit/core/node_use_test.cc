// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_use.h"

#include "test/unit/catch.h"

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
