// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/numa_cores.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::core;
using Cores = std::vector<std::uint16_t>;

TEST_CASE("cores by NUMA node are read as they were told")
{
	const NumaCores two{{{0, {0, 1}}, {1, {2, 3}}}, {{"pci0000:00", 0}, {"pci0000:80", 1}}};
	const std::string text = R"({"cores":{"0":[0,1],"1":[2,3]},"pci":{"pci0000:00":0,"pci0000:80":1}})";
	CHECK(numa_text(two) == text);
	CHECK(*parse_numa(text) == two);
	CHECK(two.core_count() == 4);
	CHECK(numa_text(NumaCores{{{0, {0}}}, {}}) == R"({"cores":{"0":[0]}})");
	CHECK(*parse_numa(R"({"cores":{"1":[3,1],"0":[0,2]},"later":7})") == NumaCores{{{0, {0, 2}}, {1, {1, 3}}}});
	// nothing is known
	CHECK(numa_text({}).empty());
	CHECK(numa_text({{}, {{"pci0000:00", 0}}}).empty());
	CHECK(*parse_numa("") == NumaCores{});
}

TEST_CASE("what a node says of its cores by NUMA node may be anything")
{
	for (const std::string text : {"x", "[]", "7", "{}", R"({"cores":7})", R"({"cores":{}})", R"({"cores":{"0":7}})", R"({"cores":{"0":[]}})",
				       R"({"cores":{"0":["0"]}})", R"({"cores":{"0":[-1]}})", R"({"cores":{"0":[8192]}})", R"({"cores":{"x":[0]}})",
				       R"({"cores":{"-1":[0]}})", R"({"cores":{"1024":[0]}})", R"({"cores":{"1":[0],"01":[1]}})",
				       R"({"cores":{"0":[0],"1":[0]}})", R"({"cores":{"0":[0,2]}})", R"({"cores":{"0":[1]}})",
				       R"({"cores":{"0":[0]},"pci":7})", R"({"cores":{"0":[0]},"pci":{"pci0000:00":"0"}})",
				       R"({"cores":{"0":[0]},"pci":{"pci0000:00":-1}})", R"({"cores":{"0":[0]},"pci":{"pci0000:00":1024}})",
				       R"({"cores":{"0":[0]},"pci":{"pci0000:00:01.000":0}})"}) {
		INFO(text);
		CHECK_FALSE(parse_numa(text));
	}
	std::string many;
	for (std::size_t i = 0; i <= max_pci_roots; i++)
		many += "\"" + std::to_string(i) + "\":0,";
	CHECK_FALSE(parse_numa(R"({"cores":{"0":[0]},"pci":{)" + many + R"("x":0}})"));
	CHECK_FALSE(parse_numa(std::string(70'000, ' ') + R"({"cores":{"0":[0]}})"));
}

TEST_CASE("a socket is there as a whole or not at all")
{
	CHECK(whole_sockets({}, 4).empty());
	CHECK(whole_sockets({0, 1, 2, 3}, 4) == Cores{0, 1, 2, 3});
	CHECK(whole_sockets({6}, 4) == Cores{4, 5, 6, 7});
	CHECK(whole_sockets({1, 8}, 4) == Cores{0, 1, 2, 3, 8, 9, 10, 11});
	CHECK(whole_sockets({2, 5}, 1) == Cores{2, 5});
}
