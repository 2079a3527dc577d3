// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/model_claims.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "test/merge_patch.h"

namespace sk8::sim {

static const std::string device_prefix = "gpu-";

bool is_reserved(const kube::ResourceClaim &claim, const std::string &uid)
{
	return std::ranges::find(claim.reserved_for, uid) != claim.reserved_for.end();
}

std::vector<std::uint16_t> devices_on(const kube::ResourceClaim &claim, const std::string &node)
{
	std::vector<std::uint16_t> out;
	for (const auto &d : claim.devices)
		if (d.pool == node)
			out.push_back(static_cast<std::uint16_t>(std::atoi(d.device.c_str() + device_prefix.size())));
	std::ranges::sort(out);
	return out;
}

bool has_device(const kube::ResourceClaim &claim, const std::string &node, std::uint16_t device)
{
	const auto has = devices_on(claim, node);
	return std::ranges::binary_search(has, device);
}

void ModelClaims::publish(ClaimEvent event)
{
	history_.push_back(event);
	for (ClaimListener *l : listeners_)
		l->claim_event(event);
}

// ---- drivers ----

kube::DeviceClassPtr ModelClaims::device_class()
{
	auto out = std::make_shared<kube::DeviceClass>();
	out->meta.name = claim_class;
	out->meta.uid = "class";
	out->selectors = {"device.driver == '" + std::string(claim_class) + "'"};
	return out;
}

void ModelClaims::show(kube::ResourceSlice slice)
{
	slice.meta.resource_version = std::to_string(++version_);
	auto shown = std::make_shared<const kube::ResourceSlice>(std::move(slice));
	slices_[shown->node] = shown;
	publish({false, nullptr, shown});
}

void ModelClaims::driver_comes(const std::string &node, int devices)
{
	kube::ResourceSlice slice;
	const auto known = slices_.find(node);
	slice.meta.name = "slice-" + node;
	slice.meta.uid = known == slices_.end() ? "slice" + std::to_string(++made_) : known->second->meta.uid;
	slice.driver = claim_class;
	slice.pool = slice.node = node;
	slice.generation = known == slices_.end() ? 1 : known->second->generation + 1;
	slice.slices = 1;
	for (int i = 0; i < devices; i++) {
		kube::Device &d = slice.devices.emplace_back();
		d.name = device_prefix + std::to_string(i);
		d.attributes[kube::full_attribute_name("index", claim_class)] = std::int64_t{i};
	}
	tell(story_, "driver of ", node, " tells of ", std::to_string(devices), " devices");
	show(std::move(slice));
}

void ModelClaims::driver_goes(const std::string &node)
{
	const auto known = slices_.find(node);
	if (known == slices_.end())
		return;
	tell(story_, "driver of ", node, " goes");
	const auto last = known->second;
	slices_.erase(known);
	publish({true, nullptr, last});
}

void ModelClaims::taint(const std::string &node, std::size_t device)
{
	const auto known = slices_.find(node);
	if (known == slices_.end() || device >= known->second->devices.size())
		return;
	kube::ResourceSlice slice = *known->second;
	slice.generation++;
	slice.devices[device].tainted = true;
	tell(story_, "driver of ", node, " taints device ", std::to_string(device));
	show(std::move(slice));
}

// ---- claims ----

kube::ResourceClaimPtr ModelClaims::find(const ClaimName &name) const
{
	const auto at = claims_.find(name);
	return at == claims_.end() ? nullptr : at->second;
}

std::string ModelClaims::owner(const ClaimName &name) const
{
	const auto at = owners_.find(name);
	return at == owners_.end() ? "" : at->second;
}

static std::string state_of(const kube::ResourceClaim &claim)
{
	std::string out = claim.allocated ? " has" : " has nothing";
	for (const auto &d : claim.devices)
		out += " " + d.pool + "/" + d.device;
	for (const auto &uid : claim.reserved_for)
		out += ", for " + uid;
	return out;
}

void ModelClaims::store(const ClaimName &name, const Json &object)
{
	const Json version = Json::object().set("resourceVersion", std::to_string(++version_));
	objects_[name] = merge_patch(object, Json::object().set("metadata", version));
	const auto claim = *kube::decode_resource_claim(objects_[name]);
	claims_[name] = claim;
	if (story_.on)
		tell(story_, "api: claim ", name.second, state_of(*claim));
	publish({false, claim, nullptr});
}

void ModelClaims::create(const ClaimName &name, std::int64_t count, const std::string &owner)
{
	if (claims_.contains(name))
		return;
	Json exactly = Json::object(), request = Json::object(), requests = Json::array(), meta = Json::object();
	exactly.set("deviceClassName", claim_class).set("count", Json::integer(count));
	requests.append(request.set("name", "gpus").set("exactly", exactly));
	meta.set("namespace", name.first).set("name", name.second).set("uid", "claim" + std::to_string(++made_));
	if (!owner.empty())
		owners_[name] = owner;
	const Json devices = Json::object().set("requests", requests);
	store(name, Json::object().set("metadata", meta).set("spec", Json::object().set("devices", devices)));
}

void ModelClaims::remove(const ClaimName &name)
{
	const auto last = claims_.at(name);
	claims_.erase(name);
	objects_.erase(name);
	owners_.erase(name);
	tell(story_, "api: claim ", name.second, " is gone");
	publish({true, last, nullptr});
}

int ModelClaims::patch(const ClaimName &name, bool status, const Json &patch)
{
	const auto at = objects_.find(name);
	if (at == objects_.end())
		return 404;
	const Json has = at->second["metadata"], wants = patch["metadata"];
	if (has["uid"].str() != wants["uid"].str() || has["resourceVersion"].str() != wants["resourceVersion"].str())
		return 409;
	if (patch["status"].is_object() != status)
		throw std::logic_error("a patch of a claim and of its status are two");
	// An allocation is made or freed, never changed; and nobody has a part of one that is not there.
	const Json now = merge_patch(at->second, patch)["status"];
	const bool allocated = at->second["status"]["allocation"].is_object();
	const bool of_nothing = now["reservedFor"].size() > 0 && !now["allocation"].is_object();
	if ((allocated && patch["status"]["allocation"].is_object()) || of_nothing)
		return 422;
	store(name, merge_patch(at->second, patch));
	return 200;
}

void ModelClaims::change(const ClaimName &name, const Json &patch)
{
	store(name, merge_patch(objects_.at(name), patch));
}

} // namespace sk8::sim
