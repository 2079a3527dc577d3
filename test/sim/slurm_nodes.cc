// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Nodes of the model of Slurm: how they die and come back, and who drains them.
#include "test/sim/model_slurm.h"

#include <algorithm>
#include <cstdio>

namespace sk8::sim {

void ModelSlurm::end_jobs_on(const std::string &node)
{
	std::vector<std::uint32_t> ids;
	for (const auto &[id, job] : jobs_)
		if (job.running() && job.node == node)
			ids.push_back(id);
	for (auto id : ids)
		finish(jobs_.at(id), SK8_JOB_NODE_FAIL, 0, SK8_NO_UID);
}

void ModelSlurm::fail_jobs_on(const std::string &node)
{
	end_jobs_on(node);
	complete_on(node);
}

void ModelSlurm::node_dies(const std::string &node)
{
	dead_[node] = true;
	std::erase_if(processes_, [&](const BatchProcess &p) { return p.node == node; });
	// SlurmdTimeout
	later(dice_.between("slurm/timeout", 5 * second, 30 * second), [this, node] {
		if (!dead_[node])
			return;
		select_.nodes.at(node).usable = false;
		select_.nodes.at(node).down = true;
		nodes_stamp_ = wall();
		watcher_.slurm_changed();
		fail_jobs_on(node);
	});
}

void ModelSlurm::node_returns(const std::string &node)
{
	dead_[node] = false;
	if (!up())
		return;
	select_.nodes.at(node).usable = false;
	fail_jobs_on(node); // "unexpectedly rebooted"
	later(dice_.between("slurm/return", 200 * ms, 3 * second), [this, node] {
		if (dead_[node])
			return;
		select_.nodes.at(node).usable = true;
		select_.nodes.at(node).down = false;
		nodes_stamp_ = wall();
		watcher_.slurm_changed();
		kick();
	});
}

std::string ModelSlurm::reason_of(const SelectNode &n)
{
	return n.drain || n.set_down ? n.reason : n.down ? "Not responding" : n.fail ? "PSU" : "";
}

std::uint32_t ModelSlurm::jobs_on(const std::string &name) const
{
	auto count = static_cast<std::uint32_t>(select_.nodes.at(name).completing);
	for (const auto &[id, job] : jobs_)
		count += job.running() && job.node == name;
	return count;
}

sk8_node ModelSlurm::view(const std::string &name, const SelectNode &n) const
{
	sk8_node node{};
	node.name = name.c_str();
	node.cpus = node.cores = static_cast<std::uint32_t>(select_.cores);
	node.threads_per_core = 1;
	node.memory_mb = select_.memory;
	node.usable = n.usable && !n.drain && !n.set_down && !n.fail;
	node.drain = n.drain;
	node.fail = n.fail;
	node.maint = n.maint;
	node.down = n.down || n.set_down;
	reason_of_view_ = reason_of(n);
	node.reason = reason_of_view_.c_str();
	node.reason_uid = n.drain || n.set_down ? n.reason_uid : n.down ? model_slurm_uid : SK8_NO_UID;
	node.features = node.active_features = n.features.c_str();
	if (pings) { // lib/slurm/job_nodes.c
		const auto gpus = static_cast<std::uint64_t>(select_.gpus), used = static_cast<std::uint64_t>(std::ranges::count(n.gpus, true));
		node.used_cores = static_cast<std::uint32_t>(std::ranges::count(n.used, true));
		node.used_memory_mb = n.memory;
		gres_of_view_ = {"gpu", "", gpus, 0, nullptr};
		used_gres_of_view_ = {"gpu", "", used, 0, nullptr};
		node.gres_count = node.used_gres_count = gpus > 0;
		node.gres = &gres_of_view_;
		node.used_gres = &used_gres_of_view_;
	}
	node.job_count = jobs_on(name);
	return node;
}

void ModelSlurm::set_drain(const std::string &node, bool on, const std::string &reason, std::uint32_t by)
{
	SelectNode &n = select_.nodes.at(node);
	n.drain = on;
	n.reason = reason;
	n.reason_uid = by;
	nodes_stamp_ = wall();
	changed();
	if (!on)
		kick();
}

void ModelSlurm::drain(const std::string &node, const std::string &reason, std::uint32_t by)
{
	tell(story_, "scontrol: node ", node, " is drained: ", reason);
	set_drain(node, true, reason, by);
}

// scontrol update node= state=down: its jobs end, and it stays so when its slurmd registers.
void ModelSlurm::set_down(const std::string &node, const std::string &reason, std::uint32_t by)
{
	tell(story_, "scontrol: node ", node, " is set down: ", reason);
	SelectNode &n = select_.nodes.at(node);
	n.set_down = true;
	n.reason = reason;
	n.reason_uid = by;
	nodes_stamp_ = wall();
	end_jobs_on(node);
	changed();
}

void ModelSlurm::resume(const std::string &node)
{
	tell(story_, "scontrol: node ", node, " is resumed");
	select_.nodes.at(node).set_down = false;
	set_drain(node, false, "", SK8_NO_UID);
}

void ModelSlurm::set_flag(const std::string &node, bool SelectNode::*flag, bool on)
{
	tell(story_, "scontrol: node ", node, flag == &SelectNode::fail ? " fails: " : " is in maintenance: ", on ? "on" : "off");
	select_.nodes.at(node).*flag = on;
	nodes_stamp_ = wall();
	changed();
	if (!on)
		kick();
}

// node_state.c sk8_change_node(); we never set nodes DOWN here.
void ModelSlurm::change_node(const sk8_node_change &c, sk8_outcome &out)
{
	out = {};
	const SelectNode &n = select_.nodes.at(c.node);
	const bool away = n.drain || n.down || n.set_down || n.fail;
	const bool as_expected = c.expected[0] ? n.drain && !n.fail && n.reason == c.expected && n.reason_uid == model_slurm_uid
					       : c.action != SK8_NODE_RESUME && !away;
	if (!as_expected && !trusts_callers) {
		out.rc = 1;
		out.fatal = true;
		std::snprintf(out.text, sizeof(out.text), "Invalid node state specified");
		return;
	}
	watcher_.node_changed_by_us(c.node);
	tell(story_, "slurm: we change node ", c.node, ": ", c.action == SK8_NODE_RESUME ? "resume" : c.reason);
	if (c.action == SK8_NODE_RESUME)
		set_drain(c.node, false, "", SK8_NO_UID);
	else
		set_drain(c.node, true, c.reason, model_slurm_uid);
}

// node_features.c
void ModelSlurm::change_features(const sk8_feature_change &c, sk8_outcome &out)
{
	out = {};
	SelectNode &n = select_.nodes.at(c.node);
	out.rc = n.features != c.expected || n.features != c.expected_active;
	if (out.rc)
		return;
	n.features = c.features;
	nodes_stamp_ = wall();
	changed();
}

} // namespace sk8::sim
