// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/exclusive_nodes.h"

#include <algorithm>

#include "lib/base/doubling.h"
#include "lib/base/log_limit.h"
#include "lib/core/node_taint.h"
#include "lib/core/reservation_log.h"

namespace sk8::core {

static constexpr Millis first_pause{1'000}, longest_pause{15'000};

#define log_node(level, name, format, ...) \
	log_limited(::sk8::LogLevel::level, name, "node %s/%s: " format, settings_.name.c_str(), \
		    (name).c_str() __VA_OPT__(, ) __VA_ARGS__)

ExclusiveNodes::ExclusiveNodes(const ClusterSettings &settings, ExclusivePorts ports, const NodeView &nodes)
	: settings_(settings), ports_(std::move(ports)), nodes_(nodes)
{
}

// ---- what Slurm tells ----

// It has the nodes of this run, and of no earlier one.
ExclusiveNodes::Job &ExclusiveNodes::enter(const NativeJobPtr &job)
{
	const Id id = id_of(job->ref);
	Job &j = jobs_[id];
	std::set<std::string> now;
	for (const NativeShare &share : job->shares)
		now.insert(share.node);
	if (j.job)
		for (const NativeShare &share : j.job->shares)
			if (!now.contains(share.node))
				leave(id, share.node);
	j.job = job;
	for (const auto &node : now) {
		of_[node].jobs.insert(id);
		of_[node].refused = false;
	}
	return j;
}

void ExclusiveNodes::leave(Id id, const std::string &node)
{
	auto it = of_.find(node);
	if (it == of_.end() || !it->second.jobs.erase(id) || !it->second.jobs.empty())
		return;
	it->second.free_since = ports_.timer.now();
	look_later(node, it->second.refused ? Millis(0) : settings_.nodes.exclusive.idle);
}

void ExclusiveNodes::forget(Id id)
{
	auto it = jobs_.find(id);
	if (it == jobs_.end())
		return;
	const NativeJobPtr job = it->second.job;
	jobs_.erase(it);
	for (const NativeShare &share : job->shares)
		leave(id, share.node);
}

void ExclusiveNodes::arrived(const NativeJobPtr &job)
{
	if (!job->exclusive)
		return;
	if (auto it = jobs_.find(id_of(job->ref)); it != jobs_.end() && it->second.in_gate)
		return;
	Job &j = enter(job);
	j.in_gate = true;
	j.until = ports_.timer.now() + settings_.nodes.exclusive.timeout;
	for (const NativeShare &share : job->shares)
		look_later(share.node, settings_.nodes.exclusive.timeout);
	look_at(*job);
}

void ExclusiveNodes::jobs_replaced(const std::vector<NativeJobPtr> &jobs)
{
	std::set<Id> listed;
	for (const auto &job : jobs) {
		if (!job->exclusive)
			continue;
		listed.insert(id_of(job->ref));
		if (auto it = jobs_.find(id_of(job->ref)); it != jobs_.end() && it->second.in_gate)
			continue;
		enter(job);
		if (job->ending)
			ports_.slurm.watch_end(job->ref);
	}
	std::vector<Id> gone;
	for (const auto &[id, j] : jobs_)
		if (!j.in_gate && !listed.contains(id))
			gone.push_back(id);
	for (const Id &id : gone)
		forget(id);
	jobs_listed_ = true;
	nodes_changed();
}

void ExclusiveNodes::ended(JobRef job)
{
	auto it = jobs_.find(id_of(job));
	if (it == jobs_.end())
		return;
	it->second.in_gate = false;
	ports_.slurm.watch_end(job);
}

// Of one that is in the gate (again) that it is nowhere is news of an earlier run; it can give nodes back there, too.
void ExclusiveNodes::left(JobRef job, const std::set<std::string> &still_on)
{
	auto it = jobs_.find(id_of(job));
	if (it == jobs_.end())
		return;
	const bool somewhere = std::ranges::any_of(it->second.job->shares, [&](const NativeShare &s) { return still_on.contains(s.node); });
	if (it->second.in_gate && !somewhere)
		return;
	if (still_on.empty())
		return forget(it->first);
	for (const NativeShare &share : it->second.job->shares)
		if (!still_on.contains(share.node))
			leave(it->first, share.node);
}

void ExclusiveNodes::answered(JobRef job, bool launched)
{
	auto it = jobs_.find(id_of(job));
	if (it == jobs_.end() || !std::exchange(it->second.in_gate, false) || launched)
		return;
	for (const NativeShare &share : it->second.job->shares) {
		if (!nodes_.exclusive(share.node) || ports_.crowd(share.node).none())
			continue;
		Node &node = of_[share.node];
		node.refused = true;
		node.keeps_until = ports_.timer.now() + settings_.nodes.exclusive.timeout;
		ports_.keeps_changed(share.node);
		look_later(share.node, settings_.nodes.exclusive.timeout);
	}
}

// ---- what Kubernetes tells ----

void ExclusiveNodes::node_changed(const std::string &node)
{
	if (of_.contains(node))
		return look(node);
	if (!settings_.nodes.exclusive.on() || !tainted(node))
		return;
	of_[node].free_since = ports_.timer.now(); // by an engine before this one: how long ago nobody knows
	look_later(node, settings_.nodes.exclusive.idle);
}

void ExclusiveNodes::nodes_changed()
{
	if (!settings_.nodes.exclusive.on() && of_.empty())
		return;
	for (const auto &name : nodes_.names())
		node_changed(name);
}

void ExclusiveNodes::pods_changed(const std::string &node)
{
	if (of_.contains(node))
		look(node);
}

void ExclusiveNodes::all_pods_changed()
{
	std::vector<std::string> names;
	for (const auto &[name, node] : of_)
		names.push_back(name);
	for (const auto &name : names)
		look(name);
}

// ---- decisions ----

bool ExclusiveNodes::tainted(const std::string &node) const
{
	const kube::Node *n = nodes_.find(node);
	return n && has_taint(*n, OurTaint::exclusive);
}

bool ExclusiveNodes::wants_taint(const std::string &node) const
{
	if (!settings_.nodes.exclusive.on())
		return false;
	ExclusiveUse use{.enabled = nodes_.exclusive(node), .tainted = tainted(node), .jobs_known = jobs_listed_};
	if (auto it = of_.find(node); it != of_.end()) {
		use.has_job = !it->second.jobs.empty();
		use.refused = it->second.refused;
		use.free_for = ports_.timer.now() - it->second.free_since;
	}
	return wants_exclusive_taint(use, settings_.nodes.exclusive.idle);
}

bool ExclusiveNodes::keeps_pods(const std::string &node) const
{
	auto it = of_.find(node);
	return it != of_.end() && ports_.timer.now() < it->second.keeps_until;
}

ExclusiveStep ExclusiveNodes::step_of(const Job &job, const std::string &node, const Crowd &crowd) const
{
	return exclusive_step({.known = nodes_.synced() && ports_.known(),
			       .enabled = nodes_.exclusive(node),
			       .tainted = tainted(node),
			       .crowded = !crowd.evictable.empty(),
			       .stays = crowd.stays.has_value(),
			       .too_late = ports_.timer.now() >= job.until});
}

static std::string pod_name(const PodKey &key)
{
	return "pod " + key.ns + "/" + key.name;
}

std::string ExclusiveNodes::trouble(const std::string &node, const Crowd &crowd) const
{
	if (crowd.evictable.empty())
		return "node " + node + " could not be tainted";
	std::string out = "node " + node + ": " + pod_name(crowd.evictable.front().key) + " has not gone";
	if (auto it = of_.find(node); it != of_.end())
		for (const auto &[uid, e] : it->second.evictions)
			if (!e.trouble.empty())
				return out + "; " + e.trouble;
	return out;
}

ExclusiveWord ExclusiveNodes::word(const NativeJob &job) const
{
	ExclusiveWord out;
	const auto it = jobs_.find(id_of(job.ref));
	if (it == jobs_.end() || !it->second.in_gate)
		return out;
	for (const NativeShare &share : job.shares) {
		const Crowd crowd = ports_.crowd(share.node);
		if (nodes_.synced() && !nodes_.find(share.node) && crowd.none())
			continue; // another cluster's, or Slurm's alone
		switch (step_of(it->second, share.node, crowd)) {
		case ExclusiveStep::open:
			break;
		case ExclusiveStep::refuse_pod:
			return {ExclusiveWord::Is::refused, "node " + share.node + ": " +
				pod_name(crowd.stays ? *crowd.stays : crowd.evictable.front().key) + " is there, and is not evicted"};
		case ExclusiveStep::refuse_late:
			return {ExclusiveWord::Is::refused, trouble(share.node, crowd)};
		default:
			out = {ExclusiveWord::Is::waits, trouble(share.node, crowd)};
		}
	}
	return out;
}

void ExclusiveNodes::look_at(const NativeJob &job)
{
	for (const NativeShare &share : job.shares)
		look(share.node);
}

void ExclusiveNodes::look_later(const std::string &node, Millis delay)
{
	ports_.timer.after(delay, [this, node] {
		if (of_.contains(node))
			look(node);
	});
}

void ExclusiveNodes::look(const std::string &name)
{
	Node &node = of_[name];
	const Millis now = ports_.timer.now();
	if (node.keeps_until > Millis(0) && now >= node.keeps_until) {
		node.keeps_until = Millis(0);
		ports_.keeps_changed(name);
	}
	const Crowd crowd = ports_.crowd(name);
	std::erase_if(node.evictions, [&](const auto &at) {
		return std::ranges::none_of(crowd.evictable, [&](const auto &pod) { return pod.key.uid == at.first; });
	});
	std::vector<JobRef> waiting;
	bool evicts = false;
	for (const Id &id : node.jobs)
		if (const Job &j = jobs_.at(id); j.in_gate) {
			waiting.push_back(j.job->ref);
			evicts |= step_of(j, name, crowd) == ExclusiveStep::evict;
		}
	if (evicts)
		evict_all(name, node, crowd);
	ports_.taint_changed(name);
	for (const JobRef &ref : waiting)
		ports_.word_changed(ref); // may come back to here
	auto it = of_.find(name);
	if (it != of_.end() && it->second.jobs.empty() && it->second.keeps_until == Millis(0) && !tainted(name))
		of_.erase(it);
}

void ExclusiveNodes::evict_all(const std::string &name, Node &node, const Crowd &crowd)
{
	for (const auto &pod : crowd.evictable) {
		const Eviction &e = node.evictions[pod.key.uid];
		if (!pod.leaves && !e.busy && ports_.timer.now() >= e.retry_at)
			evict(name, node, pod.key);
	}
}

void ExclusiveNodes::evict(const std::string &name, Node &node, const PodKey &pod)
{
	Eviction &e = node.evictions[pod.uid];
	e.busy = true;
	if (e.failures == 0)
		log_node(info, name, "%s is evicted for a job that wants the node for itself", pod_name(pod).c_str());
	ports_.kube.evict_pod(pod, [this, name, pod](const KubeReply &r) { evicted(name, pod, r); });
}

// That it goes, or has gone, the watch tells.
void ExclusiveNodes::evicted(const std::string &name, const PodKey &pod, const KubeReply &r)
{
	auto it = of_.find(name);
	if (it == of_.end() || !it->second.evictions.contains(pod.uid))
		return;
	Eviction &e = it->second.evictions.at(pod.uid);
	const Millis pause = r.ok() ? longest_pause : doubled(first_pause, longest_pause, e.failures);
	e.busy = false;
	e.failures++;
	e.retry_at = ports_.timer.now() + pause;
	e.trouble = r.ok() || r.status == 404 ? "" : r.error;
	if (!e.trouble.empty())
		log_node(verbose, name, "%s is not evicted yet: %s; tried again", pod_name(pod).c_str(), r.error.c_str());
	look_later(name, pause);
}

} // namespace sk8::core
