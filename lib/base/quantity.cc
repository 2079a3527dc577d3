// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/quantity.h"

#include <algorithm>
#include <optional>
#include <string>

#include "lib/base/text.h"

namespace sk8 {

namespace {

constexpr std::size_t max_text = 256; // the API server's own never exceed 32

// 10^ten * 2^two
struct Scale {
	std::int64_t ten = 0;
	int two = 0;
};

std::optional<Scale> parse_suffix(std::string_view suffix)
{
	static constexpr struct {
		std::string_view name;
		Scale scale;
	} suffixes[] = {
		{"n", {-9, 0}}, {"u", {-6, 0}}, {"m", {-3, 0}}, {"", {0, 0}},	{"k", {3, 0}},
		{"M", {6, 0}},	{"G", {9, 0}},	{"T", {12, 0}}, {"P", {15, 0}}, {"E", {18, 0}},
		{"Ki", {0, 10}}, {"Mi", {0, 20}}, {"Gi", {0, 30}}, {"Ti", {0, 40}},
		{"Pi", {0, 50}}, {"Ei", {0, 60}},
	};
	for (const auto &s : suffixes)
		if (s.name == suffix)
			return s.scale;
	if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E'))
		return {};
	suffix.remove_prefix(1);
	if (suffix[0] == '+' && suffix.size() > 1 && suffix[1] != '-')
		suffix.remove_prefix(1);
	// Bounded so that sums with it cannot overflow.
	const auto ten = parse_integer(suffix, INT32_MIN, INT32_MAX);
	if (!ten)
		return {};
	return Scale{*ten, 0};
}

// The smallest integer >= digits[0..point).digits[point..) * 2^two; digits are '0'
// to '9', point may lie outside of them. Nothing if it exceeds 63 bits.
std::optional<std::int64_t> ceil_scaled(std::string digits, std::int64_t point, int two)
{
	const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
	digits.erase(0, zeros);
	point -= static_cast<std::int64_t>(zeros);
	if (digits.empty())
		return 0;
	if (point > 19)
		return {};
	// 10^-64 * 2^60 is still far below 1, so more zeros change nothing.
	if (point < 0) {
		digits.insert(0, static_cast<std::size_t>(std::min<std::int64_t>(-point, 64)), '0');
		point = 0;
	}
	const auto whole_digits = static_cast<std::size_t>(point);
	if (digits.size() < whole_digits)
		digits.append(whole_digits - digits.size(), '0');

	std::int64_t n = 0;
	for (std::size_t i = 0; i < whole_digits; i++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, digits[i] - '0', &n))
			return {};
	// Doubling the decimal fraction digit by digit: its carries are the bits of
	// n * 2^two, whatever its length.
	std::string fraction = digits.substr(whole_digits);
	for (int i = 0; i < two; i++) {
		int carry = 0;
		for (std::size_t k = fraction.size(); k-- > 0;) {
			const int d = 2 * (fraction[k] - '0') + carry;
			fraction[k] = static_cast<char>('0' + d % 10);
			carry = d / 10;
		}
		if (__builtin_mul_overflow(n, 2, &n) || __builtin_add_overflow(n, carry, &n))
			return {};
	}
	const bool rest = fraction.find_first_not_of('0') != std::string::npos;
	if (rest && __builtin_add_overflow(n, 1, &n))
		return {};
	return n;
}

Error refuse(std::string_view text, const char *why)
{
	return Error{strprintf("\"%s\" %s", one_line(text, 64).c_str(), why)};
}

// decimals: 3 for thousandths.
Result<std::int64_t> parse(std::string_view text, int decimals)
{
	constexpr const char *no_quantity =
		"is no quantity, write a number and n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, "
		"Ei or nothing, for example 250m or 4Gi";
	constexpr std::string_view digit = "0123456789";
	if (text.size() > max_text)
		return refuse(text, no_quantity);

	std::string_view rest = text;
	const bool negative = !rest.empty() && rest[0] == '-';
	if (!rest.empty() && (rest[0] == '-' || rest[0] == '+'))
		rest.remove_prefix(1);
	const std::string_view whole =
		rest.substr(0, std::min(rest.find_first_not_of(digit), rest.size()));
	rest.remove_prefix(whole.size());
	std::string_view fraction;
	if (!rest.empty() && rest[0] == '.') {
		rest.remove_prefix(1);
		fraction = rest.substr(0, std::min(rest.find_first_not_of(digit), rest.size()));
		rest.remove_prefix(fraction.size());
	}
	const std::optional<Scale> scale = parse_suffix(rest);
	if ((whole.empty() && fraction.empty()) || !scale)
		return refuse(text, no_quantity);

	std::string digits;
	digits.append(whole).append(fraction);
	const std::int64_t point = static_cast<std::int64_t>(whole.size()) + scale->ten + decimals;
	const std::optional<std::int64_t> n = ceil_scaled(std::move(digits), point, scale->two);
	if (negative && (!n || *n > 0))
		return refuse(text, "is negative, write an amount of 0 or more");
	if (!n)
		return refuse(text, "is too large");
	return *n;
}

} // namespace

Result<std::int64_t> parse_milli(std::string_view text)
{
	return parse(text, 3);
}

Result<std::int64_t> parse_whole(std::string_view text)
{
	return parse(text, 0);
}

} // namespace sk8
