// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/log.h"

#include <cerrno>
#include <stdexcept>
#include <vector>

#include "lib/base/guard.h"
#include "lib/base/text.h"
#include "test/unit/catch.h"

using sk8::LogLevel;

namespace {

std::vector<std::string> lines;

void to_lines(LogLevel level, const char *text)
{
	lines.push_back(std::to_string(static_cast<int>(level)) + " " + text);
	errno = EBADF; // as a sink that writes may do
}

// The default sink comes back whatever the test does.
struct Sink {
	explicit Sink(LogLevel max)
	{
		lines.clear();
		sk8::set_log_sink(to_lines, max);
	}
	~Sink() { sk8::set_log_sink(nullptr, LogLevel::info); }
};

std::string logged(const std::string &argument)
{
	Sink sink(LogLevel::info);
	log_info("%s", argument.c_str());
	REQUIRE(lines.size() == 1);
	return lines[0].substr(2);
}

} // namespace

TEST_CASE("log: a hostile name cannot forge a line")
{
	CHECK(logged("pod\n[2026] error: all is lost") == "pod\\x0a[2026] error: all is lost");
	CHECK(logged("\x1b[2Jx") == "\\x1b[2Jx");
	CHECK(logged("a\x7f" "b\r\t") == "a\\x7fb\\x0d\\x09");
	CHECK(logged("\xc2\x9b" "31m") == "\\xc2\\x9b31m"); // U+009B, a one-character escape
	CHECK(logged("\xc2\x85") == "\\xc2\\x85");         // U+0085, a line end for some
	CHECK(logged("\xe2\x80\xa8x") == "\\xe2\\x80\\xa8x"); // U+2028, a line end too
	CHECK(logged("\xe2\x80\xaegnp") == "\\xe2\\x80\\xaegnp"); // U+202E, turns the direction
	CHECK(logged("a\xe2\x80\x8b" "b") == "a\\xe2\\x80\\x8bb"); // U+200B, cannot be seen
	CHECK(logged("\xf3\xa0\x81\x81") == "\\xf3\\xa0\\x81\\x81"); // U+E0041, so can tags
	CHECK(logged("\xe2\x82\xac \xf0\x9f\x98\x80") == "\xe2\x82\xac \xf0\x9f\x98\x80");
	CHECK(logged("bad \xff utf-8") == "bad \\xff utf-8");
	CHECK(logged("gr\xc3\xbc\xc3\x9f dich") == "gr\xc3\xbc\xc3\x9f dich");
	CHECK(logged("100%n%s") == "100%n%s");
	CHECK(logged("one final newline\n") == "one final newline");
}

TEST_CASE("log: a long line is cut at 2 KiB and says so")
{
	const std::string s = logged(std::string(10000, 'x'));
	CHECK(s.size() == 2047);
	CHECK(s.substr(2040) == "xxxx...");
	const std::string escaped = logged(std::string(2000, '\n'));
	CHECK(escaped.size() <= 2047);
	CHECK(escaped.substr(escaped.size() - 7) == "\\x0a...");
	CHECK(logged(std::string(2047, 'y')) == std::string(2047, 'y'));
}

TEST_CASE("log: lines above the level are dropped")
{
	Sink sink(LogLevel::warning);
	CHECK(sk8::log_enabled(LogLevel::error));
	CHECK(sk8::log_enabled(LogLevel::warning));
	CHECK_FALSE(sk8::log_enabled(LogLevel::info));
	log_error("a");
	log_warning("b");
	log_info("c");
	log_verbose("d");
	bool evaluated = false;
	log_debug("%d", (evaluated = true, 1));
	CHECK(lines == std::vector<std::string>{"0 a", "1 b"});
	CHECK_FALSE(evaluated);
}

TEST_CASE("log: errno survives")
{
	Sink sink(LogLevel::info);
	errno = ENOTDIR;
	log_info("%m");
	CHECK(errno == ENOTDIR);
	CHECK(lines == std::vector<std::string>{"2 Not a directory"});
}

TEST_CASE("guard: whatever is thrown is logged and becomes on_error")
{
	Sink sink(LogLevel::info);
	CHECK(sk8::guard("w", -1, [] { return 5; }) == 5);
	CHECK(sk8::guard("w", -1, []() -> int { throw std::runtime_error("odd\n"); }) == -1);
	CHECK(sk8::guard("w", -1, []() -> int { throw std::bad_alloc(); }) == -1);
	CHECK(sk8::guard("w", -1, []() -> int { throw "text"; }) == -1);
	sk8::guard("v", [] { throw 1; });
	CHECK(lines == std::vector<std::string>{"0 w: odd", "0 w: out of memory",
						"0 w: unknown exception",
						"0 v: unknown exception"});
}

TEST_CASE("one_line: cuts at a whole character and never exceeds the size")
{
	CHECK(sk8::one_line("short", 8) == "short");
	CHECK(sk8::one_line("12345678", 8) == "12345678");
	CHECK(sk8::one_line("123456789", 8) == "12345...");
	CHECK(sk8::one_line("1234\xe2\x82\xac" "6789", 8) == "1234...");
	CHECK(sk8::one_line("123\n\n\n", 8) == "123...");
	CHECK(sk8::one_line("x\n") == "x\\x0a");
	CHECK(sk8::one_line("", 8).empty());
	CHECK(sk8::one_line(std::string_view("a\0b", 3)) == "a\\x00b");
}

namespace {

LogLevel level_now = LogLevel::info;

} // namespace

TEST_CASE("log: a level that is asked for changes at once, and a fixed one takes its place")
{
	lines.clear();
	sk8::set_log_sink(to_lines, [] { return level_now; });
	log_debug("no");
	level_now = LogLevel::debug;
	log_debug("yes");
	level_now = LogLevel::error;
	log_info("no");
	sk8::set_log_sink(to_lines, LogLevel::info);
	log_info("fixed");
	sk8::set_log_sink(nullptr, LogLevel::info);
	CHECK(lines == std::vector<std::string>{"4 yes", "2 fixed"});
}
