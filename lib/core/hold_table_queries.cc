// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What others want to know of the ledger.
#include "lib/core/hold_table.h"

#include <algorithm>

namespace sk8::core {

bool HoldTable::held(const PodKey &key) const
{
	std::lock_guard lock(mutex_);
	return holds_.contains(key.id());
}

std::string HoldTable::node_of(const PodKey &key) const
{
	std::lock_guard lock(mutex_);
	auto it = holds_.find(key.id());
	return it == holds_.end() ? "" : it->second.node;
}

Ledger HoldTable::ledger(const std::string &cluster) const
{
	std::lock_guard lock(mutex_);
	Ledger out;
	const auto wait = masks_.waits_for(cluster);
	out.partial = wait && *wait != Wait::a_moment; // then it was whole, and what came since it lacks as it did before
	out.first = wait == Wait::a_while;
	for (const auto &[k, h] : holds_)
		if (h.key.cluster == cluster)
			out.holds.push_back(h);
	for (const auto &[k, r] : released_)
		if (r.key.cluster == cluster)
			out.released.push_back(r);
	for (const auto &[k, r] : resubmits_)
		if (r.key.cluster == cluster)
			out.resubmits.push_back(r);
	return out;
}

HoldTable::Cover HoldTable::cover(const PodKey &key) const
{
	std::lock_guard lock(mutex_);
	return cover_of(key.id());
}

// Counted in a snapshot: hooks wait for the mutex.
MaskNumbers HoldTable::mask_numbers(const std::string &cluster)
{
	MaskNumbers out;
	const auto snapshot = masks();
	if (!snapshot)
		return out;
	for (const auto &m : snapshot->masks) {
		if (!m->clusters.contains(cluster))
			continue;
		out.nodes++;
		out.whole_nodes += m->whole;
		out.cores += m->cores.size() + m->more_cores;
		out.foreign_milli_cpu += static_cast<std::uint64_t>(m->milli_cpu + m->overhead_milli_cpu);
		out.memory_mb += m->memory_mb + m->overhead_mb;
		for (const Gres &g : m->gres)
			out.gres[{g.name, g.type}] += g.count;
	}
	return out;
}

std::optional<PodKey> HoldTable::masked_by_other(const PodKey &key, const std::string &node,
						 const std::vector<std::uint16_t> &cores, const GresList &gres) const
{
	std::lock_guard lock(mutex_);
	const Hold *other = masks_.find(node, [&](const Hold &h) {
		return h.key.uid != key.uid && (std::ranges::find_first_of(cores, h.cores) != cores.end() ||
						devices_collide(gres, h.gres) || devices_collide(gres, h.shared));
	});
	return other ? std::optional(other->key) : std::nullopt;
}

TakenBy HoldTable::taken_by() const
{
	return [this](const NativeShare &share) { return masked_by_other({}, share.node, share.cores, share.gres); };
}

TakenBy HoldTable::beside() const
{
	return [this](const NativeShare &share) {
		std::lock_guard lock(mutex_);
		const Hold *other = masks_.find(share.node, [](const Hold &h) { return h.foreign && !h.overhead && !h.key.uid.empty(); });
		return other ? std::optional(other->key) : std::nullopt;
	};
}

std::optional<HeldBy> HoldTable::held_by(const PodKey &key) const
{
	std::lock_guard lock(mutex_);
	const std::string id = key.id();
	auto it = holds_.find(id);
	if (it == holds_.end())
		return std::nullopt;
	return HeldBy{it->second, cover_of(id) == Cover::masked};
}

std::vector<Hold> HoldTable::find(const std::function<bool(const Hold &)> &f) const
{
	std::lock_guard lock(mutex_);
	std::vector<Hold> out;
	for (const auto &[id, h] : holds_)
		if (f(h))
			out.push_back(h);
	return out;
}

} // namespace sk8::core
