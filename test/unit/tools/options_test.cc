// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/options.h"

#include "test/unit/catch.h"

using namespace sk8::tools;

namespace {

const Command &command()
{
	static const auto *c = new Command{"status", "POD", 0, 1, "shows", "Shows more.",
					   {{"--node", "NODE", "of this node"}, {"--json", nullptr, "as JSON"}},
					   nullptr};
	return *c;
}

std::string error(const std::vector<std::string> &argv, const Command &c = command())
{
	auto parsed = parse_arguments(c, argv);
	return parsed ? "" : parsed.error().message;
}

} // namespace

TEST_CASE("options: both spellings of a value, mixed with words")
{
	for (const std::vector<std::string> &argv :
	     {std::vector<std::string>{"--node", "n1", "a/b", "--json"}, {"a/b", "--json", "--node=n1"}}) {
		auto parsed = parse_arguments(command(), argv);
		REQUIRE(parsed);
		CHECK(parsed->get("--node") == "n1");
		CHECK(parsed->has("--json"));
		CHECK(parsed->words == std::vector<std::string>{"a/b"});
	}
	auto parsed = parse_arguments(command(), {"--", "--json"});
	REQUIRE(parsed);
	CHECK(parsed->words == std::vector<std::string>{"--json"});
	CHECK(parsed->get("--node", "none") == "none");
}

TEST_CASE("options: wrong usage is told in words")
{
	CHECK(error({"--nod", "x"}) == "unknown option --nod");
	CHECK(error({"--node"}) == "--node needs a value: NODE");
	CHECK(error({"--node="}) == "--node needs a value: NODE");
	CHECK(error({"--json=yes"}) == "--json takes no value");
	CHECK(error({"--json", "--json"}) == "--json is given twice");
	CHECK(error({"a", "b"}) == "what is \"b\" for?");
	Command needs = command();
	needs.min_words = 1;
	CHECK(error({}, needs) == "POD is missing");
}

TEST_CASE("options: help names all of them")
{
	const std::string help = help_of(command());
	CHECK(help.find("usage: slurm-k8s status [--node NODE] [--json] [POD]\n") == 0);
	CHECK(help.find("--node NODE        of this node\n") != help.npos);
	CHECK(help.find("Shows more.") != help.npos);
}
