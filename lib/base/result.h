// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Result<T>: a value or an Error. What can go wrong at run time (network, files,
// other people's input) is returned as a Result; exceptions mean a bug or no
// memory and are stopped at the C boundary (lib/base/guard.h).
#ifndef SK8_BASE_RESULT_H
#define SK8_BASE_RESULT_H

#include <string>
#include <utility>
#include <variant>

namespace sk8 {

// One sentence for a person, without a final full stop; says what to do if that
// is known. Never contains a secret.
struct Error {
	std::string message;
};

template <class T>
class [[nodiscard]] Result {
public:
	Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
	Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}

	bool ok() const { return v_.index() == 0; }
	explicit operator bool() const { return ok(); }

	// Only if ok().
	T &value() & { return std::get<0>(v_); }
	const T &value() const & { return std::get<0>(v_); }
	T &&value() && { return std::get<0>(std::move(v_)); }
	T *operator->() { return &value(); }
	const T *operator->() const { return &value(); }
	T &operator*() & { return value(); }
	const T &operator*() const & { return value(); }

	// Only if not ok().
	const Error &error() const { return std::get<1>(v_); }

	T value_or(T other) const { return ok() ? std::get<0>(v_) : std::move(other); }

private:
	std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
public:
	Result() = default;
	Result(Error error) : error_(std::move(error)), ok_(false) {}

	bool ok() const { return ok_; }
	explicit operator bool() const { return ok_; }
	const Error &error() const { return error_; }

private:
	Error error_;
	bool ok_ = true;
};

} // namespace sk8

#endif
