// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Of which pods a resource claim says that they may use it (status.reservedFor). Pure.
#ifndef SK8_CORE_CLAIM_PODS_H
#define SK8_CORE_CLAIM_PODS_H

#include <algorithm>
#include <string>

#include "lib/kube/dra_objects.h"

namespace sk8::core {

inline bool is_reserved_for(const kube::ResourceClaim &claim, const std::string &uid)
{
	return std::ranges::find(claim.reserved_for, uid) != claim.reserved_for.end();
}

inline bool is_only_for(const kube::ResourceClaim &claim, const std::string &uid)
{
	return !claim.reserved_for_other && std::ranges::all_of(claim.reserved_for, [&](const std::string &u) { return u == uid; });
}

} // namespace sk8::core

#endif
