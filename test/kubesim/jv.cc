// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/jv.h"

namespace kubesim {

J J::of(std::string_view s)
{
	json_t *p = json_stringn(s.data(), s.size());
	if (!p) {
		std::string ascii(s);
		for (char &c : ascii)
			if (static_cast<unsigned char>(c) >= 0x80)
				c = '?';
		p = json_stringn(ascii.data(), ascii.size());
	}
	return steal(p);
}

J J::list(const std::vector<std::string> &strings)
{
	J a = array();
	for (const auto &s : strings)
		a.append(s);
	return a;
}

J J::parse(std::string_view text, std::string *error)
{
	json_error_t e;
	json_t *p = json_loadb(text.data(), text.size(), JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
	if (!p && error)
		*error = "line " + std::to_string(e.line) + " column " + std::to_string(e.column) +
			 ": " + e.text;
	return steal(p);
}

std::string J::dump() const
{
	if (!p_)
		return "null";
	std::string out;
	json_dump_callback(
		p_,
		[](const char *data, std::size_t size, void *to) {
			static_cast<std::string *>(to)->append(data, size);
			return 0;
		},
		&out, JSON_COMPACT | JSON_ENCODE_ANY);
	return out;
}

bool J::operator==(const J &o) const
{
	if (!p_ || !o.p_)
		return p_ == o.p_;
	return json_equal(p_, o.p_);
}

J J::path(std::string_view dotted) const
{
	J at = *this;
	while (at && !dotted.empty()) {
		std::size_t dot = dotted.find('.');
		at = at[std::string(dotted.substr(0, dot))];
		dotted = dot == dotted.npos ? std::string_view() : dotted.substr(dot + 1);
	}
	return at;
}

std::string J::str(std::string_view otherwise) const
{
	if (!is_string())
		return std::string(otherwise);
	return std::string(json_string_value(p_), json_string_length(p_));
}

std::int64_t J::num(std::int64_t otherwise) const
{
	if (is_integer())
		return json_integer_value(p_);
	return json_is_real(p_) ? static_cast<std::int64_t>(json_real_value(p_)) : otherwise;
}

bool J::truth(bool otherwise) const
{
	return is_boolean() ? json_is_true(p_) : otherwise;
}

std::vector<std::string> J::strings() const
{
	std::vector<std::string> out;
	each_item([&](const J &i) {
		if (i.is_string())
			out.push_back(i.str());
	});
	return out;
}

J J::child(const char *key)
{
	if (!(*this)[key].is_object())
		set(key, object());
	return (*this)[key];
}

J J::children(const char *key)
{
	if (!(*this)[key].is_array())
		set(key, array());
	return (*this)[key];
}

} // namespace kubesim
