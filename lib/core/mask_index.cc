// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/mask_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sk8::core {

MaskIndex::OfNode &MaskIndex::touch(const std::string &node)
{
	snapshot_.reset(); // built when a hook asks: many changes, one build
	OfNode &of = nodes_[node];
	of.built.reset();
	return of;
}

// Something of this node went.
void MaskIndex::left(const std::string &node)
{
	if (touch(node).none())
		nodes_.erase(node);
}

void MaskIndex::put(const std::string &id, const Hold &hold)
{
	auto [at, fresh] = where_.try_emplace(id, hold.node);
	if (!fresh && at->second != hold.node) {
		drop(id);
		where_[id] = hold.node;
	}
	touch(hold.node).holds[id] = &hold;
}

void MaskIndex::drop(const std::string &id)
{
	auto at = where_.find(id);
	if (at == where_.end())
		return;
	const std::string node = std::move(at->second);
	where_.erase(at);
	nodes_.at(node).holds.erase(id);
	left(node);
}

bool MaskIndex::set_allocatable(const std::string &node, const Allocatable &allocatable)
{
	Allocatable &known = allocatable_[node];
	if (known == allocatable)
		return false;
	known = allocatable;
	if (!nodes_.contains(node))
		return false;
	touch(node);
	return other_ = true;
}

void MaskIndex::set_full(const std::string &cluster, const std::map<std::string, Full> &nodes)
{
	const auto before = std::exchange(full_[cluster], nodes);
	for (const auto &[node, full] : nodes) {
		less_full_.erase(node);
		if (const auto known = nodes_.find(node); known != nodes_.end() && known->second.full == full)
			continue;
		const auto was = before.find(node);
		if (was == before.end())
			touch(node).full = full;
		else
			less_full_[node] = full; // another kind of sharing
	}
	for (const auto &[node, full] : before)
		if (!nodes.contains(node))
			less_full_[node] = {};
	if (nodes.empty())
		full_.erase(cluster);
}

void MaskIndex::put_free(const Hold &hold)
{
	touch(hold.node).free.push_back(hold);
	with_free_.insert(hold.node);
}

void MaskIndex::block(const std::string &cluster, const std::vector<std::string> &nodes, Wait wait)
{
	open(cluster);
	untold_.erase(cluster);
	if (nodes.empty())
		return;
	for (const auto &node : nodes)
		touch(node).blocked_by.insert(cluster);
	blocked_[cluster] = nodes;
	untold_[cluster] = wait;
}

void MaskIndex::open(const std::string &cluster)
{
	known_.erase(cluster);
	const auto blocked = blocked_.extract(cluster);
	if (!blocked)
		return;
	for (const auto &node : blocked.mapped()) {
		auto n = nodes_.find(node);
		if (n == nodes_.end())
			continue; // nodes.names may have it twice
		n->second.blocked_by.erase(cluster);
		left(node);
	}
}

bool MaskIndex::unblock(const std::string &cluster)
{
	if (blocked_.contains(cluster))
		known_.insert(cluster);
	return untold_.erase(cluster) > 0;
}

bool MaskIndex::stop_waiting(const std::string &cluster)
{
	const auto wait = waits_for(cluster);
	return wait && *wait != Wait::until_it_has && blocked_.contains(cluster) && known_.insert(cluster).second;
}

std::map<std::string, Wait> MaskIndex::closed() const
{
	std::map<std::string, Wait> out;
	for (const auto &[cluster, wait] : untold_)
		if (blocked_.contains(cluster) && !known_.contains(cluster))
			out.emplace(cluster, wait);
	return out;
}

std::optional<Wait> MaskIndex::waits_for(const std::string &cluster) const
{
	const auto it = untold_.find(cluster);
	return it == untold_.end() ? std::nullopt : std::optional(it->second);
}

bool MaskIndex::let_go()
{
	if (!can_go())
		return false;
	for (const auto &node : std::exchange(with_free_, {})) {
		nodes_.at(node).free.clear();
		left(node);
	}
	for (const auto &cluster : std::exchange(known_, {}))
		open(cluster);
	for (const auto &[node, full] : std::exchange(less_full_, {})) {
		touch(node).full = full;
		left(node);
	}
	other_ = false;
	return true;
}

void MaskIndex::forget_holds()
{
	where_.clear();
	with_free_.clear();
	for (auto n = nodes_.begin(); n != nodes_.end();) {
		const std::string node = n++->first; // left() may erase it
		nodes_.at(node).holds.clear();
		nodes_.at(node).free.clear();
		left(node);
	}
}

using Cores = std::vector<std::uint16_t>;

