// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/failure.h"

#include "test/kubesim/kinds.h"

namespace kubesim {

J Failure::status() const
{
	J s = J::make("kind", "Status", "apiVersion", "v1", "metadata", J::object(), "status", "Failure",
		      "message", message);
	if (!reason.empty())
		s.set("reason", reason);
	if (details)
		s.set("details", details);
	s.set("code", code);
	return s;
}

static J details_of(const std::string &name, const std::string &group, const std::string &kind)
{
	J d = J::object();
	if (!name.empty())
		d.set("name", name);
	if (!group.empty())
		d.set("group", group);
	if (!kind.empty())
		d.set("kind", kind);
	return d;
}

static std::string qualified(const std::string &group, const std::string &what)
{
	return group.empty() ? what : what + "." + group;
}

static std::string quoted(const std::string &s)
{
	return "\"" + s + "\"";
}

FieldError field_invalid(const std::string &field, const std::string &value, const std::string &why)
{
	return {"FieldValueInvalid", field, "Invalid value: " + value + ": " + why};
}

FieldError field_required(const std::string &field, const std::string &why)
{
	return {"FieldValueRequired", field, why.empty() ? "Required value" : "Required value: " + why};
}

FieldError field_duplicate(const std::string &field, const std::string &value)
{
	return {"FieldValueDuplicate", field, "Duplicate value: " + value};
}

FieldError field_forbidden(const std::string &field, const std::string &why)
{
	return {"FieldValueForbidden", field, "Forbidden: " + why};
}

FieldError field_too_long(const std::string &field, std::size_t most)
{
	return {"FieldValueTooLong", field, "Too long: may not be more than " + std::to_string(most) + " bytes"};
}

FieldError field_unsupported(const std::string &field, const std::string &value,
			     const std::vector<std::string> &supported)
{
	std::string list;
	for (const auto &s : supported)
		list += (list.empty() ? "" : ", ") + quoted(s);
	return {"FieldValueNotSupported", field,
		"Unsupported value: " + quoted(value) + ": supported values: " + list};
}

Failure bad_request(const std::string &message)
{
	return {400, "BadRequest", message, {}};
}

Failure not_found(const Kind &kind, const std::string &name)
{
	return {404, "NotFound", qualified(kind.group, kind.resource) + " " + quoted(name) + " not found",
		details_of(name, kind.group, kind.resource)};
}

Failure no_such_resource()
{
	return {404, "NotFound", "the server could not find the requested resource", J::object()};
}

Failure already_exists(const Kind &kind, const std::string &name)
{
	return {409, "AlreadyExists",
		qualified(kind.group, kind.resource) + " " + quoted(name) + " already exists",
		details_of(name, kind.group, kind.resource)};
}

Failure conflict(const std::string &group, const std::string &what, const std::string &name,
		 const std::string &why)
{
	return {409, "Conflict",
		"Operation cannot be fulfilled on " + qualified(group, what) + " " + quoted(name) + ": " +
			why,
		details_of(name, group, what)};
}

Failure modified(const Kind &kind, const std::string &name)
{
	return conflict(kind.group, kind.resource, name,
			"the object has been modified; please apply your changes to the latest version "
			"and try again");
}

Failure invalid(const std::string &group, const std::string &kind, const std::string &name,
		const std::vector<FieldError> &errors)
{
	std::string text;
	J causes = J::array();
	for (const auto &e : errors) {
		text += (text.empty() ? "" : ", ") + e.field + ": " + e.message;
		causes.append(J::make("reason", e.reason, "message", e.message, "field", e.field));
	}
	if (errors.size() > 1)
		text = "[" + text + "]";
	J d = details_of(name, group, kind);
	d.set("causes", causes);
	return {422, "Invalid", qualified(group, kind) + " " + quoted(name) + " is invalid: " + text, d};
}

Failure expired(const std::string &message)
{
	return {410, "Expired", message, {}};
}

Failure too_large_resource_version(std::uint64_t asked, std::uint64_t current)
{
	J causes = J::array();
	causes.append(J::make("reason", "ResourceVersionTooLarge", "message",
			      "Too large resource version"));
	return {504, "Timeout",
		"Timeout: Too large resource version: " + std::to_string(asked) +
			", current: " + std::to_string(current),
		J::make("causes", causes, "retryAfterSeconds", 1)};
}

Failure unauthorized()
{
	return {401, "Unauthorized", "Unauthorized", {}};
}

Failure unsupported_media_type()
{
	return {415, "UnsupportedMediaType", "415: Unsupported Media Type", J::object()};
}

Failure unprocessable_patch()
{
	return {422, "Invalid", "the server rejected our request due to an error in our request",
		J::object()};
}

} // namespace kubesim
