// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The parts of lib/slurm that call nothing of Slurm.
#include <cerrno>
#include <cstring>
#include <slurm/slurm_errno.h>
#include <string>

#include "lib/slurm/error_table.h"
#include "lib/slurm/tres.h"
#include "test/unit/catch.h"

namespace {

std::string tres(const char *prefix, const char *text, std::size_t size = 100)
{
	std::string to(size, 'x');
	return sk8_tres_text(to.data(), size, prefix, text) ? std::string(to.c_str()) : "does not fit";
}

std::string one_line(const char *text, std::size_t size = 100)
{
	std::string to(size, 'x');
	sk8_one_line(to.data(), size, text);
	return to.c_str();
}

} // namespace

TEST_CASE("GRES are written as the release wants them")
{
	CHECK(tres("gres:", "gpu:2,foo:1") == "gres:gpu:2,gres:foo:1");
	CHECK(tres("gres/", "gpu:a100:2") == "gres/gpu:a100:2");
	CHECK(tres("gres/", "gres:gpu:1,gres/foo:2") == "gres/gpu:1,gres/foo:2");
	CHECK(tres("gres:", "") == "");
	CHECK(tres("gres:", ",gpu:1,") == "gres:gpu:1");
}

TEST_CASE("GRES that do not fit are refused, not cut")
{
	CHECK(tres("gres:", "gpu:1", 11) == "gres:gpu:1");
	CHECK(tres("gres:", "gpu:1", 10) == "does not fit");
	CHECK(tres("gres:", "gpu:1,foo:1", 15) == "does not fit");
}

TEST_CASE("errors that pass by themselves are worth another try, wrong requests are not")
{
	for (int rc : {EAGAIN, static_cast<int>(ESLURM_ACCOUNTING_POLICY), static_cast<int>(ESLURM_NODES_BUSY),
		       static_cast<int>(ESLURM_PARTITION_DOWN), static_cast<int>(ESLURM_DB_CONNECTION)})
		CHECK_FALSE(sk8_error_is_fatal(rc));
	for (int rc : {ESLURM_INVALID_ACCOUNT, ESLURM_INVALID_PARTITION_NAME, ESLURM_INVALID_QOS,
		       ESLURM_INVALID_FEATURE, ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, ESLURM_INVALID_GRES})
		CHECK(sk8_error_is_fatal(rc));
	// what a site's plugin may answer
	CHECK_FALSE(sk8_error_is_fatal(-1));
	CHECK_FALSE(sk8_error_is_fatal(9001));
}

TEST_CASE("our words stand in only where Slurm's say nothing")
{
	CHECK(std::string(sk8_error_text(EAGAIN)) == "Slurm has as many jobs as MaxJobCount allows");
	CHECK(sk8_error_text(ESLURM_INVALID_QOS) == nullptr);
	CHECK(sk8_error_text(9001) == nullptr);
}

TEST_CASE("a plugin's message becomes one line without a full stop")
{
	CHECK(one_line("lua: no\n\n  such\tthing.\n") == "lua: no such thing");
	CHECK(one_line("\x1b[31mred") == "[31mred");
	CHECK(one_line("") == "");
	CHECK(one_line(" . ") == "");
}

TEST_CASE("a long message is cut between characters")
{
	CHECK(one_line("abcdef", 4) == "abc");
	CHECK(one_line("ab\xc3\xa4" "cd", 5) == "ab\xc3\xa4");
	CHECK(one_line("ab\xc3\xa4" "cd", 4) == "ab");
	CHECK(one_line("x", 1) == "");
}
