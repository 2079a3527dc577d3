// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Times as Kubernetes writes them, by the Gregorian calendar.
#include "lib/base/text.h"

#include <chrono>

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
	if (year < 0 || month < 0 || day < 0 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
		return {};
	const auto date = std::chrono::year(year) / month / day;
	if (!date.ok())
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
	return std::chrono::sys_days(date).time_since_epoch().count() * 86400 + hour * 3600 + minute * 60 + second - *zone;
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
	const std::chrono::sys_seconds when{std::chrono::seconds(seconds)};
	const auto midnight = std::chrono::floor<std::chrono::days>(when);
	const std::chrono::year_month_day date(midnight);
	const std::chrono::hh_mm_ss time(when - midnight);
	return strprintf("%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
			 static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()),
			 static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
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
