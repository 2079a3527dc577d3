// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/rescue.h"

#include <array>

namespace sk8::kube {

namespace {

bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Reads the members of one JSON object as far as they go. Strings and nesting are
// understood, nothing else is checked.
class Members {
public:
	explicit Members(std::string_view text) : text_(text)
	{
		skip_space();
		good_ = at_ < text_.size() && text_[at_] == '{';
		at_++;
	}

	// The next member; value is its raw text, to the end of the text if it is cut.
	bool next(std::string_view &key, std::string_view &value)
	{
		skip_space();
		if (good_ && at_ < text_.size() && text_[at_] == ',') {
			at_++;
			skip_space();
		}
		if (!good_ || at_ >= text_.size() || text_[at_] != '"')
			return false;
		key = take_value();
		if (key.size() < 2)
			return false;
		key = key.substr(1, key.size() - 2);
		skip_space();
		if (at_ >= text_.size() || text_[at_] != ':')
			return false;
		at_++;
		skip_space();
		value = take_value();
		return !value.empty();
	}

private:
	void skip_space()
	{
		while (at_ < text_.size() && is_space(text_[at_]))
			at_++;
	}

	std::string_view take_value()
	{
		std::size_t from = at_;
		bool string = false;
		for (int depth = 0; at_ < text_.size(); at_++) {
			char c = text_[at_];
			if (string) {
				if (c == '\\') {
					at_++;
				} else if (c == '"') {
					string = false;
					if (depth == 0) {
						at_++;
						break;
					}
				}
				continue;
			}
			if (c == '"') {
				string = true;
			} else if (c == '{' || c == '[') {
				depth++;
			} else if (c == '}' || c == ']') {
				if (depth == 0)
					break; // the end of the object around a plain value
				if (--depth == 0) {
					at_++;
					break;
				}
			} else if (depth == 0 && (c == ',' || is_space(c))) {
				break;
			}
		}
		at_ = std::min(at_, text_.size());
		return text_.substr(from, at_ - from);
	}

	std::string_view text_;
	std::size_t at_ = 0;
	bool good_ = false;
};

std::string_view member(std::string_view object, std::string_view wanted)
{
	Members members(object);
	std::string_view key, value;
	while (members.next(key, value))
		if (key == wanted)
			return value;
	return {};
}

std::string text_member(std::string_view object, std::string_view key)
{
	Result<Json> value = Json::parse(member(object, key));
	return value.ok() ? std::string(value->str()) : std::string();
}

} // namespace

std::optional<Json> rescue_object(std::string_view text)
{
	static constexpr std::array<std::string_view, 4> wanted = {"name", "namespace", "uid",
								   "resourceVersion"};
	std::string_view from = member(text, "metadata");
	Json meta = Json::object();
	for (std::string_view key : wanted)
		if (std::string value = text_member(from, key); !value.empty())
			meta.set(key, value);
	if (meta["name"].is_null() || meta["uid"].is_null())
		return std::nullopt;
	Json out = Json::object();
	out.set("metadata", std::move(meta));
	return out;
}

std::optional<RescuedEvent> rescue_event(std::string_view text)
{
	std::optional<Json> object = rescue_object(member(text, "object"));
	std::string type = text_member(text, "type");
	if (!object || type.empty())
		return std::nullopt;
	return RescuedEvent{std::move(type), std::move(*object)};
}

} // namespace sk8::kube
