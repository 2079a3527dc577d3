// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Who a pod is in Slurm. The administrator's mapping says; what the pod claims in
// annotations counts only as far as the mapping allows (invariant I6). Pure.
#ifndef SK8_CORE_IDENTITY_H
#define SK8_CORE_IDENTITY_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/core/annotations.h"
#include "lib/core/settings.h"
#include "lib/kube/objects.h"

namespace sk8::core {

struct Identity {
	std::string user;
	std::uint32_t uid = 0, gid = 0;
	std::string account, partition, qos, reservation, licenses;
};

struct Account {
	std::uint32_t uid, gid;
};
// User name -> uid and primary gid; nullopt: there is no such user here. May ask
// NSS and therefore wait: never called from a hook.
using UserLookup = std::function<std::optional<Account>(const std::string &user)>;

// The error is for the pod's owner: one sentence, and it names nothing of other
// namespaces.
Result<Identity> identify(const kube::Pod &pod, const Wishes &wishes,
			  const ClusterSettings &settings, const UserLookup &lookup);

// The first entry of the settings that matches; null: none does.
const NamespaceSettings *find_namespace(const ClusterSettings &settings, const std::string &ns);

// The system's NSS.
std::optional<Account> lookup_user(const std::string &user);
// Nothing: NSS knows none, or does not answer now. Asks NSS.
std::optional<std::string> known_user_name(std::uint32_t uid);
// Of a user, as the kernel has them of his processes, without gid, and most_groups at most. Asks NSS.
inline constexpr std::size_t most_groups = 1024;
std::vector<std::uint32_t> groups_of(const std::string &user, std::uint32_t gid);
// "alice", or "1001" if nobody knows a name. Asks NSS.
std::string user_name(std::uint32_t uid);
// "alice (uid 1001)", or "uid 1001" if nobody knows a name. Asks NSS.
std::string user_text(std::uint32_t uid);

} // namespace sk8::core

#endif
