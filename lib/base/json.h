// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A safe, small view of jansson: values are references counted by jansson, reads
// never fail (a missing or wrongly typed member reads as the default), so that
// decoding hostile objects needs no checks at each step.
#ifndef SK8_BASE_JSON_H
#define SK8_BASE_JSON_H

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lib/base/result.h"

struct json_t;

namespace sk8 {

// Copying shares the same jansson value (reference counted, one thread at a time).
class Json {
public:
	Json() = default; // null
	Json(const Json &other);
	Json(Json &&other) noexcept : j_(other.j_) { other.j_ = nullptr; }
	Json &operator=(Json other) noexcept; // by value: safe with itself
	~Json();

	static Json object();
	static Json array();
	static Json string(std::string_view s); // invalid UTF-8 is replaced by '?'
	static Json integer(std::int64_t n);
	static Json boolean(bool b);
	static Json null();

	// Rejects trailing bytes and nesting deeper than jansson's
	// limit. Strings may hold zero bytes (as \u0000), keys may not. The error names
	// line and column, not the content.
	enum class Twice { refused, last }; // of members with the same name
	static Result<Json> parse(std::string_view text, Twice twice = Twice::refused);
	// Compact, keys in insertion order.
	std::string dump() const;

	bool is_null() const;
	bool is_object() const;
	bool is_array() const;
	bool is_string() const;
	bool is_integer() const;
	bool is_boolean() const;

	// Reads: the default for anything absent or of another type.
	Json operator[](std::string_view key) const; // member, or null
	Json at(std::size_t index) const;            // element, or null
	std::size_t size() const;                    // of array or object, else 0
	std::string_view str(std::string_view otherwise = {}) const; // valid while *this lives
	std::int64_t integer_or(std::int64_t otherwise) const;
	bool boolean_or(bool otherwise) const;
	void each_member(const std::function<void(std::string_view key, const Json &)> &f) const;
	void each_item(const std::function<void(const Json &)> &f) const;

	// Writes: throw std::logic_error on the wrong type (a bug, not input).
	Json &set(std::string_view key, Json value);
	Json &set(std::string_view key, std::string_view value);
	Json &append(Json value);

private:
	explicit Json(json_t *owned) : j_(owned) {}
	json_t *j_ = nullptr;
};

} // namespace sk8

#endif
