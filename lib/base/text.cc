// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/text.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace sk8 {

std::string strprintf(const char *format, ...)
{
	std::va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	const int n = std::vsnprintf(nullptr, 0, format, args);
	va_end(args);
	std::string s(n > 0 ? static_cast<std::size_t>(n) : 0, '\0');
	if (n > 0)
		std::vsnprintf(s.data(), s.size() + 1, format, again);
	va_end(again);
	return s;
}

std::vector<std::string_view> split(std::string_view text, char separator)
{
	std::vector<std::string_view> parts;
	if (text.empty())
		return parts;
	for (;;) {
		const std::size_t at = text.find(separator);
		parts.push_back(text.substr(0, at));
		if (at == std::string_view::npos)
			return parts;
		text.remove_prefix(at + 1);
	}
}

std::string join(const std::vector<std::string> &parts, std::string_view separator)
{
	std::string s;
	for (const std::string &part : parts) {
		if (&part != &parts.front())
			s += separator;
		s += part;
	}
	return s;
}

std::string_view trim(std::string_view text)
{
	constexpr std::string_view space = " \t\r\n";
	const std::size_t first = text.find_first_not_of(space);
	if (first == std::string_view::npos)
		return {};
	return text.substr(first, text.find_last_not_of(space) - first + 1);
}

bool glob_match(std::string_view pattern, std::string_view text)
{
	// Only the last * needs to be retried: an earlier one cannot help more.
	std::size_t p = 0, t = 0, star = std::string_view::npos, star_text = 0;
	while (t < text.size()) {
		if (p < pattern.size() && pattern[p] == '*') {
			star = p++;
			star_text = t;
		} else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
			p++;
			t++;
		} else if (star != std::string_view::npos) {
			p = star + 1;
			t = ++star_text;
		} else {
			return false;
		}
	}
	while (p < pattern.size() && pattern[p] == '*')
		p++;
	return p == pattern.size();
}

std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t min, std::int64_t max)
{
	const bool negative = !text.empty() && text.front() == '-';
	if (negative)
		text.remove_prefix(1);
	if (text.empty())
		return {};
	// Counted downwards: INT64_MIN has no positive counterpart.
	std::int64_t n = 0;
	for (char c : text) {
		if (c < '0' || c > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_sub_overflow(n, c - '0', &n))
			return {};
	}
	if (!negative && __builtin_sub_overflow(std::int64_t{0}, n, &n))
		return {};
	if (n < min || n > max)
		return {};
	return n;
}

