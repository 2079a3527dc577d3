// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/dra.h"

#include <algorithm>
#include <iterator>

#include "lib/base/text.h"
#include "lib/kube/resource_version.h"

namespace sk8::core {

void Dra::keep(const kube::ResourceClaimPtr &claim)
{
	const ClaimKey key{claim->meta.ns, claim->meta.name};
	drop(key);
	claims_[key] = claim;
	for (const auto &d : claim->devices)
		of_device_[{d.driver, d.pool, d.device}].insert(key);
}

void Dra::drop(const ClaimKey &key)
{
	const auto at = claims_.find(key);
	if (at == claims_.end())
		return;
	for (const auto &d : at->second->devices) {
		const auto of = of_device_.find({d.driver, d.pool, d.device});
		if (of == of_device_.end())
			continue; // the same device twice in one claim
		of->second.erase(key);
		if (of->second.empty())
			of_device_.erase(of);
	}
	claims_.erase(at);
}

void Dra::claims_replaced(const std::vector<kube::ResourceClaimPtr> &claims)
{
	claims_.clear();
	of_device_.clear();
	for (const auto &claim : claims)
		keep(claim);
	claims_synced_ = true;
}

bool Dra::claim_changed(const kube::ResourceClaimPtr &claim)
{
	const auto known = find(claim->meta.ns, claim->meta.name);
	if (known && kube::is_older(claim->meta.resource_version, known->meta.resource_version))
		return false; // an answer has told of a newer one
	keep(claim);
	return true;
}

void Dra::claim_removed(const kube::ResourceClaimPtr &last)
{
	const auto known = find(last->meta.ns, last->meta.name);
	if (known && known->meta.uid == last->meta.uid)
		drop({last->meta.ns, last->meta.name});
}

kube::ResourceClaimPtr Dra::find(const std::string &ns, const std::string &name) const
{
	const auto at = claims_.find({ns, name});
	return at == claims_.end() ? nullptr : at->second;
}

std::string Dra::holder(const kube::AllocatedDevice &device, const kube::ResourceClaim &but) const
{
	const auto of = of_device_.find({device.driver, device.pool, device.device});
	if (of == of_device_.end())
		return "";
	for (const ClaimKey &key : of->second) {
		const auto &claim = claims_.at(key);
		const bool whole = std::ranges::any_of(claim->devices, [&](const kube::AllocatedDevice &d) {
			return !d.shared && d.driver == device.driver && d.pool == device.pool && d.device == device.device;
		});
		if (whole && claim->meta.uid != but.meta.uid)
			return key.first + "/" + key.second;
	}
	return "";
}

Result<Dra::Has> Dra::devices_of(const kube::ResourceClaim &claim) const
{
	Has out;
	for (const auto &d : claim.devices) {
		if (d.shared)
			continue;
		const auto place = inventory.place(d.driver, d.pool, d.device);
		if (!place)
			return Error{"no driver tells of device " + one_line(d.device, 128) + " that it has"};
		if (place->node.empty() || (!out.node.empty() && out.node != place->node))
			return Error{"what it has is not of one node"};
		out.node = place->node;
		if (!place->gres.empty())
			out.gres.push_back({place->gres, place->type, 1, {place->index}});
	}
	return out;
}

GresList Dra::held(const kube::ResourceClaim &claim, const std::string &node) const
{
	GresList out;
	for (const auto &d : claim.devices) {
		const auto place = d.shared ? std::nullopt : inventory.place(d.driver, d.pool, d.device);
		if (place && place->node == node && !place->gres.empty())
			out.push_back({place->gres, place->type, 1, {place->index}});
	}
	return out;
}

GresList Dra::held(const std::string &ns, const std::vector<kube::PodResourceClaim> &claims, const std::string &uid,
		   const std::string &node) const
{
	GresList out;
	for (const auto &c : claims) {
		const auto claim = find(ns, c.claim);
		if (claim && std::ranges::find(claim->reserved_for, uid) != claim->reserved_for.end())
			std::ranges::move(held(*claim, node), std::back_inserter(out));
	}
	return merged(std::move(out));
}

} // namespace sk8::core
