// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The order of resourceVersions within one resource (KEP-5504): decimal numbers of
// any length. What is none has no order. Pure, any thread.
#ifndef SK8_KUBE_RESOURCE_VERSION_H
#define SK8_KUBE_RESOURCE_VERSION_H

#include <algorithm>
#include <string_view>

namespace sk8::kube {

inline bool is_number(std::string_view version)
{
	auto digit = [](char c) { return c >= '0' && c <= '9'; };
	return !version.empty() && std::all_of(version.begin(), version.end(), digit);
}

// True only if both are numbers and a is the smaller one.
inline bool is_older(std::string_view a, std::string_view b)
{
	if (!is_number(a) || !is_number(b))
		return false;
	auto value = [](std::string_view v) {
		v.remove_prefix(std::min(v.find_first_not_of('0'), v.size()));
		return v;
	};
	a = value(a);
	b = value(b);
	return a.size() != b.size() ? a.size() < b.size() : a < b;
}

} // namespace sk8::kube

#endif
