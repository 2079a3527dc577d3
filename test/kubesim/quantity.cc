// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/quantity.h"

#include <cstdlib>

namespace kubesim {
namespace {

struct Suffix {
	const char *text;
	Quantity::Format format;
	int power; // of 10 or of 1024
};
const Suffix suffixes[] = {
	{"n", Quantity::decimal, -9}, {"u", Quantity::decimal, -6}, {"m", Quantity::decimal, -3},
	{"", Quantity::decimal, 0},   {"k", Quantity::decimal, 3},  {"M", Quantity::decimal, 6},
	{"G", Quantity::decimal, 9},  {"T", Quantity::decimal, 12}, {"P", Quantity::decimal, 15},
	{"E", Quantity::decimal, 18}, {"Ki", Quantity::binary, 1},  {"Mi", Quantity::binary, 2},
	{"Gi", Quantity::binary, 3},  {"Ti", Quantity::binary, 4},  {"Pi", Quantity::binary, 5},
	{"Ei", Quantity::binary, 6},
};
constexpr __int128 giga = 1000000000;

std::string to_text(__int128 n)
{
	if (n < 0)
		return "-" + to_text(-n);
	std::string digits;
	do
		digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(n % 10)));
	while (n /= 10);
	return digits;
}

__int128 divide_up(__int128 n, std::int64_t by)
{
	__int128 q = n / by;
	return q * by < n ? q + 1 : q;
}

bool scale(__int128 &nano, int digits_after_point, const Suffix &s)
{
	const __int128 limit = (static_cast<__int128>(1) << 63) * giga;
	int tens = s.format == Quantity::binary ? 9 - digits_after_point : 9 - digits_after_point + s.power;
	for (int i = 0; s.format == Quantity::binary && i < s.power; i++)
		if ((nano *= 1024) > limit || nano < -limit)
			return false;
	for (; tens > 0; tens--)
		if ((nano *= 10) > limit || nano < -limit)
			return false;
	for (; tens < 0; tens++) {
		bool up = nano % 10 > 0;
		nano = nano / 10 + (up ? 1 : 0);
	}
	return true;
}

} // namespace

std::int64_t Quantity::milli() const
{
	return static_cast<std::int64_t>(divide_up(nano, 1000000));
}

std::int64_t Quantity::whole() const
{
	return static_cast<std::int64_t>(divide_up(nano, 1000000000));
}

std::string Quantity::canonical() const
{
	if (nano == 0)
		return "0";
	const bool whole_units = nano % giga == 0;
	const __int128 units = nano / giga;
	if (format == binary && whole_units && (units >= 1024 || units <= -1024)) {
		static const char *const names[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
		__int128 n = units;
		int i = 0;
		for (; i < 6 && n % 1024 == 0; i++)
			n /= 1024;
		return to_text(n) + names[i];
	}
	static const char *const names[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
	__int128 n = nano;
	int i = 0;
	for (; i < 9 && n % 1000 == 0; i++)
		n /= 1000;
	if (format == exponent)
		return to_text(n) + (i == 3 ? "" : "e" + std::to_string((i - 3) * 3));
	return to_text(n) + names[i];
}

std::optional<Quantity> parse_quantity(const std::string &text)
{
	Quantity q;
	std::size_t at = 0;
	bool negative = false;
	if (at < text.size() && (text[at] == '+' || text[at] == '-'))
		negative = text[at++] == '-';
	int digits = 0, after_point = 0;
	bool point = false;
	for (; at < text.size() && (isdigit(static_cast<unsigned char>(text[at])) || text[at] == '.'); at++) {
		if (text[at] == '.') {
			if (point)
				return std::nullopt;
			point = true;
			continue;
		}
		if (++digits > 24)
			return std::nullopt;
		q.nano = q.nano * 10 + (text[at] - '0');
		after_point += point;
	}
	if (!digits)
		return std::nullopt;
	if (negative)
		q.nano = -q.nano;
	const std::string suffix = text.substr(at);
	for (const auto &s : suffixes)
		if (suffix == s.text) {
			q.format = s.format;
			return scale(q.nano, after_point, s) ? std::optional(q) : std::nullopt;
		}
	if (suffix.size() > 1 && (suffix[0] == 'e' || suffix[0] == 'E')) {
		char *end;
		long power = std::strtol(suffix.c_str() + 1, &end, 10);
		if (*end || power > 18 || power < -18)
			return std::nullopt;
		q.format = Quantity::exponent;
		Suffix s{"", Quantity::decimal, static_cast<int>(power)};
		return scale(q.nano, after_point, s) ? std::optional(q) : std::nullopt;
	}
	return std::nullopt;
}

std::optional<Quantity> parse_quantity(const J &value)
{
	return parse_quantity(value.is_number() ? value.dump() : value.str());
}

bool canonicalize(J resource_list)
{
	if (!resource_list.is_object())
		return true;
	std::vector<std::pair<std::string, std::string>> changed;
	bool good = true;
	resource_list.each_member([&](const std::string &key, const J &value) {
		auto q = parse_quantity(value);
		if (!q) {
			good = false;
			return;
		}
		q->nano = divide_up(q->nano, 1000000) * 1000000; // nothing below a thousandth is kept
		changed.emplace_back(key, q->canonical());
	});
	for (auto &[key, text] : changed)
		resource_list.set(key, text);
	return good;
}

} // namespace kubesim
