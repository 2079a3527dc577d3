// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the API answers when it refuses: the Status object of the Kubernetes API
// conventions, with the texts of the real server.
#ifndef KUBESIM_FAILURE_H
#define KUBESIM_FAILURE_H

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "test/kubesim/jv.h"

namespace kubesim {

struct Kind;

struct Failure {
	int code = 500;
	std::string reason; // may be empty
	std::string message;
	J details; // may be absent

	J status() const; // the Status object
};

// A value or a Failure.
template <class T>
class [[nodiscard]] Outcome {
public:
	Outcome(T value) : v_(std::in_place_index<0>, std::move(value)) {}
	Outcome(Failure f) : v_(std::in_place_index<1>, std::move(f)) {}
	explicit operator bool() const { return v_.index() == 0; }
	T &operator*() { return std::get<0>(v_); }
	T *operator->() { return &std::get<0>(v_); }
	const Failure &failure() const { return std::get<1>(v_); }

private:
	std::variant<T, Failure> v_;
};
using Refusal = std::optional<Failure>;

// One thing that is wrong with a field: reason is FieldValueRequired and so on.
struct FieldError {
	std::string reason, field, message;
};
FieldError field_invalid(const std::string &field, const std::string &quoted, const std::string &why);
FieldError field_required(const std::string &field, const std::string &why = {});
FieldError field_duplicate(const std::string &field, const std::string &quoted);
FieldError field_forbidden(const std::string &field, const std::string &why);
FieldError field_too_long(const std::string &field, std::size_t most);
FieldError field_unsupported(const std::string &field, const std::string &value,
			     const std::vector<std::string> &supported);

Failure bad_request(const std::string &message);
Failure not_found(const Kind &kind, const std::string &name);
Failure no_such_resource(); // the path names nothing
Failure already_exists(const Kind &kind, const std::string &name);
// details.kind is `what`: a resource, "pods/binding" or, for delete, a kind.
Failure conflict(const std::string &group, const std::string &what, const std::string &name,
		 const std::string &why);
Failure modified(const Kind &kind, const std::string &name);
Failure invalid(const std::string &group, const std::string &kind, const std::string &name,
		const std::vector<FieldError> &errors);
Failure expired(const std::string &message);
Failure too_large_resource_version(std::uint64_t asked, std::uint64_t current);
Failure unauthorized();
Failure unsupported_media_type();
Failure unprocessable_patch();

} // namespace kubesim

#endif
