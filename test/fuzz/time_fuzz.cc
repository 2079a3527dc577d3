// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// RFC 3339 against the C library's calendar: what is read means what timegm() says,
// and what is written is read as the same second.
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "lib/base/text.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;

namespace {

constexpr std::int64_t year_0 = -62167219200, end_of_9999 = 253402300799;

void check_read(const std::string &text)
{
	const Result<std::int64_t> got = parse_rfc3339(text);
	if (!got)
		return expect_sentence(got.error().message, 256);
	std::tm t{};
	char sign = 'Z';
	int hours = 0, minutes = 0;
	expect(std::sscanf(text.c_str(), "%4d-%2d-%2d%*1[Tt]%2d:%2d:%2d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour,
			   &t.tm_min, &t.tm_sec) == 6,
	       "a time has six numbers", text);
	const std::size_t zone = text.find_first_of("Zz+-", 19);
	expect(zone != text.npos, "a time has a zone", text);
	if (text[zone] == '+' || text[zone] == '-')
		std::sscanf(text.c_str() + zone, "%c%2d:%2d", &sign, &hours, &minutes);
	t.tm_year -= 1900;
	t.tm_mon -= 1;
	t.tm_sec = std::min(t.tm_sec, 59);
	const std::tm before = t;
	const std::int64_t local = timegm(&t);
	expect(t.tm_mday == before.tm_mday && t.tm_mon == before.tm_mon && t.tm_hour == before.tm_hour,
	       "there is such a day and hour", text);
	expect(*got == local - (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60), "a time is timegm()'s", text);
}

void check_written(std::int64_t seconds, std::int32_t microseconds)
{
	const std::int64_t wanted = std::clamp(seconds, year_0, end_of_9999);
	const std::string text = format_rfc3339(seconds), fine = format_rfc3339_micro(seconds, microseconds);
	expect(parse_rfc3339(text).value_or(wanted + 1) == wanted, "what is written is read back", text);
	expect(parse_rfc3339(fine).value_or(wanted + 1) == wanted, "so it is with microseconds", fine);
	const std::time_t t = wanted;
	std::tm broken{};
	gmtime_r(&t, &broken);
	char calendar[64];
	std::snprintf(calendar, sizeof(calendar), "%04d-%02d-%02dT%02d:%02d:%02dZ", broken.tm_year + 1900, broken.tm_mon + 1,
		      broken.tm_mday, broken.tm_hour, broken.tm_min, broken.tm_sec);
	expect(text == calendar, "what is written is gmtime()'s", text);
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	Input input(data, size);
	check_read(std::string(input.rest()));
	const std::int64_t seconds = input.number();
	const auto micro = static_cast<std::int32_t>(static_cast<std::uint64_t>(input.number()) % 1'000'000);
	check_written(seconds, micro);
	check_written(seconds % (2 * end_of_9999), micro);
	return 0;
}
