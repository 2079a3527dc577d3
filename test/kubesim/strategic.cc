// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <algorithm>

#include "test/kubesim/patch.h"

namespace kubesim {
namespace {

// Lists that merge, by the name of their field; all others are replaced. Source:
// the patchMergeKey and patchStrategy tags of k8s.io/api.
struct MergeRow {
	const char *field;
	const char *key; // nullptr: list of plain values, merged as a set
};
const MergeRow merge_table[] = {
	{"containers", "name"},
	{"initContainers", "name"},
	{"ephemeralContainers", "name"},
	{"volumes", "name"},
	{"volumeMounts", "mountPath"},
	{"volumeDevices", "devicePath"},
	{"env", "name"},
	{"ports", "containerPort"},
	{"conditions", "type"},
	{"addresses", "type"},
	{"imagePullSecrets", "name"},
	{"hostAliases", "ip"},
	{"podIPs", "ip"},
	{"hostIPs", "ip"},
	{"schedulingGates", "name"},
	{"resourceClaims", "name"},
	{"topologySpreadConstraints", "topologyKey"},
	{"ownerReferences", "uid"},
	{"secrets", "name"},
	{"finalizers", nullptr},
	{"podCIDRs", nullptr},
};

const MergeRow *merge_row(const std::string &field)
{
	for (const auto &row : merge_table)
		if (field == row.field)
			return &row;
	return nullptr;
}

Outcome<J> merge_object(const J &target, const J &patch);

J without_directives(const J &value)
{
	if (value.is_array()) {
		J out = J::array();
		value.each_item([&](const J &i) {
			std::string directive = i["$patch"].str();
			if (directive != "delete" && directive != "replace")
				out.append(without_directives(i));
		});
		return out;
	}
	if (!value.is_object())
		return value.copy();
	J out = J::object();
	value.each_member([&](const std::string &key, const J &v) {
		if (key[0] != '$' && !v.is_null())
			out.set(key, without_directives(v));
	});
	return out;
}

bool contains(const J &list, const J &value)
{
	for (std::size_t i = 0; i < list.size(); i++)
		if (list.item(i) == value)
			return true;
	return false;
}

void remove_where(J list, const std::string &key, const J &value)
{
	for (std::size_t i = list.size(); i-- > 0;)
		if (list.item(i)[key] == value)
			json_array_remove(list.get(), i);
}

Outcome<J> merge_keyed_list(const J &target, const J &patch, const char *key)
{
	for (std::size_t i = 0; i < patch.size(); i++)
		if (patch.item(i)["$patch"].str() == "replace")
			return without_directives(patch);
	J out = target.is_array() ? target.copy() : J::array();
	for (std::size_t i = 0; i < patch.size(); i++) {
		J item = patch.item(i);
		J id = item[key];
		if (!id)
			return Failure{422, "Invalid",
				       " \"\" is invalid: patch: Invalid value: map: " + item.dump() +
					       " does not contain declared merge key: " + key,
				       J::object()};
		if (item["$patch"].str() == "delete") {
			remove_where(out, key, id);
			continue;
		}
		std::size_t at = 0;
		while (at < out.size() && !(out.item(at)[key] == id))
			at++;
		if (at == out.size()) {
			out.append(without_directives(item));
			continue;
		}
		auto merged = merge_object(out.item(at), item);
		if (!merged)
			return merged.failure();
		json_array_set(out.get(), at, (*merged).get());
	}
	return out;
}

J merge_set(const J &target, const J &patch)
{
	J out = target.is_array() ? target.copy() : J::array();
	patch.each_item([&](const J &i) {
		if (!contains(out, i))
			out.append(i);
	});
	return out;
}

void delete_from_set(J target, const std::string &field, const J &values)
{
	J list = target[field];
	for (std::size_t i = list.size(); i-- > 0;)
		if (contains(values, list.item(i)))
			json_array_remove(list.get(), i);
	if (list.is_array() && list.size() == 0)
		target.del(field);
}

// $retainKeys: of the target's members only these stay.
void retain_keys(J target, const J &keys)
{
	std::vector<std::string> drop;
	target.each_member([&](const std::string &key, const J &) {
		if (!contains(keys, J::of(key)))
			drop.push_back(key);
	});
	for (const auto &key : drop)
		target.del(key);
}

Outcome<J> merge_value(const J &old, const J &value, const std::string &key)
{
	if (value.is_object())
		return merge_object(old, value);
	const MergeRow *row = value.is_array() ? merge_row(key) : nullptr;
	if (!row)
		return without_directives(value);
	// A field of that name may hold plain values in another type (ports, secrets).
	if (!row->key)
		return merge_set(old, value);
	bool objects = value.size() == 0 || value.item(0).is_object();
	return objects ? merge_keyed_list(old, value, row->key) : without_directives(value);
}

Outcome<J> merge_object(const J &target, const J &patch)
{
	const std::string directive = patch["$patch"].str();
	if (directive == "replace")
		return without_directives(patch);
	if (directive == "delete")
		return J::object();
	J out = target.is_object() ? target.copy() : J::object();
	if (J keys = patch["$retainKeys"])
		retain_keys(out, keys);

	std::optional<Failure> failure;
	const std::string from_list = "$deleteFromPrimitiveList/";
	patch.each_member([&](const std::string &key, const J &value) {
		if (failure)
			return;
		if (key.rfind(from_list, 0) == 0) {
			delete_from_set(out, key.substr(from_list.size()), value);
		} else if (key[0] == '$') {
			return; // $setElementOrder: the order of such lists means nothing to us
		} else if (value.is_null()) {
			out.del(key);
		} else {
			auto merged = merge_value(out[key], value, key);
			if (merged)
				out.set(key, *merged);
			else
				failure = merged.failure();
		}
	});
	if (failure)
		return *failure;
	return out;
}

} // namespace

Outcome<J> strategic_merge(const J &target, const J &patch)
{
	if (!patch.is_object())
		return bad_request("error decoding patch: json: cannot unmarshal into Go value of type "
				   "map[string]interface {}");
	return merge_object(target, patch);
}

} // namespace kubesim
