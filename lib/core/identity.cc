// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/identity.h"

#include <algorithm>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>
#include <vector>

#include "lib/base/text.h"

namespace sk8::core {

const NamespaceSettings *find_namespace(const ClusterSettings &settings, const std::string &ns)
{
	for (const auto &n : settings.namespaces)
		if (glob_match(n.match, ns))
			return &n;
	return nullptr;
}

// A wish must be what the mapping gives anyway, or in its list of allowed values.
struct Claim {
	const char *what;
	const std::optional<std::string> &wish;
	const std::string &mapped;
	const std::vector<std::string> &allowed;
	std::string &out;
};

// Slurm takes lists of some of them, and a * takes a comma: each of a list must be allowed, or just that list.
static bool is_allowed(const Claim &c)
{
	const auto matches = [&](std::string_view text) {
		return std::ranges::any_of(c.allowed, [&](const std::string &a) { return glob_match(a, text); });
	};
	if (std::ranges::find(c.allowed, *c.wish) != c.allowed.end())
		return true;
	std::string list = *c.wish;
	std::ranges::replace_if(list, [](char ch) { return ch == ';' || ch == '|'; }, ',');
	return std::ranges::all_of(split(list, ','), [&](std::string_view one) { return matches(one) || (!one.empty() && one == c.mapped); });
}

static Result<void> settle(const Claim &c, const std::string &ns)
{
	c.out = c.mapped;
	if (!c.wish || c.wish->empty() || *c.wish == c.mapped) // Slurm's default is none of the mapping's
		return {};
	if (is_allowed(c)) {
		c.out = *c.wish;
		return {};
	}
	return Error{std::string("namespace ") + ns + " may not use " + c.what + " \"" +
		     one_line(*c.wish, 64) + "\""};
}

static Result<void> same_number(const char *what, const std::optional<std::string> &wish,
				std::uint32_t mapped, const std::string &ns)
{
	if (!wish || *wish == std::to_string(mapped))
		return {};
	return Error{std::string("namespace ") + ns + " may not run as " + what + " \"" +
		     one_line(*wish, 64) + "\""};
}

Result<Identity> identify(const kube::Pod &pod, const Wishes &wishes,
			  const ClusterSettings &settings, const UserLookup &lookup)
{
	const std::string &ns = pod.meta.ns;
	const NamespaceSettings *map = find_namespace(settings, ns);
	if (!map)
		return Error{"namespace " + ns + " is not mapped to a Slurm user; the administrator adds it "
			     "under namespaces: in slurm-k8s.yaml"};
	auto account = lookup(map->user);
	if (!account)
		return Error{"namespace " + ns + " is mapped to a user that the Slurm controller does not know"};

	static const std::string none;
	Identity id;
	id.user = map->user;
	id.uid = account->uid;
	id.gid = account->gid;
	const Claim claims[] = {
		{"account", wishes.account, map->account, map->allow.account, id.account},
		{"partition", wishes.partition, map->partition, map->allow.partition, id.partition},
		{"QOS", wishes.qos, map->qos, map->allow.qos, id.qos},
		{"reservation", wishes.reservation, none, map->allow.reservation, id.reservation},
		{"licenses", wishes.licenses, none, map->allow.licenses, id.licenses},
	};
	for (const Claim &c : claims)
		if (auto r = settle(c, ns); !r)
			return r.error();
	if (auto r = same_number("user", wishes.user_id, id.uid, ns); !r)
		return r.error();
	if (auto r = same_number("group", wishes.group_id, id.gid, ns); !r)
		return r.error();
	return id;
}

std::optional<Account> lookup_user(const std::string &user)
{
	passwd pw{}, *found = nullptr;
	std::vector<char> buffer(16 * 1024);
	if (getpwnam_r(user.c_str(), &pw, buffer.data(), buffer.size(), &found) || !found)
		return std::nullopt;
	return Account{pw.pw_uid, pw.pw_gid};
}

std::optional<std::string> known_user_name(std::uint32_t uid)
{
	passwd pw{}, *found = nullptr;
	std::vector<char> buffer(16 * 1024);
	const bool known = !getpwuid_r(uid, &pw, buffer.data(), buffer.size(), &found) && found;
	return known ? std::optional<std::string>(pw.pw_name) : std::nullopt;
}

std::vector<std::uint32_t> groups_of(const std::string &user, std::uint32_t gid)
{
	std::vector<gid_t> all(most_groups + 1);
	int count = static_cast<int>(all.size());
	(void) getgrouplist(user.c_str(), gid, all.data(), &count); // of too many it has filled what there is
	all.resize(std::min(all.size(), static_cast<std::size_t>(std::max(count, 0))));
	std::erase(all, gid);
	all.resize(std::min(all.size(), most_groups));
	return {all.begin(), all.end()};
}

std::string user_name(std::uint32_t uid)
{
	return known_user_name(uid).value_or(std::to_string(uid));
}

std::string user_text(std::uint32_t uid)
{
	const std::string name = user_name(uid), number = std::to_string(uid);
	return name == number ? "uid " + number : name + " (uid " + number + ")";
}

} // namespace sk8::core
