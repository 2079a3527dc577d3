// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// base64 and hexadecimal digits.
#include "lib/base/text.h"

namespace sk8 {

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
