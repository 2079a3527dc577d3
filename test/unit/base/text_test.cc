// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/text.h"

#include <ctime>
#include <random>

#include "test/unit/catch.h"

using namespace sk8;

TEST_CASE("text: split, join, trim")
{
	using Parts = std::vector<std::string_view>;
	CHECK(split("a,,b", ',') == Parts{"a", "", "b"});
	CHECK(split("", ',').empty());
	CHECK(split(",", ',') == Parts{"", ""});
	CHECK(split("abc", ',') == Parts{"abc"});
	CHECK(join({"a", "", "b"}, ", ") == "a, , b");
	CHECK(join({}, ", ").empty());
	CHECK(trim(" \t\r\n a b \n") == "a b");
	CHECK(trim(" \n").empty());
	CHECK(strprintf("%s-%d", std::string(5000, 'x').c_str(), 7).size() == 5002);
}

TEST_CASE("text: only * and ? are special in a glob")
{
	const struct {
		const char *pattern, *text;
		bool matches;
	} cases[] = {
		{"ml-*", "ml-train", true},   {"ml-*", "ml-", true},	  {"ml-*", "ml", false},
		{"ml-*", "xml-a", false},     {"*", "", true},		  {"", "", true},
		{"", "a", false},	      {"?", "", false},		  {"a?c", "abc", true},
		{"*-ml-*", "a-ml-ml-b", true}, {"*a*b", "aab", true},	  {"*a*b", "aba", false},
		{"**", "x", true},	      {"[a-z]", "b", false},	  {"[a-z]", "[a-z]", true},
		{"\\*", "*", false},	      {"a*a*a", "aa", false},	  {"ML-*", "ml-a", false},
	};
	for (const auto &c : cases) {
		CAPTURE(c.pattern, c.text);
		CHECK(glob_match(c.pattern, c.text) == c.matches);
	}
	// Exponential matchers never end here.
	std::string pattern;
	for (int i = 0; i < 200; i++)
		pattern += "*a";
	CHECK_FALSE(glob_match(pattern + "b", std::string(20000, 'a')));
}

TEST_CASE("text: integers are whole, decimal and in range")
{
	CHECK(parse_integer("0") == 0);
	CHECK(parse_integer("-9223372036854775808") == INT64_MIN);
	CHECK(parse_integer("9223372036854775807") == INT64_MAX);
	CHECK(parse_integer("007") == 7);
	CHECK(parse_integer("-0") == 0);
	CHECK(parse_integer("5", 0, 5) == 5);
	for (const char *wrong : {"", "-", "+1", " 1", "1 ", "1.0", "0x1", "--1", "9223372036854775808",
				  "-9223372036854775809", "99999999999999999999999"})
		CHECK_FALSE(parse_integer(wrong).has_value());
	CHECK_FALSE(parse_integer("6", 0, 5).has_value());
	CHECK_FALSE(parse_integer("-1", 0, 5).has_value());
}

TEST_CASE("rfc3339: times are read with fractions and offsets")
{
	const struct {
		const char *text;
		std::int64_t seconds;
	} cases[] = {
		{"1970-01-01T00:00:00Z", 0},
		{"2026-11-21T07:00:00Z", 1795244400},
		{"2026-11-21T08:00:00+01:00", 1795244400},
		{"2026-11-21T01:30:00-05:30", 1795244400},
		{"2026-11-21T07:00:00.999999999Z", 1795244400},
		{"2026-11-21t07:00:00z", 1795244400},
		{"1969-12-31T23:59:59Z", -1},
		{"2000-02-29T00:00:00Z", 951782400},
		{"2016-12-31T23:59:60Z", 1483228799},
		{"0000-01-01T00:00:00Z", -62167219200},
		{"0001-01-01T00:00:00Z", -62135596800},
		{"9999-12-31T23:59:59Z", 253402300799},
	};
	for (const auto &c : cases) {
		INFO(c.text);
		REQUIRE(parse_rfc3339(c.text).ok());
		CHECK(*parse_rfc3339(c.text) == c.seconds);
	}
	CHECK(format_rfc3339(1795244400) == "2026-11-21T07:00:00Z");
	CHECK(format_rfc3339(-1) == "1969-12-31T23:59:59Z");
	CHECK(format_rfc3339(INT64_MAX) == "9999-12-31T23:59:59Z");
	CHECK(format_rfc3339(INT64_MIN) == "0000-01-01T00:00:00Z");
	CHECK(format_rfc3339_micro(1795244400, 1) == "2026-11-21T07:00:00.000001Z");
}

