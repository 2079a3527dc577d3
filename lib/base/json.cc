// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/json.h"

#include <cstdlib>
#include <jansson.h>
#include <new>
#include <stdexcept>

#include "lib/base/text.h"

namespace sk8 {

namespace {

json_t *owned(json_t *j)
{
	if (!j)
		throw std::bad_alloc();
	return j;
}

// Our own words: jansson's text repeats the input, which may be a secret.
const char *problem(enum json_error_code code)
{
	switch (code) {
	case json_error_out_of_memory:
		return "out of memory";
	case json_error_stack_overflow:
		return "nested too deeply";
	case json_error_premature_end_of_input:
		return "ends too early";
	case json_error_end_of_input_expected:
		return "more text after the value";
	case json_error_invalid_utf8:
		return "invalid UTF-8";
	case json_error_null_character:
	case json_error_null_byte_in_key:
		return "a zero byte in a key";
	case json_error_duplicate_key:
		return "the same key twice";
	case json_error_numeric_overflow:
		return "a number too large";
	default:
		return "invalid syntax";
	}
}

} // namespace

Json::Json(const Json &other) : j_(json_incref(other.j_)) {}

Json &Json::operator=(Json other) noexcept
{
	std::swap(j_, other.j_);
	return *this;
}

Json::~Json()
{
	json_decref(j_);
}

Json Json::object()
{
	return Json(owned(json_object()));
}

Json Json::array()
{
	return Json(owned(json_array()));
}

Json Json::string(std::string_view s)
{
	if (is_valid_utf8(s))
		return Json(owned(json_stringn(s.data() ? s.data() : "", s.size())));
	return string(valid_utf8(s));
}

Json Json::integer(std::int64_t n)
{
	return Json(owned(json_integer(n)));
}

Json Json::boolean(bool b)
{
	return Json(json_boolean(b));
}

Json Json::null()
{
	return Json();
}

Result<Json> Json::parse(std::string_view text, Twice twice)
{
	json_error_t error;
	// A zero byte is legal in an annotation or an environment variable: refusing it
	// would let any pod hide from us.
	json_t *j = json_loadb(text.data() ? text.data() : "", text.size(),
			       (twice == Twice::refused ? JSON_REJECT_DUPLICATES : 0) | JSON_DECODE_ANY | JSON_ALLOW_NUL,
			       &error);
	if (!j)
		return Error{strprintf("not JSON: line %d, column %d: %s", error.line, error.column,
				       problem(json_error_code(&error)))};
	return Json(j);
}

std::string Json::dump() const
{
	if (!j_)
		return "null";
	std::string s;
	// The callback is called by C code: nothing may be thrown through it.
	const auto append = [](const char *bytes, std::size_t n, void *to) {
		try {
			static_cast<std::string *>(to)->append(bytes, n);
			return 0;
		} catch (const std::bad_alloc &) {
			return -1;
		}
	};
	if (json_dump_callback(j_, append, &s, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		throw std::bad_alloc();
	return s;
}

bool Json::is_null() const
{
	return !j_ || json_is_null(j_);
}

bool Json::is_object() const
{
	return json_is_object(j_);
}

bool Json::is_array() const
{
	return json_is_array(j_);
}

bool Json::is_string() const
{
	return json_is_string(j_);
}

bool Json::is_integer() const
{
	return json_is_integer(j_);
}

bool Json::is_boolean() const
{
	return json_is_boolean(j_);
}

Json Json::operator[](std::string_view key) const
{
	if (!key.data())
		key = "";
	return Json(json_incref(json_object_getn(j_, key.data(), key.size())));
}

Json Json::at(std::size_t index) const
{
	return Json(json_incref(json_array_get(j_, index)));
}

std::size_t Json::size() const
{
	return is_object() ? json_object_size(j_) : json_array_size(j_);
}

std::string_view Json::str(std::string_view otherwise) const
{
	return is_string() ? std::string_view(json_string_value(j_), json_string_length(j_))
			   : otherwise;
}

std::int64_t Json::integer_or(std::int64_t otherwise) const
{
	return is_integer() ? json_integer_value(j_) : otherwise;
}

bool Json::boolean_or(bool otherwise) const
{
	return is_boolean() ? json_boolean_value(j_) : otherwise;
}

void Json::each_member(const std::function<void(std::string_view, const Json &)> &f) const
{
	for (void *i = json_object_iter(j_); i; i = json_object_iter_next(j_, i))
		f({json_object_iter_key(i), json_object_iter_key_len(i)},
		  Json(json_incref(json_object_iter_value(i))));
}

void Json::each_item(const std::function<void(const Json &)> &f) const
{
	for (std::size_t i = 0; i < json_array_size(j_); i++)
		f(Json(json_incref(json_array_get(j_, i))));
}

Json &Json::set(std::string_view key, Json value)
{
	if (!is_object())
		throw std::logic_error("Json::set on something that is no object");
	const std::string valid = valid_utf8(key);
	if (json_object_setn(j_, valid.data(), valid.size(),
			     value.j_ ? value.j_ : json_null()) != 0)
		throw std::logic_error("Json::set of an object into itself, or out of memory");
	return *this;
}

Json &Json::set(std::string_view key, std::string_view value)
{
	return set(key, string(value));
}

Json &Json::append(Json value)
{
	if (!is_array())
		throw std::logic_error("Json::append to something that is no array");
	if (json_array_append(j_, value.j_ ? value.j_ : json_null()) != 0)
		throw std::logic_error("Json::append of an array to itself, or out of memory");
	return *this;
}

} // namespace sk8
