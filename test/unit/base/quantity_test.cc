// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/quantity.h"

#include <optional>
#include <random>
#include <string>

#include "test/unit/catch.h"

using sk8::parse_milli;
using sk8::parse_whole;

TEST_CASE("quantity: every suffix, rounded up, exact")
{
	const struct {
		const char *text;
		std::int64_t whole, milli;
	} cases[] = {
		{"0", 0, 0},
		{"1", 1, 1000},
		{"+1", 1, 1000},
		{"-0", 0, 0},
		{"007", 7, 7000},
		{"1n", 1, 1},
		{"1u", 1, 1},
		{"1000u", 1, 1},
		{"1001u", 1, 2},
		{"250m", 1, 250},
		{"1000m", 1, 1000},
		{"1001m", 2, 1001},
		{"0.1m", 1, 1},
		{"0.0001", 1, 1},
		{"1.5", 2, 1500},
		{"1.", 1, 1000},
		{".5", 1, 500},
		{"1k", 1000, 1000000},
		{"1M", 1000000, 1000000000},
		{"1G", 1000000000, 1000000000000},
		{"1T", 1000000000000, 1000000000000000},
		{"1P", 1000000000000000, 1000000000000000000},
		{"1Ki", 1024, 1024000},
		{"1Mi", 1048576, 1048576000},
		{"4Gi", 4294967296, 4294967296000},
		{"1Ti", 1099511627776, 1099511627776000},
		{"1Pi", 1125899906842624, 1125899906842624000},
		{"0.1Ki", 103, 102400},
		{"1.5Gi", 1610612736, 1610612736000},
		{"0.3Gi", 322122548, 322122547200},
		{"0.0000000000000000001Ei", 1, 116},
		{"1e3", 1000, 1000000},
		{"1E3", 1000, 1000000},
		{"1e+3", 1000, 1000000},
		{"12E-2", 1, 120},
		{"1e-30", 1, 1},
		{"1e-2000000000", 1, 1},
		{"0e2000000000", 0, 0},
		{"1000000e-3", 1000, 1000000},
		{"0.000000000000000000000000000000001", 1, 1},
		{"9223372036854775.807", 9223372036854776, 9223372036854775807},
	};
	for (const auto &c : cases) {
		INFO(c.text);
		REQUIRE(parse_whole(c.text).ok());
		REQUIRE(parse_milli(c.text).ok());
		CHECK(*parse_whole(c.text) == c.whole);
		CHECK(*parse_milli(c.text) == c.milli);
	}
}

TEST_CASE("quantity: the largest value fits, one more is an error")
{
	CHECK(*parse_whole("9223372036854775807") == INT64_MAX);
	CHECK(*parse_whole("9223372036854775806.1") == INT64_MAX);
	CHECK(*parse_whole("9.223372036854775807E") == INT64_MAX);
	CHECK(*parse_whole("7Ei") == INT64_C(7) << 60);
	for (const char *text : {"9223372036854775808", "9223372036854775807.1", "10E", "8Ei", "1e19",
				 "1e400", "1e2000000000", "7.9999999999999999999Ei",
				 "99999999999999999999999999999999999999"}) {
		INFO(text);
		REQUIRE(!parse_whole(text).ok());
		CHECK(parse_whole(text).error().message ==
		      "\"" + std::string(text) + "\" is too large");
	}
	CHECK(!parse_milli("9223372036854775807").ok());
	// Never ends if two billion zeros are written out each time.
	for (int i = 0; i < 1000; i++)
		CHECK(!parse_whole("1e2000000000").ok());
	CHECK(!parse_milli("9223372036854775.808").ok());
}

TEST_CASE("quantity: negative amounts and garbage are refused")
{
	for (const char *text : {"-1", "-1m", "-0.0000000001", "-1e-30", "-8Ei"}) {
		INFO(text);
		REQUIRE(!parse_whole(text).ok());
		CHECK(parse_whole(text).error().message ==
		      "\"" + std::string(text) + "\" is negative, write an amount of 0 or more");
	}
	for (const char *text :
	     {"", " ", "1 ", " 1", "+", "-", ".", "m", "Ki", "e3", "1e", "1E+", "1e+-3", "1e--3", "1e3k",
	      "1K", "1ki", "1KI", "1mi", "1B", "1GB", "1.2.3", "1,5", "0x10", "1__0", "++1", "1e1.5",
	      "1e99999999999999999999", "nan", "inf", "\xd9\xa1", "1\n", "4Gi\x1b"}) {
		INFO(text);
		REQUIRE(!parse_whole(text).ok());
		CHECK(parse_whole(text).error().message.find("is no quantity") != std::string::npos);
	}
	CHECK(parse_whole("x\ny").error().message.substr(0, 9) == "\"x\\x0ay\" ");
	CHECK(!parse_whole(std::string_view("1\0", 2)).ok());
	CHECK(!parse_whole(std::string(257, '0')).ok());
	CHECK(*parse_whole(std::string(255, '0') + "1") == 1);
}

TEST_CASE("quantity: agrees with 128-bit arithmetic on random numbers")
{
	const struct {
		const char *suffix;
		int ten, two;
	} scales[] = {{"n", -9, 0}, {"u", -6, 0}, {"m", -3, 0}, {"", 0, 0},   {"k", 3, 0},
		      {"M", 6, 0},  {"G", 9, 0},  {"e2", 2, 0}, {"E-4", -4, 0}, {"Ki", 0, 10},
		      {"Mi", 0, 20}, {"Gi", 0, 30}, {"Ti", 0, 40}};
	std::mt19937_64 random(20261121);
	for (int i = 0; i < 100000; i++) {
		const auto &scale = scales[random() % std::size(scales)];
		const int digits = static_cast<int>(random() % 13), decimals = static_cast<int>(random() % 7);
		std::int64_t limit = 1;
		for (int k = 0; k < digits; k++)
			limit *= 10;
		const auto mantissa = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
		// mantissa with a point before its last `decimals` digits
		std::string text = std::to_string(mantissa);
		if (decimals) {
			while (text.size() <= static_cast<std::size_t>(decimals))
				text.insert(0, 1, '0');
			text.insert(text.size() - static_cast<std::size_t>(decimals), 1, '.');
		}
		text += scale.suffix;
		for (const int thousandths : {0, 3}) {
			__int128 numerator = static_cast<__int128>(mantissa) << scale.two;
			__int128 denominator = 1;
			const int ten = scale.ten - decimals + thousandths;
			for (int k = 0; k < ten; k++)
				numerator *= 10;
			for (int k = 0; k > ten; k--)
				denominator *= 10;
			const __int128 expected = (numerator + denominator - 1) / denominator;
			const auto got = thousandths ? parse_milli(text) : parse_whole(text);
			if (got.ok() ? *got != expected : expected <= INT64_MAX)
				FAIL(text << " thousandths " << thousandths);
		}
	}
}
