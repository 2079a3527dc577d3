// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Times as Kubernetes writes them, by the Gregorian calendar.
#include "lib/base/text.h"

#include <algorithm>

namespace sk8 {

namespace {

// Exactly the digits text[at, at + count) as a number, -1 if they are not.
int digits(std::string_view text, std::size_t at, std::size_t count)
{
	if (at + count > text.size())
		return -1;
	int n = 0;
	for (const char c : text.substr(at, count)) {
		if (c < '0' || c > '9')
			return -1;
		n = 10 * n + (c - '0');
	}
	return n;
}

// Days between 1970-01-01 and a date of the Gregorian calendar, and back. An era is
// 400 years, a year begins in March so that the leap day is its last.
std::int64_t days_from_date(std::int64_t year, int month, int day)
{
	year -= month <= 2;
	const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
	const std::int64_t of_era = year - era * 400;
	const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void date_from_days(std::int64_t days, std::int64_t &year, int &month, int &day)
{
	days += 719468;
	const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
	const std::int64_t of_era = days - era * 146097;
	const std::int64_t y =
		(of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	const std::int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
	const auto m = static_cast<int>((5 * of_year + 2) / 153);
	day = static_cast<int>(of_year - (153 * m + 2) / 5 + 1);
	month = m < 10 ? m + 3 : m - 9;
	year = y + era * 400 + (month <= 2);
}

int days_of_month(int year, int month)
{
	static constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return days[month - 1] + (month == 2 && leap);
}

// "Z" or "+01:00" to seconds east of UTC.
std::optional<int> zone_seconds(std::string_view zone)
{
	if (zone == "Z" || zone == "z")
		return 0;
	if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':')
		return {};
	const int hours = digits(zone, 1, 2), minutes = digits(zone, 4, 2);
	if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
		return {};
	return (zone[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

std::optional<std::int64_t> rfc3339_seconds(std::string_view text)
{
	const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
	const int hour = digits(text, 11, 2), minute = digits(text, 14, 2);
	int second = digits(text, 17, 2);
	if (year < 0 || month < 1 || month > 12 || day < 1 || day > days_of_month(year, month) ||
	    hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
		return {};
	if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') ||
	    text[13] != ':' || text[16] != ':')
		return {};
	std::string_view rest = text.substr(19);
	if (!rest.empty() && rest[0] == '.') {
		const std::size_t end = rest.find_first_not_of("0123456789", 1);
		if (end == 1 || end == std::string_view::npos)
			return {};
		rest.remove_prefix(end);
	}
	const std::optional<int> zone = zone_seconds(rest);
	if (!zone)
		return {};
	if (second == 60)
		second = 59;
	return days_from_date(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - *zone;
}

} // namespace

Result<std::int64_t> parse_rfc3339(std::string_view text)
{
	if (const std::optional<std::int64_t> seconds = rfc3339_seconds(text))
		return *seconds;
	return Error{strprintf("\"%s\" is no time like 2026-11-21T07:00:00Z",
			       one_line(text, 64).c_str())};
}

namespace {

// Without the zone.
std::string date_and_time(std::int64_t seconds)
{
	constexpr std::int64_t first = -62167219200, last = 253402300799; // years 0 and 9999
	seconds = seconds < first ? first : seconds > last ? last : seconds;
	const std::int64_t days = (seconds >= 0 ? seconds : seconds - 86399) / 86400;
	const auto of_day = static_cast<int>(seconds - days * 86400);
	std::int64_t year = 0;
	int month = 0, day = 0;
	date_from_days(days, year, month, day);
	return strprintf("%04d-%02d-%02dT%02d:%02d:%02d", static_cast<int>(year), month, day,
			 of_day / 3600, of_day / 60 % 60, of_day % 60);
}

} // namespace

std::string format_rfc3339(std::int64_t seconds)
{
	return date_and_time(seconds) + "Z";
}

std::string format_rfc3339_micro(std::int64_t seconds, std::int32_t microseconds)
{
	return date_and_time(seconds) + strprintf(".%06dZ", static_cast<int>(microseconds));
}

} // namespace sk8