namespace {

// Bytes of the valid UTF-8 character at the start of text, 0 if there is none.
std::size_t utf8_length(std::string_view text)
{
	const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
	if (byte(0) < 0x80)
		return 1;
	// Lead byte, and what its second byte may be (no overlong form, no surrogate,
	// nothing above U+10FFFF): Unicode standard, table 3-7.
	static constexpr struct {
		unsigned char lead_first, lead_last, length, second_first, second_last;
	} forms[] = {
		{0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
		{0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f},
		{0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf},
		{0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
	};
	for (const auto &form : forms) {
		if (byte(0) < form.lead_first || byte(0) > form.lead_last)
			continue;
		if (text.size() < form.length || byte(1) < form.second_first ||
		    byte(1) > form.second_last)
			return 0;
		for (std::size_t i = 2; i < form.length; i++)
			if ((byte(i) & 0xc0) != 0x80)
				return 0;
		return form.length;
	}
	return 0;
}

} // namespace

bool is_valid_utf8(std::string_view text)
{
	while (!text.empty()) {
		const std::size_t n = utf8_length(text);
		if (!n)
			return false;
		text.remove_prefix(n);
	}
	return true;
}

std::string valid_utf8(std::string_view text)
{
	std::string s;
	s.reserve(text.size());
	while (!text.empty()) {
		const std::size_t n = utf8_length(text);
		if (n)
			s += text.substr(0, n);
		else
			s += '?';
		text.remove_prefix(n ? n : 1);
	}
	return s;
}

namespace {

// Bytes of the character at the start of text, 1 if it is invalid; misleads: it is
// invalid, a control character, or makes a line look like another one.
std::size_t look_at(std::string_view text, bool &misleads)
{
	// Unicode: line ends, marks of direction, and what has no shape at all. Joiners
	// (U+200C, U+200D) are letters' shapes in some scripts and stay.
	static constexpr struct {
		std::uint32_t first, last;
	} misleading[] = {
		{0, 0x1f},	  {0x7f, 0x9f},	    {0x61c, 0x61c},   {0x200b, 0x200b}, {0x200e, 0x200f},
		{0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};
	const std::size_t n = utf8_length(text);
	misleads = !n;
	if (!n)
		return 1;
	const auto first = static_cast<unsigned char>(text[0]);
	std::uint32_t code = n == 1 ? first : first & (0x7fu >> n);
	for (std::size_t i = 1; i < n; i++)
		code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
	for (const auto &range : misleading)
		misleads |= code >= range.first && code <= range.last;
	return n;
}

} // namespace

bool is_printable(std::string_view text)
{
	bool misleads = false;
	while (!text.empty() && !misleads)
		text.remove_prefix(look_at(text, misleads));
	return !misleads;
}

std::size_t escape_line(std::string_view text, bool was_cut, char *out, std::size_t out_size)
{
	constexpr char hex[] = "0123456789abcdef";
	constexpr std::string_view dots = "...";
	std::size_t used = 0, fits_dots = 0; // fits_dots: end of the last piece before room for dots
	while (!text.empty()) {
		// A piece is what must stay together: one character or its escape.
		bool escape = false;
		const std::size_t n = look_at(text, escape);
		char piece[16];
		std::size_t length = 0;
		for (std::size_t i = 0; i < n; i++) {
			const auto b = static_cast<unsigned char>(text[i]);
			if (escape) {
				piece[length++] = '\\';
				piece[length++] = 'x';
				piece[length++] = hex[b >> 4];
				piece[length++] = hex[b & 15];
			} else {
				piece[length++] = text[i];
			}
		}
		if (used + length + 1 > out_size) {
			was_cut = true;
			break;
		}
		std::memcpy(out + used, piece, length);
		used += length;
		if (used + dots.size() + 1 <= out_size)
			fits_dots = used;
		text.remove_prefix(n);
	}
	if (was_cut) {
		used = fits_dots;
		std::memcpy(out + used, dots.data(), dots.size());
		used += dots.size();
	}
	out[used] = '\0';
	return used;
}

std::string without_secret(std::string text, std::string_view secret)
{
	constexpr std::string_view instead = "[secret]";
	if (secret.size() < 6)
		return text;
	for (std::size_t at = text.find(secret); at != text.npos; at = text.find(secret, at + instead.size()))
		text.replace(at, secret.size(), instead);
	return text;
}

std::string one_line(std::string_view text, std::size_t max_bytes)
{
	std::string s(max_bytes + 1, '\0');
	s.resize(escape_line(text, false, s.data(), s.size()));
	return s;
}

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

namespace {

constexpr std::string_view base64_digits =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

} // namespace

Result<std::string> base64_decode(std::string_view text, std::size_t max_bytes)
{
	const Error wrong{"not valid base64"};
	if (text.size() / 2 > max_bytes + 64) // even with every second byte a line end
		return Error{strprintf("base64 data of more than %zu bytes", max_bytes)};
	std::string bytes;
	std::uint32_t bits = 0;
	int have = 0; // bits in `bits`
	std::size_t digits_seen = 0, padding = 0;
	for (const char c : text) {
		if (c == '\r' || c == '\n')
			continue;
		if (c == '=') {
			padding++;
			continue;
		}
		const std::size_t digit = base64_digits.find(c);
		if (digit == std::string_view::npos || padding)
			return wrong;
		digits_seen++;
		bits = (bits << 6 | static_cast<std::uint32_t>(digit)) & 0xffffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			bytes += static_cast<char>(bits >> have & 0xff);
			if (bytes.size() > max_bytes)
				return Error{strprintf("base64 data of more than %zu bytes", max_bytes)};
		}
	}
	const std::size_t last = digits_seen % 4; // digits in the last group
	if (last == 1 || padding != (last ? 4 - last : 0) || (bits & ((1u << have) - 1)))
		return wrong;
	return bytes;
}

std::string base64_encode(std::string_view bytes)
{
	std::string text;
	for (std::size_t i = 0; i < bytes.size(); i += 3) {
		std::uint32_t group = 0;
		for (std::size_t k = 0; k < 3; k++)
			group = group << 8 |
				(i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
		for (std::size_t k = 0; k < 4; k++)
			text += i + k <= bytes.size() ? base64_digits[group >> (18 - 6 * k) & 63] : '=';
	}
	return text;
}

Result<std::string> hex_decode(std::string_view text, std::size_t max_bytes)
{
	if (text.size() % 2)
		return Error{"hexadecimal data with an odd number of digits"};
	if (text.size() / 2 > max_bytes)
		return Error{strprintf("hexadecimal data of more than %zu bytes", max_bytes)};
	const auto value = [](char c) {
		return c >= '0' && c <= '9'   ? c - '0'
		       : c >= 'a' && c <= 'f' ? c - 'a' + 10
		       : c >= 'A' && c <= 'F' ? c - 'A' + 10
					      : -1;
	};
	std::string bytes;
	for (std::size_t i = 0; i < text.size(); i += 2) {
		const int high = value(text[i]), low = value(text[i + 1]);
		if (high < 0 || low < 0)
			return Error{"not valid hexadecimal data"};
		bytes += static_cast<char>(high << 4 | low);
	}
	return bytes;
}

std::string hex_encode(std::string_view bytes)
{
	constexpr char hex[] = "0123456789abcdef";
	std::string text;
	for (const char c : bytes) {
		text += hex[static_cast<unsigned char>(c) >> 4];
		text += hex[static_cast<unsigned char>(c) & 15];
	}
	return text;
}

} // namespace sk8
