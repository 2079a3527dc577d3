// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What an API server makes of a patch with the type application/merge-patch+json (RFC 7386), for stand-ins of one.
#ifndef SK8_TEST_MERGE_PATCH_H
#define SK8_TEST_MERGE_PATCH_H

#include <string_view>

#include "lib/base/json.h"

namespace sk8 {

inline bool has_member(const Json &object, std::string_view key)
{
	bool found = false;
	object.each_member([&](std::string_view k, const Json &) { found |= k == key; });
	return found;
}

inline Json merge_patch(const Json &old, const Json &patch)
{
	if (!patch.is_object())
		return patch;
	Json out = Json::object();
	old.each_member([&](std::string_view key, const Json &value) {
		if (!has_member(patch, key))
			out.set(key, value);
	});
	patch.each_member([&](std::string_view key, const Json &value) {
		if (!value.is_null())
			out.set(key, merge_patch(old[key], value));
	});
	return out;
}

} // namespace sk8

#endif
