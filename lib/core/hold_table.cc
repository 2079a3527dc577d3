// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/hold_table.h"

#include <algorithm>
#include <iterator>

namespace sk8::core {

// Its job, suspended or not.
bool HoldTable::runs_there(const std::string &id) const
{
	const auto h = holds_.find(id);
	const auto r = running_.find(id);
	return h != holds_.end() && r != running_.end() && r->second.node == h->second.node;
}

// Devices, each named, that the job has not: Slurm knows it as it was before its pod claimed them, or has started it, which it had
// forgotten, anywhere on the node.
static GresList beyond(const GresList &held, const GresList &job)
{
	GresList out;
	for (const Gres &g : held) {
		const auto has = devices_named(job, g.name);
		Gres more{g.name, g.type, 0, {}};
		std::ranges::set_difference(g.devices, has, std::back_inserter(more.devices));
		more.count = more.devices.size();
		if (more.count > 0)
			out.push_back(std::move(more));
	}
	return out;
}

static void keep_beyond(Hold &hold, const GresList &before)
{
	GresList more = beyond(before, hold.gres);
	if (more.empty())
		return;
	std::ranges::move(more, std::back_inserter(hold.gres));
	hold.gres = merged(std::move(hold.gres));
}

// Of a hold whose job is there, or is to start there now: the cores of a suspended one, whose memory and GRES stay the job's,
// what it shares, what it has by a resize, and devices that the job has not.
std::optional<Hold> HoldTable::part_masked(const std::string &id) const
{
	const Hold &h = holds_.at(id);
	const Running *job = runs_there(id) ? &running_.at(id) : nullptr;
	Hold out = h;
	out.cores.clear();
	if (job && job->suspended && !lifted_.contains(id))
		out.cores = job->cores;
	out.more_cores = job ? above(h.core_count(), job->core_count()) : 0;
	out.memory_mb = job && job->memory_mb ? above(h.memory_mb, job->memory_mb) : 0; // 0: Slurm does not count it
	out.gres = job ? beyond(h.gres, job->gres) : GresList();
	if (out.cores.empty() && !out.more_cores && !out.memory_mb && out.gres.empty() && out.shared.empty())
		return std::nullopt;
	return out;
}

HoldTable::Running HoldTable::running_of(const Job &job)
{
	return {job.ref, job.node, job.cores, job.memory_mb, job.state == SK8_JOB_SUSPENDED, job.gres};
}

// After a change of what is known of one pod; mutex_ is held. Hooks wait for
// this mutex, so the cost must not grow with the number of holds.
void HoldTable::changed(const std::string &id)
{
	const auto h = holds_.find(id);
	std::optional<Hold> part;
	if (h == holds_.end()) {
		masks_.drop(id);
	} else if (!runs_there(id) && !lifted_.contains(id)) {
		masks_.put(id, h->second);
	} else if (part = part_masked(id); part) {
		masks_.put(id, parts_[id] = std::move(*part));
	} else {
		masks_.drop(id);
	}
	if (!part)
		parts_.erase(id); // which masks_ referred to
	publish();
}

void HoldTable::all_changed()
{
	for (const auto &[id, h] : holds_)
		changed(id);
	publish();
}

void HoldTable::publish()
{
	any_.store(!masks_.empty(), std::memory_order_release);
}

// A mask is about to be no hold any more, or one of another node.
void HoldTable::leave(const Hold &hold)
{
	const std::string id = hold.key.id();
	const auto part = parts_.find(id);
	if (masks_.contains(id))
		masks_.put_free(part == parts_.end() ? hold : part->second);
}

bool HoldTable::masks_can_go() const
{
	std::lock_guard lock(mutex_);
	return masks_.can_go();
}

bool HoldTable::let_masks_go()
{
	std::lock_guard lock(mutex_);
	const bool some = masks_.let_go();
	publish();
	return some;
}

void HoldTable::run(const std::string &id, Running job)
{
	if (auto of = seconds_.find(id); of != seconds_.end())
		std::erase_if(of->second, [&](const Running &r) { return r.ref == job.ref; });
	const auto [at, fresh] = running_.try_emplace(id, job);
	if (fresh)
		return;
	if (at->second.ref != job.ref) {
		auto h = holds_.find(id);
		const bool stays = h != holds_.end() && at->second.node == h->second.node;
		if (!stays)
			std::swap(at->second, job);
		seconds_[id].push_back(std::move(job));
	} else {
		at->second = std::move(job);
	}
}

// The one on that node, or else any.
std::optional<HoldTable::Running> HoldTable::take_second(const std::string &id, const std::string &node)
{
	auto of = seconds_.find(id);
	if (of == seconds_.end() || of->second.empty())
		return std::nullopt;
	auto it = std::ranges::find(of->second, node, &Running::node);
	if (it == of->second.end())
		it = of->second.begin();
	Running out = std::move(*it);
	of->second.erase(it);
	if (of->second.empty())
		seconds_.erase(of);
	return out;
}

// An adopted pod has no cores and devices of its own until its job gave it some: they are free
// of other jobs, so let it keep just these, and as many more as it had.
void HoldTable::take_over(Hold &hold, const Running &job)
{
	hold.more_cores = above(hold.core_count(), job.core_count());
	hold.cores = job.cores;
	hold.memory_mb = std::max(hold.memory_mb, job.memory_mb);
	if (!job.gres.empty())
		hold.gres = job.gres;
}

// Beside what its job has.
static bool has_devices(const std::unordered_map<std::string, Hold> &parts, const std::string &id)
{
	const auto part = parts.find(id);
	return part != parts.end() && !part->second.gres.empty();
}

void HoldTable::job_started(const PodKey &key, const Job &job)
{
	std::lock_guard lock(mutex_);
	run(key.id(), running_of(job));
	lifted_.erase(key.id());
	changed(key.id());
}

void HoldTable::job_ended(const PodKey &key, JobRef ref)
{
	std::lock_guard lock(mutex_);
	auto it = running_.find(key.id());
	if (it == running_.end())
		return;
	if (it->second.ref != ref) {
		if (auto of = seconds_.find(key.id()); of != seconds_.end())
			std::erase_if(of->second, [&](const Running &r) { return r.ref == ref; });
		return;
	}
	auto other = take_second(key.id(), it->second.node);
	const bool covered = other && other->node == it->second.node;
	if (auto h = holds_.find(key.id()); !covered && h != holds_.end() && h->second.node == it->second.node) {
		const GresList before = h->second.gres;
		take_over(h->second, it->second);
		keep_beyond(h->second, before); // which it had all the time
	}
	if (other)
		it->second = std::move(*other);
	else
		running_.erase(it);
	changed(key.id());
}

std::optional<Hold> HoldTable::place(const PodKey &key, JobRef ref)
{
	std::lock_guard lock(mutex_);
	auto it = running_.find(key.id());
	if (it == running_.end())
		return std::nullopt;
	if (it->second.ref != ref) {
		auto of = seconds_.find(key.id());
		const auto wanted = [&](const Running &r) { return r.ref == ref; };
		if (of == seconds_.end() || std::ranges::none_of(of->second, wanted))
			return std::nullopt;
		std::swap(it->second, *std::ranges::find_if(of->second, wanted));
	}
	const Running &r = it->second;
	const auto [at, fresh] = holds_.try_emplace(key.id());
	Hold &h = at->second;
	const bool anew = h.node != r.node || h.foreign; // foreign: of a time when its scheduler was none of ours
	if (!fresh && (anew || has_devices(parts_, key.id())))
		leave(h); // this job may have them
	if (anew)
		h = {key, r.node, {}, 0, 0};
	take_over(h, r); // what it has beyond the job stays until set_request()
	h.gres = r.gres;
	changed(key.id());
	return h;
}

std::optional<Hold> HoldTable::settle(const PodKey &key, JobRef ref, bool keep_devices)
{
	std::lock_guard lock(mutex_);
	auto h = holds_.find(key.id());
	auto r = running_.find(key.id());
	if (h == holds_.end() || r == running_.end() || r->second.ref != ref || r->second.node != h->second.node)
		return std::nullopt;
	const Hold before = h->second;
	take_over(h->second, r->second);
	if (keep_devices)
		keep_beyond(h->second, before.gres);
	if (h->second == before)
		return std::nullopt;
	if (has_devices(parts_, key.id()) && h->second.gres != before.gres)
		leave(before);
	changed(key.id());
	return h->second;
}

std::optional<Hold> HoldTable::lose_node(const PodKey &key)
{
	std::lock_guard lock(mutex_);
	auto it = holds_.find(key.id());
	if (it == holds_.end())
		return std::nullopt;
	it->second.lost_node = true;
	return it->second;
}

void HoldTable::adopt(Hold hold)
{
	std::lock_guard lock(mutex_);
	const std::string k = hold.key.id();
	auto it = holds_.find(k);
	if (it != holds_.end() && it->second.node == hold.node && !it->second.foreign)
		return; // known: its cores are better than a guess
	if (it != holds_.end())
		leave(it->second);
	holds_[k] = std::move(hold);
	changed(k);
}

std::optional<Hold> HoldTable::set_request(const PodKey &key, std::uint32_t cores, std::uint64_t memory_mb)
{
	std::lock_guard lock(mutex_);
	const auto at = holds_.find(key.id());
	if (at == holds_.end())
		return std::nullopt;
	Hold now = at->second;
	const Running *job = runs_there(key.id()) ? &running_.at(key.id()) : nullptr;
	cores = std::max(cores, job ? job->core_count() : now.core_count());
	now.more_cores = above(cores, static_cast<std::uint32_t>(now.cores.size()));
	now.memory_mb = std::max(memory_mb, job ? job->memory_mb : now.memory_mb);
	if (now == at->second)
		return std::nullopt;
	if (now.core_count() < at->second.core_count() || now.memory_mb < at->second.memory_mb)
		leave(at->second);
	at->second = std::move(now);
	changed(key.id());
	return at->second;
}

std::optional<Hold> HoldTable::set_cpus(const PodKey &key, std::uint32_t cpus)
{
	std::lock_guard lock(mutex_);
	const auto at = holds_.find(key.id());
	if (at == holds_.end() || at->second.cpus == cpus)
		return std::nullopt;
	at->second.cpus = cpus; // no mask is another by that
	return at->second;
}

bool HoldTable::hold_foreign(Hold hold)
{
	std::lock_guard lock(mutex_);
	const std::string id = hold.key.id();
	const auto [at, fresh] = holds_.try_emplace(id);
	if (!fresh && at->second == hold)
		return false;
	if (!fresh)
		leave(at->second);
	at->second = std::move(hold);
	changed(id);
	return true;
}

bool HoldTable::set_allocatable(const std::string &node, const Allocatable &allocatable)
{
	std::lock_guard lock(mutex_);
	return masks_.set_allocatable(node, allocatable);
}

bool HoldTable::set_full(const std::string &cluster, const std::map<std::string, Full> &nodes)
{
	std::lock_guard lock(mutex_);
	masks_.set_full(cluster, nodes);
	publish();
	return masks_.can_go();
}

HoldTable::Cover HoldTable::cover_of(const std::string &id) const
{
	if (!holds_.contains(id))
		return Cover::none;
	return runs_there(id) && !running_.at(id).suspended ? Cover::covered : masks_.contains(id) ? Cover::masked : Cover::covered;
}

HoldTable::Cover HoldTable::release(const PodKey &key)
{
	std::lock_guard lock(mutex_);
	const std::string id = key.id();
	const Cover was = cover_of(id);
	if (was == Cover::none)
		return was;
	leave(holds_.at(id));
	const bool mask = masks_.contains(id);
	masks_.drop(id); // it refers to the hold
	parts_.erase(id);
	holds_.erase(id);
	lifted_.erase(id);
	publish();
	return mask ? Cover::masked : was;
}

void HoldTable::remember_release(const Released &r)
{
	std::lock_guard lock(mutex_);
	released_[r.key.id()] = r;
}

void HoldTable::forget_release(const PodKey &key)
{
	std::lock_guard lock(mutex_);
	released_.erase(key.id());
}

void HoldTable::remember_resubmit(const Resubmit &r)
{
	std::lock_guard lock(mutex_);
	resubmits_[r.key.id()] = r;
}

void HoldTable::forget_resubmit(const PodKey &key)
{
	std::lock_guard lock(mutex_);
	resubmits_.erase(key.id());
}

void HoldTable::lift(const PodKey &key, bool lifted)
{
	std::lock_guard lock(mutex_);
	if (lifted)
		lifted_.insert(key.id());
	else
		lifted_.erase(key.id());
	changed(key.id());
}

void HoldTable::jobs_running(const std::vector<std::pair<PodKey, JobPtr>> &running)
{
	std::lock_guard lock(mutex_);
	running_.clear();
	seconds_.clear();
	for (const auto &[key, job] : running)
		run(key.id(), running_of(*job));
	all_changed();
}

void HoldTable::restore(Ledger saved)
{
	std::lock_guard lock(mutex_);
	masks_.forget_holds(); // before what it refers to
	holds_.clear();
	missing_.clear();
	released_.clear();
	resubmits_.clear();
	running_.clear();
	seconds_.clear();
	lifted_.clear();
	parts_.clear();
	for (auto &h : saved.holds) {
		std::string k = h.key.id();
		holds_[std::move(k)] = std::move(h);
	}
	for (auto &r : saved.released) {
		std::string k = r.key.id();
		released_[std::move(k)] = std::move(r);
	}
	for (auto &r : saved.resubmits) {
		std::string k = r.key.id();
		resubmits_[std::move(k)] = std::move(r);
	}
	all_changed();
}

void HoldTable::block_nodes(const std::string &cluster, const std::vector<std::string> &nodes, Wait wait)
{
	std::lock_guard lock(mutex_);
	masks_.block(cluster, nodes, wait);
	publish();
}

bool HoldTable::unblock_nodes(const std::string &cluster)
{
	std::lock_guard lock(mutex_);
	return masks_.unblock(cluster);
}

bool HoldTable::stop_waiting(const std::string &cluster)
{
	std::lock_guard lock(mutex_);
	return masks_.stop_waiting(cluster);
}

std::map<std::string, Wait> HoldTable::closed() const
{
	std::lock_guard lock(mutex_);
	return masks_.closed();
}

std::shared_ptr<const MaskSnapshot> HoldTable::masks()
{
	if (!any_.load(std::memory_order_acquire))
		return nullptr;
	std::lock_guard lock(mutex_);
	return masks_.snapshot();
}

} // namespace sk8::core
