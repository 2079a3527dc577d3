// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/json_mend.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "lib/base/text.h"

namespace sk8 {

namespace {

constexpr std::string_view replacement = "\\ufffd", null_text = "null";
constexpr std::size_t longest_number = 300; // a double has fewer digits before its point
constexpr int largest_exponent = 300;

class Mending {
public:
	explicit Mending(std::string_view text) : text_(text) { out_.reserve(text.size() + 16); }

	std::string run()
	{
		while (at_ < text_.size()) {
			const char c = text_[at_];
			if (c == '"')
				string();
			else if (c == '{' || c == '[')
				open();
			else if (c == '}' || c == ']')
				close();
			else if (c == '-' || (c >= '0' && c <= '9'))
				number();
			else
				put(text_.substr(at_++, 1));
		}
		return std::move(out_);
	}

private:
	void put(std::string_view what)
	{
		if (depth_ <= max_mended_depth)
			out_ += what;
	}

	void open()
	{
		if (depth_ == max_mended_depth)
			put(null_text);
		depth_++;
		put(text_.substr(at_++, 1));
	}

	void close()
	{
		put(text_.substr(at_++, 1));
		depth_--;
	}

	// at: of a backslash. Nothing: it is no \uXXXX.
	std::optional<std::uint32_t> unit(std::size_t at) const
	{
		std::uint32_t value = 0;
		if (text_.size() < at + 6 || text_[at] != '\\' || text_[at + 1] != 'u')
			return std::nullopt;
		const char *end = text_.data() + at + 6;
		const auto [stopped, error] = std::from_chars(text_.data() + at + 2, end, value, 16);
		return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
	}

	void escape()
	{
		const auto first = unit(at_);
		const auto is_high = [](std::uint32_t u) { return u >= 0xd800 && u <= 0xdbff; };
		const auto is_low = [](std::uint32_t u) { return u >= 0xdc00 && u <= 0xdfff; };
		std::size_t length = first ? 6 : 2;
		bool bad = first && (*first == 0 || is_low(*first));
		if (first && is_high(*first)) {
			const auto second = unit(at_ + 6);
			bad = !second || !is_low(*second);
			length = bad ? 6 : 12;
		}
		put(bad ? replacement : text_.substr(at_, length));
		at_ = std::min(at_ + length, text_.size());
	}

	void string()
	{
		put(text_.substr(at_++, 1));
		while (at_ < text_.size() && text_[at_] != '"') {
			if (text_[at_] == '\\') {
				escape();
			} else {
				const std::size_t end = std::min(text_.find_first_of("\"\\", at_), text_.size());
				put(text_.substr(at_, end - at_));
				at_ = end;
			}
		}
		if (at_ < text_.size())
			put(text_.substr(at_++, 1));
	}

	static bool is_too_large(std::string_view real)
	{
		const std::size_t e = real.find_first_of("eE");
		if (real.size() > longest_number)
			return true;
		if (e == real.npos)
			return false;
		std::string_view digits = real.substr(e + 1);
		if (digits.starts_with('+'))
			digits.remove_prefix(1);
		int exponent = 0;
		const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
		return parsed.ec != std::errc() || exponent > largest_exponent - static_cast<int>(e) || exponent < -largest_exponent;
	}

	void number()
	{
		const std::size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size());
		const std::string_view token = text_.substr(at_, end - at_);
		at_ = end;
		if (token.find_first_of(".eE") != token.npos)
			return put(is_too_large(token) ? "0" : token);
		std::int64_t value = 0;
		const auto parsed = std::from_chars(token.data(), token.data() + token.size(), value);
		if (parsed.ec == std::errc::result_out_of_range)
			put(token.starts_with('-') ? "-9223372036854775808" : "9223372036854775807");
		else
			put(token);
	}

	std::string_view text_;
	std::string out_;
	std::size_t at_ = 0;
	int depth_ = 0;
};

} // namespace

std::string mended_json(std::string_view text)
{
	return is_valid_utf8(text) ? Mending(text).run() : Mending(valid_utf8(text)).run();
}

Result<Json> parse_sent_json(std::string_view text)
{
	auto parsed = Json::parse(text);
	return parsed ? parsed : Json::parse(mended_json(text), Json::Twice::last);
}

} // namespace sk8
