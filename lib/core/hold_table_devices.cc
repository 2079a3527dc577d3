// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Devices that pods hold beside what their jobs have, and devices that are missing.
#include "lib/core/hold_table.h"

#include <algorithm>
#include <iterator>

namespace sk8::core {

// ---- of claims ----

// True if there is one that was not among them.
static bool add_named(GresList &to, const GresList &devices)
{
	bool more = false;
	for (const Gres &g : devices) {
		const auto known = devices_named(to, g.name);
		if (std::ranges::includes(known, g.devices))
			continue;
		to.push_back(g);
		more = true;
	}
	return more;
}

std::optional<Hold> HoldTable::add(const PodKey &key, GresList Hold::*to, const GresList &devices)
{
	std::lock_guard lock(mutex_);
	const auto at = holds_.find(key.id());
	if (at == holds_.end() || !add_named(at->second.*to, devices))
		return std::nullopt;
	changed(key.id());
	return at->second;
}

std::optional<Hold> HoldTable::add_devices(const PodKey &key, const GresList &gres)
{
	return add(key, &Hold::gres, gres);
}

std::optional<Hold> HoldTable::add_shared(const PodKey &key, const GresList &devices)
{
	return add(key, &Hold::shared, devices);
}

std::optional<Hold> HoldTable::share(const PodKey &key, const GresList &devices)
{
	std::lock_guard lock(mutex_);
	const auto at = holds_.find(key.id());
	if (at == holds_.end() || !others_hold(key.id(), at->second.node, devices))
		return std::nullopt;
	if (add_named(at->second.shared, devices))
		changed(key.id());
	return at->second;
}

// A release that follows finds those that share already there: both are under the mutex.
bool HoldTable::others_hold(const std::string &id, const std::string &node, const GresList &devices) const
{
	GresList held;
	for (const auto &[other, h] : holds_)
		if (other != id && h.node == node) {
			held.insert(held.end(), h.gres.begin(), h.gres.end());
			held.insert(held.end(), h.shared.begin(), h.shared.end());
		}
	return std::ranges::all_of(devices, [&](const Gres &g) { return std::ranges::includes(devices_named(held, g.name), g.devices); });
}

bool HoldTable::held_by_others(const PodKey &key, const std::string &node, const GresList &devices) const
{
	std::lock_guard lock(mutex_);
	return others_hold(key.id(), node, devices);
}

std::optional<Hold> HoldTable::keep_alone(const PodKey &key, const GresList &still)
{
	std::lock_guard lock(mutex_);
	const auto at = holds_.find(key.id());
	if (at == holds_.end())
		return std::nullopt;
	Hold &h = at->second;
	bool some = false;
	for (Gres &g : h.shared) {
		const auto is_alone = [&](std::uint16_t d) {
			return !std::ranges::binary_search(devices_named(still, g.name), d) &&
			       !others_hold(key.id(), h.node, {{g.name, g.type, 1, {d}}});
		};
		Gres alone{g.name, g.type, 0, {}};
		std::ranges::copy_if(g.devices, std::back_inserter(alone.devices), is_alone);
		some |= !alone.devices.empty();
		std::erase_if(g.devices, [&](std::uint16_t d) { return std::ranges::binary_search(alone.devices, d); });
		g.count = g.devices.size();
		std::erase_if(alone.devices, [has = devices_named(h.gres, g.name)](std::uint16_t d) { return std::ranges::binary_search(has, d); });
		alone.count = alone.devices.size();
		h.gres.push_back(std::move(alone));
	}
	h.gres = merged(std::move(h.gres));
	h.shared = merged(std::move(h.shared));
	if (!some)
		return std::nullopt;
	changed(key.id()); // the same devices are hidden as before
	return h;
}

// ---- missing ----

// No uid is like this.
static std::string missing_id(const std::string &cluster, const std::string &node)
{
	return cluster + "//missing/" + node;
}

// Nothing of the former is free: neither a device nor one of those that nobody has named.
static bool keeps_all(const GresList &now, const GresList &former)
{
	const auto unnamed = [](const GresList &gres, const Gres &like) {
		std::int64_t sum = 0;
		for (const Gres &g : gres)
			if (g.name == like.name && g.type == like.type)
				sum += static_cast<std::int64_t>(g.count) - static_cast<std::int64_t>(g.devices.size());
		return sum;
	};
	const auto has = [&now](const Gres &like, std::uint16_t device) {
		return std::ranges::any_of(now, [&](const Gres &g) {
			return g.name == like.name && g.type == like.type && std::ranges::find(g.devices, device) != g.devices.end();
		});
	};
	return std::ranges::all_of(former, [&](const Gres &g) {
		return unnamed(former, g) <= unnamed(now, g) && std::ranges::all_of(g.devices, [&](std::uint16_t d) { return has(g, d); });
	});
}

bool HoldTable::set_missing(const std::string &cluster, const std::string &node, const GresList &gres)
{
	std::lock_guard lock(mutex_);
	const std::string id = missing_id(cluster, node);
	const auto at = missing_.find(id);
	if (at == missing_.end() ? gres.empty() : at->second.gres == gres)
		return false;
	const bool more = at == missing_.end() || keeps_all(gres, at->second.gres);
	if (!more)
		masks_.put_free(at->second); // until let_masks_go()
	if (at != missing_.end())
		masks_.drop(id); // it refers to it
	missing_.erase(id);
	if (!gres.empty()) {
		Hold &hold = missing_[id];
		hold.key.cluster = cluster;
		hold.node = node;
		hold.foreign = true;
		hold.gres = gres;
		masks_.put(id, hold);
	}
	publish();
	return !more;
}

void HoldTable::forget_missing(const std::string &cluster)
{
	std::vector<std::string> nodes;
	{
		std::lock_guard lock(mutex_);
		for (const auto &[id, hold] : missing_)
			if (hold.key.cluster == cluster)
				nodes.push_back(hold.node);
	}
	for (const auto &node : nodes)
		(void) set_missing(cluster, node, {});
}

} // namespace sk8::core