template <class T>
static void sort_once_each(std::vector<T> &list)
{
	std::ranges::sort(list);
	list.erase(std::ranges::unique(list).begin(), list.end());
}

// How often cores are named by a hold after another one did: that has others in truth, which nobody knows. The saved ledger
// tells of an adopted pod which cores it had before, and another may have got these until slurmctld was killed. Foreign pods
// may share a core by its threads.
static std::uint32_t named_again(Cores own, Cores foreign)
{
	const auto all = own.size();
	sort_once_each(own);
	sort_once_each(foreign);
	Cores both;
	std::ranges::set_intersection(own, foreign, std::back_inserter(both));
	return static_cast<std::uint32_t>(all - own.size() + both.size());
}

// What several pods hold counts once.
static void add_once_each(GresList &to, const GresList &shared)
{
	for (const Gres &g : shared) {
		Gres more = g;
		const auto known = devices_named(to, g.name);
		std::erase_if(more.devices, [&](std::uint16_t d) { return std::ranges::binary_search(known, d); });
		more.count = more.devices.size();
		if (more.count > 0)
			to.push_back(std::move(more));
	}
}

// for_exclusive: for a job that is launched when what can be evicted is gone.
std::shared_ptr<NodeMask> MaskIndex::build(const std::string &node, const OfNode &of, bool for_exclusive)
{
	auto m = std::make_shared<NodeMask>();
	Cores own, foreign;
	bool differs = false;
	auto add = [&](const Hold &h) {
		differs |= h.in_way != Hold::InWay::no;
		m->whole |= for_exclusive && h.in_way == Hold::InWay::stays;
		if (for_exclusive && h.in_way == Hold::InWay::evictable)
			return;
		auto &cores = h.foreign ? foreign : own;
		cores.insert(cores.end(), h.cores.begin(), h.cores.end());
		m->more_cores += h.more_cores;
		(h.overhead ? m->overhead_milli_cpu : m->milli_cpu) += h.milli_cpu;
		(h.overhead ? m->overhead_mb : m->memory_mb) += h.memory_mb;
		m->gres.insert(m->gres.end(), h.gres.begin(), h.gres.end());
		m->clusters.insert(h.key.cluster);
		if (h.job_id)
			m->jobs.push_back(h.job_id);
		m->some_jobs |= h.some_jobs;
	};
	auto add_shared = [&](const Hold &h) {
		if (!for_exclusive || h.in_way != Hold::InWay::evictable)
			add_once_each(m->gres, h.shared);
	};
	for (const auto &[id, hold] : of.holds)
		add(*hold);
	for (const Hold &hold : of.free) // counted as before: a mask becomes less by let_go() alone
		add(hold);
	for (const auto &[id, hold] : of.holds)
		add_shared(*hold);
	for (const Hold &hold : of.free)
		add_shared(hold);
	m->more_cores += named_again(own, foreign);
	m->node = node;
	if (auto known = allocatable_.find(node); known != allocatable_.end())
		m->allocatable = known->second;
	m->whole |= !of.blocked_by.empty();
	const auto waits_only = [&](auto wait_is) {
		return !of.blocked_by.empty() && std::ranges::all_of(of.blocked_by, [&](const auto &cluster) {
			return untold_.contains(cluster) && wait_is(untold_.at(cluster));
		});
	};
	m->for_a_while = waits_only([](Wait wait) { return wait != Wait::until_it_has; });
	m->for_a_moment = waits_only([](Wait wait) { return wait == Wait::a_moment; });
	if (!for_exclusive)
		m->full = of.full; // what goes leaves room for the job's pod
	m->clusters.insert(of.blocked_by.begin(), of.blocked_by.end());
	m->gres = merged(std::move(m->gres));
	m->gres_abi = gres_to_abi(m->gres);
	m->version = ++version_;
	m->cores = std::move(own);
	m->cores.insert(m->cores.end(), foreign.begin(), foreign.end());
	sort_once_each(m->cores);
	sort_once_each(m->jobs);
	if (differs && !for_exclusive)
		m->exclusive = build(node, of, true);
	return m;
}

std::shared_ptr<const MaskSnapshot> MaskIndex::snapshot()
{
	if (snapshot_ || nodes_.empty())
		return snapshot_;
	auto out = std::make_shared<MaskSnapshot>();
	out->generation = ++generation_;
	out->masks.reserve(nodes_.size());
	for (auto &[node, of] : nodes_) {
		if (!of.built)
			of.built = build(node, of, false);
		out->masks.push_back(of.built);
	}
	return snapshot_ = std::move(out);
}

} // namespace sk8::core
