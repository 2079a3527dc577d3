// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/patch.h"

#include <optional>

namespace kubesim {

J merge_patch(const J &target, const J &patch)
{
	if (!patch.is_object())
		return patch.copy();
	J out = target.is_object() ? target.copy() : J::object();
	patch.each_member([&](const std::string &key, const J &value) {
		if (value.is_null())
			out.del(key);
		else
			out.set(key, merge_patch(out[key], value));
	});
	return out;
}

namespace {

std::vector<std::string> split_pointer(const std::string &pointer)
{
	std::vector<std::string> out;
	for (std::size_t from = 1; from <= pointer.size();) {
		std::size_t to = std::min(pointer.find('/', from), pointer.size());
		std::string part;
		for (std::size_t i = from; i < to; i++) {
			if (pointer[i] == '~' && i + 1 < to)
				part += pointer[++i] == '1' ? '/' : '~';
			else
				part += pointer[i];
		}
		out.push_back(part);
		from = to + 1;
	}
	return out;
}

std::optional<std::size_t> parse_index(const std::string &text)
{
	if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos)
		return std::nullopt;
	return std::stoul(text);
}

J step(const J &at, const std::string &part)
{
	if (!at.is_array())
		return at[part];
	auto index = parse_index(part);
	return index ? at.item(*index) : J();
}

// The container that holds the last part of the path, or absent.
J parent_of(const J &root, const std::vector<std::string> &parts)
{
	J at = root;
	for (std::size_t i = 0; at && i + 1 < parts.size(); i++)
		at = step(at, parts[i]);
	return at;
}

bool add(J &root, const std::string &pointer, const J &value)
{
	auto parts = split_pointer(pointer);
	if (parts.empty()) {
		root = value;
		return true;
	}
	J parent = parent_of(root, parts);
	if (parent.is_object()) {
		parent.set(parts.back(), value);
		return true;
	}
	if (!parent.is_array())
		return false;
	if (parts.back() == "-") {
		parent.append(value);
		return true;
	}
	auto index = parse_index(parts.back());
	return index && *index <= parent.size() &&
	       json_array_insert(parent.get(), *index, value.get()) == 0;
}

bool take(J &root, const std::string &pointer)
{
	auto parts = split_pointer(pointer);
	if (parts.empty())
		return false;
	J parent = parent_of(root, parts);
	if (parent.is_object())
		return json_object_del(parent.get(), parts.back().c_str()) == 0;
	auto index = parse_index(parts.back());
	return parent.is_array() && index && json_array_remove(parent.get(), *index) == 0;
}

J look(const J &root, const std::string &pointer)
{
	auto parts = split_pointer(pointer);
	return parts.empty() ? root : step(parent_of(root, parts), parts.back());
}

bool apply_operation(J &root, const J &operation)
{
	const std::string op = operation["op"].str(), path = operation["path"].str();
	if (op == "add")
		return add(root, path, operation["value"].copy());
	if (op == "remove")
		return take(root, path);
	if (op == "replace") {
		if (!look(root, path))
			return false;
		auto parts = split_pointer(path);
		if (!parts.empty() && !take(root, path))
			return false;
		return add(root, path, operation["value"].copy());
	}
	if (op == "test") {
		J value = operation["value"];
		J found = look(root, path);
		return value.is_null() ? !found || found.is_null() : found == value;
	}
	if (op == "move" || op == "copy") {
		J value = look(root, operation["from"].str()).copy();
		if (!value || (op == "move" && !take(root, operation["from"].str())))
			return false;
		return add(root, path, value);
	}
	return false;
}

} // namespace

Outcome<J> json_patch(const J &target, const J &patch)
{
	if (!patch.is_array())
		return bad_request("error decoding patch: json: cannot unmarshal object into Go value of type "
				   "jsonpatch.Patch");
	if (patch.size() > 10000)
		return Failure{413, "RequestEntityTooLarge",
			       "The allowed maximum operations in a JSON patch is 10000, got " +
				       std::to_string(patch.size()),
			       J::object()};
	J out = target.copy();
	for (std::size_t i = 0; i < patch.size(); i++)
		if (!apply_operation(out, patch.item(i)))
			return unprocessable_patch();
	return out;
}

} // namespace kubesim
