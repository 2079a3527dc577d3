// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Whom the partition of pods takes: what slurm.conf and slurmdbd say of the user, account and QOS that the mapping gives them.
#include "tools/check.h"

#include <algorithm>
#include <grp.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/core/identity.h"
#include "tools/accounting.h"

namespace sk8::tools {

namespace {

// As part_policy_valid_acct(), part_policy_valid_qos() and validate_group() in slurmctld have it: where a partition allows some
// it denies none.
struct Rule {
	const char *word;
	const char *allow, *deny; // as slurm.conf(5) writes them; deny: null if there is none
	std::map<std::string, Names> PodsJob::*values;
};

constexpr Rule rules[] = {
	{"account", "AllowAccounts", "DenyAccounts", &PodsJob::accounts},
	{"QOS", "AllowQos", "DenyQos", &PodsJob::qos},
	{"group", "AllowGroups", nullptr, &PodsJob::groups},
};

// What a partition names by this key.
struct Listed {
	Names names; // none: it says nothing, or all
	std::string place;
};

} // namespace

static Listed listed(const ConfLine &partition, const char *key)
{
	Listed out;
	const auto at = key ? partition.find(conf_key(key)) : partition.end();
	if (at == partition.end() || conf_key(at->second.value) == "all")
		return out;
	for (auto name : split(at->second.value, ','))
		if (!trim(name).empty())
			out.names.emplace(conf_key(trim(name)));
	out.place = at->second.place();
	return out;
}

static std::string named(const Rule &rule, const std::map<std::string, Names> &values)
{
	std::vector<std::string> names;
	for (const auto &[name, stands_for] : values)
		names.push_back(name);
	return std::string(rule.word) + (names.size() > 1 && rule.values != &PodsJob::qos ? "s " : " ") + some(names);
}

static std::string kept_out_by(const Rule &rule, const std::string &partition, const ConfLine &line, const PodsJob &job)
{
	const auto &values = job.*rule.values;
	const Listed allowed = listed(line, rule.allow), denied = listed(line, rule.deny);
	const auto is_allowed = [&](const auto &value) {
		return std::ranges::any_of(value.second, [&](const auto &name) { return allowed.names.contains(conf_key(name)); });
	};
	const auto is_denied = [&](const auto &value) { return denied.names.contains(conf_key(value.first)); };
	if (values.empty())
		return "";
	if (!allowed.names.empty() && std::ranges::none_of(values, is_allowed))
		return std::string(rule.allow) + " of partition " + partition + " is without " + named(rule, values) + ", so that pods never "
		       "start there; add one (" + allowed.place + "), or map another partition";
	if (allowed.names.empty() && !denied.names.empty() && std::ranges::all_of(values, is_denied))
		return std::string(rule.deny) + " of partition " + partition + " has " + named(rule, values) + ", so that pods never start there; "
		       "take it off (" + denied.place + "), or map another partition";
	return "";
}

std::vector<std::string> kept_out_of(const std::string &partition, const ConfLine &line, const PodsJob &job)
{
	std::vector<std::string> out;
	for (const Rule &rule : rules)
		if (std::string why = kept_out_by(rule, partition, line, job); !why.empty())
			out.push_back(std::move(why));
	return out;
}

static Names groups_of(const std::string &user, gid_t first)
{
	std::vector<gid_t> ids(64);
	int count = static_cast<int>(ids.size());
	if (::getgrouplist(user.c_str(), first, ids.data(), &count) < 0) { // it has said how many there are
		ids.resize(static_cast<std::size_t>(count));
		(void) ::getgrouplist(user.c_str(), first, ids.data(), &count);
	}
	ids.resize(std::min(ids.size(), static_cast<std::size_t>(std::max(count, 0))));
	Names out;
	for (const gid_t id : ids)
		if (const group *found = ::getgrgid(id))
			out.emplace(found->gr_name);
	return out;
}

static std::map<std::string, Names> themselves(const Names &names)
{
	std::map<std::string, Names> out;
	for (const std::string &name : names)
		out[name] = {name};
	return out;
}

namespace {

// Of a user's associations with some accounts in one partition.
struct UsersQos {
	Names allowed, defaults;
	bool defaults_known = true;
};

} // namespace

// assoc_mgr_get_default_qos_info(): the default, else the only one, else something that is not asked for here.
static UsersQos qos_in(const Names &rows, const Names &accounts, const std::string &partition)
{
	UsersQos out;
	for (const std::string &row : rows) {
		const auto cells = split(row, '|');
		if (cells.size() != 4 || !accounts.contains(std::string(cells[0])) || !(cells[1].empty() || cells[1] == partition))
			continue;
		for (auto name : split(cells[2], ','))
			if (!name.empty())
				out.allowed.emplace(name);
		const bool only = cells[2].find(',') == cells[2].npos;
		const std::string usual(!cells[3].empty() || !only ? cells[3] : cells[2]);
		out.defaults_known = out.defaults_known && !usual.empty();
		out.defaults.insert(usual);
	}
	return out;
}

static std::string without_qos(const core::NamespaceSettings &ns)
{
	const std::string account = ns.account.empty() ? "" : " account=" + ns.account;
	return "user " + ns.user + " has no QOS " + ns.qos + (account.empty() ? "" : " with account " + ns.account) +
	       " in slurmdbd, so that Slurm refuses these pods; run: sacctmgr modify user where name=" + ns.user + account + " set qos+=" + ns.qos;
}

std::vector<std::string> kept_out(const core::NamespaceSettings &ns, const std::string &partition, const ConfLine &line,
				  const SlurmConf &conf, Accounting &db)
{
	const auto user = core::lookup_user(ns.user);
	const bool may_all = !user || user->uid == 0 || ns.user == conf.slurm_user(); // groups and QOS are nothing to them
	PodsJob job;
	if (!may_all && line.contains("allowgroups"))
		job.groups = themselves(groups_of(ns.user, user->gid));
	std::vector<std::string> out;
	if (db.used()) {
		const Names accounts = ns.account.empty() ? db.accounts_of(ns.user) : Names{ns.account};
		job.accounts = themselves(accounts);
		if (line.contains("allowaccounts"))
			for (auto &[account, stands_for] : job.accounts)
				stands_for = db.with_those_above(account);
		const bool counts = enforces_qos(conf) && !may_all;
		if (!ns.qos.empty())
			job.qos = themselves({ns.qos});
		if (ns.qos.empty() ? line.contains("allowqos") || line.contains("denyqos") : counts) {
			const UsersQos qos = qos_in(db.qos_of(ns.user), accounts, partition);
			if (ns.qos.empty() && qos.defaults_known)
				job.qos = themselves(qos.defaults);
			if (!ns.qos.empty() && !qos.allowed.contains(ns.qos))
				out.push_back(without_qos(ns));
		}
		if (!db.error().empty())
			return {};
	}
	const auto by_partition = kept_out_of(partition, line, job);
	out.insert(out.end(), by_partition.begin(), by_partition.end());
	return out;
}

} // namespace sk8::tools
