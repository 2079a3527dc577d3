// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/node_list.h"

#include "test/unit/catch.h"
#include "test/unit/base/node_names.h"

using namespace sk8;

namespace {

using Names = std::set<std::string>;

std::string numbered(const std::string &prefix, int from, int to)
{
	Names names;
	for (int n = from; n <= to; n++)
		names.insert(prefix + std::to_string(n));
	return compress_nodes(names);
}

} // namespace

TEST_CASE("names of nodes that follow each other are one range, whatever else is in the list")
{
	CHECK(compress_nodes({}).empty());
	CHECK(compress_nodes({"n1"}) == "n1");
	CHECK(compress_nodes({"n1", "n2"}) == "n[1-2]");
	CHECK(compress_nodes({"n1", "n3", "n4", "n5"}) == "n[1,3-5]");
	CHECK(compress_nodes({"login", "n1", "n2", "z9"}) == "login,n[1-2],z9");
	CHECK(compress_nodes({"a-1", "a-2", "b-1"}) == "a-[1-2],b-1");
	CHECK(compress_nodes({"n", "n0", "n1"}) == "n,n[0-1]");
	CHECK(numbered("n", 501, 5000) == "n[501-5000]");
	CHECK(numbered("n", 8, 1001) == "n[8-1001]");
}

TEST_CASE("zeros before a number stay, and names that have others are of another range")
{
	CHECK(compress_nodes({"n001", "n002", "n010"}) == "n[001-002,010]");
	CHECK(compress_nodes({"n098", "n099", "n100", "n101"}) == "n[098-101]");
	CHECK(compress_nodes({"n9", "n10", "n08", "n09"}) == "n[9,08-10]");
	CHECK(compress_nodes({"n99", "n0100"}) == "n[99,0100]");
	CHECK(compress_nodes({"n000", "n00", "n0"}) == "n[0,00,000]");
}

TEST_CASE("a name of several numbers has its last one in the range, and what follows the digits makes it stand alone")
{
	CHECK(compress_nodes({"r1n1", "r1n2", "r2n1", "r2n2"}) == "r1n[1-2],r2n[1-2]");
	CHECK(compress_nodes({"n1-ib", "n2-ib"}) == "n1-ib,n2-ib");
	CHECK(compress_nodes({"1", "2", "12", "13"}) == "1,1[2-3],2");
	CHECK(compress_nodes({"n20260101001", "n20260101002"}) == "n20[260101001-260101002]");
}

TEST_CASE("no range is larger than Slurm reads")
{
	const std::string list = numbered("n", 1, 70'000);
	CHECK(list == "n[1-65536,65537-70000]");
	CHECK(count_nodes(list) == 70'000);
}

TEST_CASE("what is compressed has the same names when it is expanded")
{
	for (unsigned seed = 1; seed <= 2'000; seed++) {
		const Names names = test::some_nodes(seed);
		const std::string list = compress_nodes(names);
		INFO("seed " << seed << ": " << list);
		REQUIRE(expand_nodes(list, 1'000) == names);
		REQUIRE(count_nodes(list) == names.size());
		REQUIRE((names.empty() || names.contains(first_node(list))));
		for (const auto &name : names)
			REQUIRE(has_node(list, name));
		for (const auto &name : test::some_nodes(seed + 1))
			REQUIRE(has_node(list, name) == names.contains(name));
	}
}

TEST_CASE("plain lists are read as well, and a name that stands there twice counts once")
{
	CHECK(expand_nodes("n2,n1,n2", 10) == Names{"n1", "n2"});
	CHECK(count_nodes("n2,n1,n2") == 3);
	CHECK(has_node("n2,n1,n2", "n1"));
	CHECK_FALSE(has_node("n2,n10,n2", "n1"));
	CHECK_FALSE(has_node("n[2-10]", "n02"));
	CHECK(first_node("n[003-010],n003") == "n003");
	CHECK(expand_nodes("", 0) == Names{});
}

TEST_CASE("what is no list, or has too many names, is none")
{
	for (const char *text : {"n[", "n[]", "n[1", "n[1-]", "n[-1]", "n[2-1]", "n[1-2]x", "n[1][2]", "n]", "[1-2]", ",n", "n,", "n,,m", "n[1,]",
				 "n[a]", "n[1-2-3]", "n[1-99999]", "n[0000000000]", "n[[1]]", "["}) {
		INFO(text);
		CHECK_FALSE(expand_nodes(text, 1'000'000));
	}
	CHECK(expand_nodes("n[1-10]", 10));
	CHECK_FALSE(expand_nodes("n[1-10]", 9));
	CHECK(first_node("[1-2]").empty());
}
