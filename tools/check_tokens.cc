// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// tokens.partitions, and what it needs of Slurm.
#include "tools/check.h"

#include <algorithm>

#include "lib/base/text.h"

namespace sk8::tools {

static const std::string about = "tokens.partitions";

// Has any line NodeName= of slurm.conf this GRES?
static bool has_any_node(const SlurmConf &conf, std::string_view token)
{
	return std::ranges::any_of(conf.nodes(), [token](const ConfLine &node) {
		const auto gres = node.find("gres");
		return gres != node.end() && std::ranges::any_of(split(gres->second.value, ','),
								 [token](auto word) { return split(word, ':').front() == token; });
	});
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
	for (const auto &glob : globs)
		if (std::ranges::none_of(conf.partitions(), [&](const ConfLine &line) {
			const auto name = line.find("partitionname");
			return name != line.end() && glob_match(glob, name->second.value);
		})) {
			out.warning(about, "no partition in slurm.conf is named " + one_line(glob, 64) + "; correct slurm-k8s.yaml");
			good = false;
		}
	if (good)
		out.ok(about, "jobs there get k8scpu and k8smemory for their CPUs and memory");
}

} // namespace sk8::tools
