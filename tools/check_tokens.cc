// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// tokens.partitions, and what it needs of Slurm.
#include "tools/check.h"

#include <algorithm>

#include "lib/base/node_list.h"
#include "lib/base/text.h"

namespace sk8::tools {

static const std::string about = "tokens.partitions";

static std::string value_of(const ConfLine &line, const char *key)
{
	const auto it = line.find(key);
	return it == line.end() ? std::string() : it->second.value;
}

static bool has_gres(const ConfLine &node, std::string_view token)
{
	const std::string gres = value_of(node, "gres");
	return std::ranges::any_of(split(gres, ','), [token](auto word) { return split(word, ':').front() == token; });
}

// Has any line NodeName= of slurm.conf this GRES?
static bool has_any_node(const SlurmConf &conf, std::string_view token)
{
	return std::ranges::any_of(conf.nodes(), [token](const ConfLine &node) { return has_gres(node, token); });
}

static constexpr std::size_t most_nodes = 65'536; // of a list that is looked into

static bool is_in(const std::set<std::string> &names, const std::string &list)
{
	if (conf_key(list) == "all")
		return true;
	const auto of = expand_nodes(list, most_nodes); // a NodeSet is a name that no node has
	return of && std::ranges::any_of(*of, [&](const std::string &name) { return names.contains(name); });
}

// Those of no use to its jobs: a node that is not shared has no tokens, and needs none but for this.
static bool check_nodes(const SlurmConf &conf, const ConfLine &partition, Findings &out)
{
	const std::string name = value_of(partition, "partitionname"), nodes = value_of(partition, "nodes");
	for (const ConfLine &line : conf.nodes()) {
		const std::string list = value_of(line, "nodename");
		const auto names = expand_nodes(list, most_nodes);
		const char *lacks = !has_gres(line, "k8scpu") ? "k8scpu" : !has_gres(line, "k8smemory") ? "k8smemory" : nullptr;
		if (!lacks || !names || !is_in(*names, nodes))
			continue;
		out.warning(about, "nodes " + one_line(list, 64) + " of partition " + one_line(name, 64) + " have no Gres=" + lacks +
				   ", so that no job of it starts there; add it, or take the partition out of tokens.partitions");
		return false;
	}
	return true;
}

// Which of a partition's nodes does Kubernetes not share?
static std::vector<std::string> others(const SlurmConf &conf, const std::string &nodes, const std::set<std::string> &shared)
{
	std::set<std::string> out;
	for (const ConfLine &line : conf.nodes())
		for (const auto &name : expand_nodes(value_of(line, "nodename"), most_nodes).value_or(std::set<std::string>()))
			if (!shared.contains(name) && is_in({name}, nodes))
				out.insert(name);
	return {out.begin(), out.end()};
}

void check_token_nodes(const core::Settings &settings, const SlurmConf &conf, const std::set<std::string> &shared, Findings &out)
{
	for (const ConfLine &partition : conf.partitions()) {
		const std::string name = value_of(partition, "partitionname");
		if (name.empty() || std::ranges::none_of(settings.tokens.partitions, [&](const std::string &glob) { return glob_match(glob, name); }))
			continue;
		if (const auto found = others(conf, value_of(partition, "nodes"), shared); !found.empty())
			out.warning(about, some(found) + " of partition " + one_line(name, 64) + (found.size() == 1 ? " is" : " are") +
					   " not shared with Kubernetes, so that tokens keep its jobs from nothing there; name only partitions all of whose "
					   "nodes are shared");
	}
}

static bool check_token(const SlurmConf &conf, const std::string &token, Findings &out)
{
	const std::string configured = conf.get("GresTypes", "");
	const auto types = split(configured, ',');
	if (std::ranges::none_of(types, [&](auto type) { return trim(type) == token; }))
		out.problem(about, "GresTypes in slurm.conf has no " + token + ", so that no job gets any; add it there, and to Gres= of all nodes "
				   "of these partitions and to gres.conf");
	else if (!has_any_node(conf, token))
		out.problem(about, "no node in slurm.conf has Gres=" + token + ", so that no job of these partitions can start; add it to all of their "
				   "nodes and to gres.conf");
	else
		return true;
	return false;
}

void check_tokens(const core::Settings &settings, const SlurmConf &conf, Findings &out)
{
	const auto &globs = settings.tokens.partitions;
	if (globs.empty())
		return;
	bool good = check_token(conf, "k8scpu", out);
	good = check_token(conf, "k8smemory", out) && good;
	for (const auto &glob : globs) {
		bool some = false;
		for (const ConfLine &partition : conf.partitions())
			if (const std::string name = value_of(partition, "partitionname"); !name.empty() && glob_match(glob, name)) {
				some = true;
				good = check_nodes(conf, partition, out) && good;
			}
		if (some)
			continue;
		out.warning(about, "no partition in slurm.conf is named " + one_line(glob, 64) + "; correct slurm-k8s.yaml");
		good = false;
	}
	if (good)
		out.ok(about, "jobs there get k8scpu and k8smemory for their CPUs and memory");
}

} // namespace sk8::tools