TEST_CASE("rfc3339: anything else is refused")
{
	for (const char *text :
	     {"", "2026-11-21", "2026-11-21T07:00:00", "2026-11-21 07:00:00Z", "2026-11-21T07:00Z",
	      "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z",
	      "1900-02-29T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z",
	      "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z", "2026-01-01T00:00:00.Z",
	      "2026-01-01T00:00:00.5", "2026-01-01T00:00:00+1:00", "2026-01-01T00:00:00+24:00",
	      "2026-01-01T00:00:00+0100", "2026-01-01T00:00:00ZZ", "02026-01-01T00:00:00Z",
	      "2026-01-01T-1:00:00Z", "2026/01/01T00:00:00Z"}) {
		INFO(text);
		CHECK(!parse_rfc3339(text).ok());
	}
	CHECK(parse_rfc3339("x\n").error().message == "\"x\\x0a\" is no time like 2026-11-21T07:00:00Z");
}

TEST_CASE("rfc3339: agrees with the C library on random times, and reads what it writes")
{
	std::mt19937_64 random(3);
	for (int i = 0; i < 20000; i++) {
		const auto t = static_cast<std::int64_t>(random() % 315569519999ULL) - 62167219200;
		const std::time_t time = t;
		std::tm tm{};
		gmtime_r(&time, &tm);
		const std::string expected =
			strprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1,
				  tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
		REQUIRE(format_rfc3339(t) == expected);
		REQUIRE(*parse_rfc3339(expected) == t);
	}
}

TEST_CASE("base64: round trip, and strict about padding and rest bits")
{
	std::mt19937 random(5);
	for (std::size_t n = 0; n < 100; n++) {
		std::string bytes(n, '\0');
		for (char &c : bytes)
			c = static_cast<char>(random());
		REQUIRE(*base64_decode(base64_encode(bytes), n) == bytes);
		if (n) {
			REQUIRE(!base64_decode(base64_encode(bytes), n - 1).ok());
		}
		REQUIRE(*hex_decode(hex_encode(bytes), n) == bytes);
	}
	CHECK(base64_encode("f") == "Zg==");
	CHECK(*base64_decode("Zm9v\nYmFy\r\n", 6) == "foobar");
	CHECK(base64_decode("", 0)->empty());
	for (const char *text : {"Zg=", "Zg", "Zg===", "Z", "Z===", "Zh==", "Zm9=", "Zm 9v", "Zm9v=", "=",
				 "Zg==Zg==", "Zm9v-", "====", "Zg=\x01="})
		CHECK(base64_decode(text, 100).ok() == false);
	CHECK(base64_decode("Zm9vYmFy", 5).error().message == "base64 data of more than 5 bytes");
}

TEST_CASE("hex: bounds and garbage")
{
	CHECK(*hex_decode("00fFAb", 3) == std::string("\0\xff\xab", 3));
	CHECK(!hex_decode("0", 9).ok());
	CHECK(!hex_decode("0g", 9).ok());
	CHECK(!hex_decode("0011", 1).ok());
}

TEST_CASE("utf-8: validity by the standard's table")
{
	for (const char *good : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
				 "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
		CHECK(is_valid_utf8(good));
	for (const char *bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
				"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xc2" "a"})
		CHECK_FALSE(is_valid_utf8(bad));
	CHECK(valid_utf8("a\xe2\x82z\xf0\x9f\x98\x80") == "a??z\xf0\x9f\x98\x80");
}
