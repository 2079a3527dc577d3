// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What `slurm-k8s status --node` tells of a node that jobs may have without others' pods.
#include "lib/core/exclusive_nodes.h"

#include <algorithm>

namespace sk8::core {

static std::string in_seconds(Millis left)
{
	return std::to_string((std::max(left, Millis(0)).count() + 999) / 1000) + " s";
}

std::string ExclusiveNodes::job_report(const Job &job, const std::string &node, const Crowd &crowd) const
{
	const std::string who = "job " + std::to_string(job.job->ref.id);
	if (!job.in_gate)
		return who + " has it without others' pods";
	if (step_of(job, node, crowd) == ExclusiveStep::open)
		return who + " gets it, no other pod is there";
	return "is emptied for " + who + ", for another " + in_seconds(job.until - ports_.timer.now()) + ": " + trouble(node, crowd);
}

std::vector<std::string> ExclusiveNodes::reports(const std::string &name) const
{
	std::vector<std::string> out;
	const auto it = of_.find(name);
	if (it == of_.end() || !nodes_.exclusive(name))
		return out;
	const Node &node = it->second;
	const Crowd crowd = ports_.crowd(name);
	const Millis now = ports_.timer.now();
	for (const Id &id : node.jobs)
		out.push_back(job_report(jobs_.at(id), name, crowd));
	if (node.jobs.empty() && tainted(name))
		out.push_back("no job has it, and it takes pods again in " + in_seconds(node.free_since + settings_.nodes.exclusive.idle - now));
	if (now < node.keeps_until)
		out.push_back("could not be emptied, and is not tried again for " + in_seconds(node.keeps_until - now));
	return out;
}

} // namespace sk8::core
