// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Small helpers for text. All are pure and may be called from any thread.
#ifndef SK8_BASE_TEXT_H
#define SK8_BASE_TEXT_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace sk8 {

// printf into a string of any length.
std::string strprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Pieces between separators, empty ones included: "a,,b" -> {"a", "", "b"}; "" -> {}.
// The views point into text.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(const std::vector<std::string> &parts, std::string_view separator);
// Without leading and trailing space, tab, CR, LF.
std::string_view trim(std::string_view text);

// Whole text against a pattern in which only * (any run) and ? (any one byte) are
// special. Linear in pattern * text: no pattern can make it slow.
bool glob_match(std::string_view pattern, std::string_view text);

// A whole decimal number, no sign but a leading '-', no space, in range; else nothing.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t min = INT64_MIN,
					  std::int64_t max = INT64_MAX);

// RFC 3339 to seconds since 1970 (fractions are dropped): "2026-11-21T07:00:00Z",
// "2026-11-21T08:00:00.123456+01:00". Leap second 60 counts as 59.
Result<std::int64_t> parse_rfc3339(std::string_view text);
// "2026-11-21T07:00:00Z"; years outside 0..9999 are clamped.
std::string format_rfc3339(std::int64_t seconds);
// With microseconds, as metav1.MicroTime wants: "2026-11-21T07:00:00.000001Z".
std::string format_rfc3339_micro(std::int64_t seconds, std::int32_t microseconds);

// Strict: padding required, no white space except CR and LF in between (kubeconfig
// data is sometimes wrapped), unused bits zero. Errors never repeat the text.
Result<std::string> base64_decode(std::string_view text, std::size_t max_bytes);
std::string base64_encode(std::string_view bytes);
Result<std::string> hex_decode(std::string_view text, std::size_t max_bytes);
std::string hex_encode(std::string_view bytes); // lower case

// Bytes that are not valid UTF-8 become '?', one for each.
std::string valid_utf8(std::string_view text);
bool is_valid_utf8(std::string_view text);

// text with what could make it look like another text as \xNN: control characters (below
// 0x20, 0x7f, U+0080..U+009F), invalid UTF-8, and characters of Unicode that end lines,
// turn the direction or cannot be seen. Zero terminated, into out[out_size] (at least
// 8); what does not fit, or was_cut, ends in "...", and no UTF-8 character is torn. Does
// not allocate. Returns the length.
std::size_t escape_line(std::string_view text, bool was_cut, char *out, std::size_t out_size);
// The same as a string of at most max_bytes (at least 8): for messages that carry
// names or text of others.
std::string one_line(std::string_view text, std::size_t max_bytes = 256);
// text with each occurrence of secret as "[secret]": for what others send back to us. One
// of less than 6 bytes is no secret, and would make the text unreadable.
std::string without_secret(std::string text, std::string_view secret);
// Is there nothing in text that one_line() would escape?
bool is_printable(std::string_view text);

} // namespace sk8

#endif
