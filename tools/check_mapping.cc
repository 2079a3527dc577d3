// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s.yaml, and what it names in Slurm.
#include "tools/check.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/identity.h"
#include "tools/accounting.h"

namespace sk8::tools {

std::optional<core::Settings> check_settings(const std::string &path, std::uint32_t slurm_uid, Findings &out)
{
	auto settings = core::load_settings(path, slurm_uid);
	if (!settings) {
		for (auto line : split(settings.error().message, '\n'))
			out.problem("slurm-k8s.yaml", std::string(line));
		return std::nullopt;
	}
	out.ok("slurm-k8s.yaml", path + ": " + std::to_string(settings->clusters.size()) + " clusters");
	return *settings;
}

namespace {

struct Partitions {
	std::map<std::string, const ConfLine *> by_name;
	std::string default_name; // empty: there is none
};

} // namespace

static Partitions partitions_of(const SlurmConf &conf)
{
	Partitions out;
	for (const ConfLine &line : conf.partitions())
		for (auto name : split(line.at("partitionname").value, ',')) {
			out.by_name[std::string(name)] = &line;
			if (const auto it = line.find("default"); it != line.end() && conf_key(it->second.value).starts_with('y'))
				out.default_name = name;
		}
	return out;
}

// One line of the mapping against Slurm; returns what is wrong with it.
static std::vector<std::string> wrong_with(const core::NamespaceSettings &ns, const Partitions &partitions, Accounting &db)
{
	std::vector<std::string> out;
	if (!core::lookup_user(ns.user))
		out.push_back("there is no user " + ns.user + " on this host; make it, or name another one");
	if (!ns.partition.empty() && !partitions.by_name.contains(ns.partition))
		out.push_back("slurm.conf has no partition " + ns.partition);
	if (ns.partition.empty() && partitions.default_name.empty())
		out.push_back("no partition is named and slurm.conf has none with Default=YES; name one");
	if (!db.used())
		return out;
	const Names accounts = db.accounts_of(ns.user);
	const bool no_qos = !ns.qos.empty() && !db.qos().contains(ns.qos);
	if (!db.error().empty())
		return out;
	if (accounts.empty())
		out.push_back("user " + ns.user + " has no association in slurmdbd; run: sacctmgr add user " + ns.user +
			      " account=" + (ns.account.empty() ? "ACCOUNT" : ns.account));
	else if (!ns.account.empty() && !accounts.contains(ns.account))
		out.push_back("user " + ns.user + " has no association with account " + ns.account + " in slurmdbd; run: sacctmgr add user " +
			      ns.user + " account=" + ns.account);
	if (no_qos)
		out.push_back("slurmdbd has no QOS " + ns.qos);
	return out;
}

// True: it is good.
static bool check_entry(const core::NamespaceSettings &ns, const std::string &about, const SlurmConf &conf,
			const Partitions &partitions, Accounting &db, Findings &out)
{
	const std::string entry = "match: " + ns.match + ": ";
	const auto wrong = wrong_with(ns, partitions, db);
	for (const auto &what : wrong)
		out.problem(about, entry + what);
	if (!wrong.empty())
		return false;
	const std::string &name = ns.partition.empty() ? partitions.default_name : ns.partition;
	const auto closed = kept_out(ns, name, *partitions.by_name.at(name), conf, db);
	for (const auto &what : closed)
		out.warning(about, entry + what);
	return closed.empty();
}

// The jobs of pods come from no node: k8s is what Slurm has as their AllocNode.
static void check_alloc_nodes(const SlurmConf &conf, Findings &out)
{
	for (const ConfLine &line : conf.partitions()) {
		const auto at = line.find("allocnodes");
		if (at == line.end() || conf_key(at->second.value) == "all")
			continue;
		const auto names = split(at->second.value, ',');
		if (std::ranges::find(names, std::string_view("k8s")) == names.end())
			out.warning("AllocNodes", at->second.place() + ": AllocNodes of partition " + line.at("partitionname").value +
							  " is without k8s, so it takes no pods; add k8s if it is to");
	}
}

void check_mapping(const core::Settings &settings, const SlurmConf &conf, const Runner &run, Findings &out)
{
	check_alloc_nodes(conf, out);
	const Partitions partitions = partitions_of(conf);
	Accounting db(conf, run);
	for (const auto &cluster : settings.clusters) {
		const std::string about = "namespaces of " + cluster.name;
		bool good = true;
		for (const auto &ns : cluster.namespaces)
			good = check_entry(ns, about, conf, partitions, db, out) && good;
		if (cluster.namespaces.empty())
			out.warning(about, "no namespace is mapped, so every pod is refused; add namespaces: to slurm-k8s.yaml");
		else if (good)
			out.ok(about, std::to_string(cluster.namespaces.size()) + " entries");
	}
	if (!db.error().empty())
		out.warning("accounting", "accounts and QOS are not looked at: " + db.error());
}

} // namespace sk8::tools
