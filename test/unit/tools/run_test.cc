// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/run.h"

#include <cstdlib>

#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::tools;

TEST_CASE("run: output, failure with its last line, and a program that is not there")
{
	auto text = run_program({"sh", "-c", "echo $LC_ALL; echo two"});
	REQUIRE(text);
	CHECK(*text == "C\ntwo\n");
	auto failed = run_program({"sh", "-c", "echo before >&2; echo 'slurm_load: no controller' >&2; exit 3"});
	REQUIRE_FALSE(failed.ok());
	CHECK(failed.error().message == "sh: slurm_load: no controller");
	auto none = run_program({"no-such-program-here"});
	REQUIRE_FALSE(none.ok());
	CHECK(none.error().message == "there is no command no-such-program-here here; install Slurm's commands");
}

TEST_CASE("run: words are words, no shell reads them")
{
	auto text = run_program({"printf", "%s|", "$(id); a b", "'"});
	REQUIRE(text);
	CHECK(*text == "$(id); a b|'|");
}

TEST_CASE("run: a program that hangs is killed")
{
	auto late = run_program({"sleep", "600"}, Millis(100));
	REQUIRE_FALSE(late.ok());
	CHECK(late.error().message.find("gave no answer within") != std::string::npos);
}
