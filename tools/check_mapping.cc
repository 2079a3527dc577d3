// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s.yaml, and what it names in Slurm.
#include "tools/check.h"

#include <algorithm>
#include <set>

#include "lib/base/text.h"
#include "lib/core/identity.h"

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

// What Slurm's database knows, asked once per question.
class Accounting {
public:
	Accounting(const SlurmConf &conf, const Runner &run)
		: run_(run), cluster_(conf.get("ClusterName", "")),
		  used_(enforces_associations(conf))
	{
	}

	// Slurm refuses a job for what is missing there.
	bool used() const { return used_; }
	const std::string &error() const { return error_; } // of the first question that failed

	const std::set<std::string> &accounts_of(const std::string &user)
	{
		return ask("user " + user, {"sacctmgr", "-nP", "show", "assoc", "where", "cluster=" + cluster_,
					    "user=" + user, "format=account"});
	}
	const std::set<std::string> &qos() { return ask("qos", {"sacctmgr", "-nP", "show", "qos", "format=name"}); }

private:
	const std::set<std::string> &ask(const std::string &key, const std::vector<std::string> &argv)
	{
		auto [at, fresh] = answers_.try_emplace(key);
		if (!fresh || !error_.empty())
			return at->second;
		auto text = run_(argv);
		if (!text)
			error_ = text.error().message;
		else
			for (auto line : split(*text, '\n'))
				if (!trim(line).empty())
					at->second.emplace(trim(line));
		return at->second;
	}

	const Runner &run_;
	const std::string cluster_;
	const bool used_;
	std::map<std::string, std::set<std::string>> answers_;
	std::string error_;
};

} // namespace

// One line of the mapping against Slurm; returns what is wrong with it.
static std::vector<std::string> wrong_with(const core::NamespaceSettings &ns, const std::set<std::string> &partitions,
					   bool has_default_partition, Accounting &db)
{
	std::vector<std::string> out;
	if (!core::lookup_user(ns.user))
		out.push_back("there is no user " + ns.user + " on this host; make it, or name another one");
	if (!ns.partition.empty() && !partitions.contains(ns.partition))
		out.push_back("slurm.conf has no partition " + ns.partition);
	if (ns.partition.empty() && !has_default_partition)
		out.push_back("no partition is named and slurm.conf has none with Default=YES; name one");
	if (!db.used())
		return out;
	const std::set<std::string> accounts = db.accounts_of(ns.user);
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
	std::set<std::string> partitions;
	bool has_default = false;
	for (const ConfLine &line : conf.partitions()) {
		for (auto name : split(line.at("partitionname").value, ','))
			partitions.emplace(name);
		const auto it = line.find("default");
		has_default = has_default || (it != line.end() && !it->second.value.empty() &&
					      (it->second.value[0] == 'Y' || it->second.value[0] == 'y'));
	}
	Accounting db(conf, run);
	for (const auto &cluster : settings.clusters) {
		const std::string about = "namespaces of " + cluster.name;
		bool good = true;
		for (const auto &ns : cluster.namespaces)
			for (const auto &what : wrong_with(ns, partitions, has_default, db)) {
				good = false;
				out.problem(about, "match: " + ns.match + ": " + what);
			}
		if (cluster.namespaces.empty())
			out.warning(about, "no namespace is mapped, so every pod is refused; add namespaces: to slurm-k8s.yaml");
		else if (good)
			out.ok(about, std::to_string(cluster.namespaces.size()) + " entries");
	}
	if (!db.error().empty())
		out.warning("accounting", "accounts and QOS are not looked at: " + db.error());
}

} // namespace sk8::tools
