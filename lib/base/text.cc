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

} // namespace sk8
