// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Quantities against exact arithmetic on decimal digits of any number: slow, plain,
// and in another order than the parser's (all doublings first, then one division by
// a power of ten, which only moves the point).
#include <algorithm>
#include <optional>

#include "lib/base/quantity.h"
#include "lib/base/text.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;

namespace {

struct Number {
	bool negative = false;
	std::string digits;     // at least one, of the whole and the fraction
	std::int64_t ten = 0;   // the value is digits * 10^ten * 2^two
	int two = 0;
};

std::string take_digits(std::string_view &text)
{
	const std::size_t n = std::min(text.find_first_not_of("0123456789"), text.size());
	const std::string out(text.substr(0, n));
	text.remove_prefix(n);
	return out;
}

bool read_suffix(std::string_view text, Number &n)
{
	static constexpr std::string_view decimal[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
	static constexpr std::string_view binary[] = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	for (int i = 0; i < 10; i++)
		if (text == decimal[i]) {
			n.ten += 3 * (i - 3);
			return true;
		}
	for (int i = 0; i < 6; i++)
		if (text == binary[i]) {
			n.two = 10 * (i + 1);
			return true;
		}
	if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E'))
		return false;
	text.remove_prefix(1);
	const bool minus = text[0] == '-';
	if (text[0] == '-' || text[0] == '+')
		text.remove_prefix(1);
	const std::string digits = take_digits(text);
	if (digits.empty() || !text.empty())
		return false;
	const auto exponent = parse_integer((minus ? "-" : "") + digits, INT32_MIN, INT32_MAX);
	n.ten += exponent.value_or(0);
	return exponent.has_value();
}

std::optional<Number> read(std::string_view text)
{
	Number n;
	n.negative = text.starts_with('-');
	if (text.starts_with('-') || text.starts_with('+'))
		text.remove_prefix(1);
	n.digits = take_digits(text);
	if (text.starts_with('.')) {
		text.remove_prefix(1);
		const std::string fraction = take_digits(text);
		n.digits += fraction;
		n.ten -= static_cast<std::int64_t>(fraction.size());
	}
	if (n.digits.empty() || !read_suffix(text, n))
		return std::nullopt;
	return n;
}

std::string doubled(const std::string &digits)
{
	std::string out;
	int carry = 0;
	for (auto d = digits.rbegin(); d != digits.rend(); ++d) {
		const int twice = 2 * (*d - '0') + carry;
		out += static_cast<char>('0' + twice % 10);
		carry = twice / 10;
	}
	if (carry)
		out += '1';
	std::reverse(out.begin(), out.end());
	return out;
}

// digits + 1
std::string incremented(std::string digits)
{
	for (std::size_t i = digits.size(); i-- > 0;) {
		if (digits[i] != '9') {
			digits[i]++;
			return digits;
		}
		digits[i] = '0';
	}
	return '1' + digits;
}

// The smallest integer that is not less, as digits; "" if it has more than 40 of them.
std::string rounded_up(const Number &n, int decimals)
{
	std::string digits = n.digits;
	for (int i = 0; i < n.two; i++)
		digits = doubled(digits);
	digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
	if (digits.empty())
		return "0";
	const std::int64_t move = n.ten + decimals;
	if (move > 40)
		return "";
	if (move >= 0)
		return digits + std::string(static_cast<std::size_t>(move), '0');
	if (-move >= static_cast<std::int64_t>(digits.size()))
		return "1"; // more than 0, less than or equal to 1
	const std::size_t keep = digits.size() - static_cast<std::size_t>(-move);
	const bool rest = digits.find_first_not_of('0', keep) != std::string::npos;
	digits.erase(keep);
	return rest ? incremented(digits) : digits;
}

void check(std::string_view text, int decimals, const Result<std::int64_t> &got)
{
	if (!got)
		expect_sentence(got.error().message, 256);
	const std::optional<Number> n = text.size() <= 256 ? read(text) : std::nullopt;
	if (!n)
		return expect(!got, "what is no quantity is refused", text);
	const std::string digits = rounded_up(*n, decimals);
	const std::optional<std::int64_t> wanted = digits.empty() ? std::nullopt : parse_integer(digits);
	if (!wanted || (n->negative && *wanted != 0))
		return expect(!got, "what is negative or does not fit is refused", text);
	expect(got.ok(), "a quantity is understood", text);
	expect(*got == *wanted, "a quantity is exact, rounded up", text);
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const std::string_view text(reinterpret_cast<const char *>(data), size);
	check(text, 3, parse_milli(text));
	check(text, 0, parse_whole(text));
	return 0;
}
