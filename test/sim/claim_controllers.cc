// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/claim_controllers.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

namespace sk8::sim {

static const std::string own_prefix = "own-";

std::string template_claim(std::int64_t devices)
{
	return own_prefix + std::to_string(devices);
}

std::int64_t devices_of_template(const std::string &name)
{
	return std::strtoll(name.c_str() + own_prefix.size(), nullptr, 10);
}

// isPodDone() of its controller.go
bool is_done(const kube::Pod &pod)
{
	return pod.phase == "Succeeded" || pod.phase == "Failed" || (pod.meta.deleting && pod.node_name.empty());
}

// ---- kube-controller-manager ----

void ClaimControllers::plan()
{
	if (planned_)
		return;
	planned_ = true;
	const Micros slow = dice_.chance("claim controller", 50) ? dice_.between("claim controller", 0, 20 * second) : 0;
	time_.after(dice_.between("claim controller", 1 * ms, second) + slow, [this] {
		planned_ = false;
		if (api_.down || api_.hung)
			plan();
		else
			sync();
	});
}

void ClaimControllers::sync()
{
	for (const auto &[name, pod] : std::map(api_.pods())) {
		if (!is_done(*pod) && !pod->meta.deleting)
			make_claims(*pod);
		if (!is_done(*pod) && !pod->meta.deleting && !pod->node_name.empty())
			reserve_claims(*pod);
	}
	for (const auto &[name, claim] : ClaimMap(claims_.all()))
		look_after(*claim);
}

void ClaimControllers::make_claims(const kube::Pod &pod)
{
	for (std::size_t i = 0; i < pod.resource_claims.size(); i++) {
		const kube::PodResourceClaim &wanted = pod.resource_claims[i];
		if (!wanted.claim.empty())
			continue;
		const std::string name = pod.meta.name + "-" + wanted.name + "-" + std::to_string(++made_);
		claims_.create({pod.meta.ns, name}, devices_of_template(wanted.name), pod.meta.uid);
		api_.change(pod.meta.name, pod.meta.uid, [&](kube::Pod &p) { p.resource_claims[i].claim = name; });
	}
}

static Json consumer(const kube::Pod &pod)
{
	return Json::object().set("resource", "pods").set("name", pod.meta.name).set("uid", pod.meta.uid);
}

static Json with_consumer(const kube::ResourceClaim &claim, const kube::Pod &pod)
{
	Json out = Json::array();
	claim.consumers.each_item([&](const Json &known) { out.append(known); });
	return out.append(consumer(pod));
}

static Json status_patch(const Json &what)
{
	return Json::object().set("status", what);
}

// Of a pod that got its node by somebody else than kube-scheduler.
void ClaimControllers::reserve_claims(const kube::Pod &pod)
{
	for (const auto &c : pod.resource_claims) {
		const auto claim = claims_.find({pod.meta.ns, c.claim});
		if (!claim || !claim->allocated || is_reserved(*claim, pod.meta.uid))
			continue;
		claims_.change({pod.meta.ns, c.claim}, status_patch(Json::object().set("reservedFor", with_consumer(*claim, pod))));
	}
}

bool ClaimControllers::still_wants(const kube::ResourceClaim &claim, const std::string &uid) const
{
	return std::ranges::any_of(api_.pods(), [&](const auto &at) {
		const kube::Pod &pod = *at.second;
		return pod.meta.uid == uid && pod.meta.ns == claim.meta.ns && !is_done(pod);
	});
}

void ClaimControllers::look_after(const kube::ResourceClaim &claim)
{
	const ClaimName name{claim.meta.ns, claim.meta.name};
	Json left = Json::array();
	claim.consumers.each_item([&](const Json &known) {
		if (still_wants(claim, std::string(known["uid"].str())))
			left.append(known);
	});
	const bool none = left.size() == 0;
	if (none && claim.allocated)
		claims_.change(name, status_patch(Json::object().set("reservedFor", Json::null()).set("allocation", Json::null())));
	else if (left.size() < claim.consumers.size())
		claims_.change(name, status_patch(Json::object().set("reservedFor", left)));
	const std::string owner = claims_.owner(name);
	if (none && !owner.empty() && !still_wants(claim, owner))
		claims_.remove(name);
}

// ---- kube-scheduler ----

bool ClaimControllers::allocate(const kube::Pod &pod, const std::string &node)
{
	const auto slice = claims_.slices().find(node);
	if (slice == claims_.slices().end())
		return false;
	std::vector<std::uint16_t> free;
	for (std::size_t i = 0; i < slice->second->devices.size(); i++) {
		const auto device = static_cast<std::uint16_t>(i);
		const bool taken = std::ranges::any_of(claims_.all(), [&](const auto &c) { return has_device(*c.second, node, device); });
		if (!taken && !slice->second->devices[i].tainted)
			free.push_back(device);
	}
	std::map<ClaimName, Json> patches;
	for (const auto &c : pod.resource_claims) {
		const ClaimName name{pod.meta.ns, c.claim};
		const auto claim = claims_.find(name);
		const bool elsewhere = claim && std::cmp_less(devices_on(*claim, node).size(), claim->devices.size());
		if (!claim || elsewhere)
			return false;
		if (claim->allocated) {
			patches[name] = status_patch(Json::object().set("reservedFor", with_consumer(*claim, pod)));
			continue;
		}
		Json results = Json::array();
		for (std::int64_t n = claim->requests.at(0).count; n > 0; n--) {
			if (free.empty())
				return false;
			const auto which = dice_.between("kube-scheduler/" + pod.meta.name, 0, std::ssize(free) - 1);
			results.append(Json::object()
					       .set("request", claim->requests.at(0).name)
					       .set("driver", claim_class)
					       .set("pool", node)
					       .set("device", slice->second->devices.at(free[static_cast<std::size_t>(which)]).name));
			free.erase(free.begin() + which);
		}
		const Json allocation = Json::object().set("devices", Json::object().set("results", results));
		patches[name] = status_patch(Json::object().set("allocation", allocation).set("reservedFor", with_consumer(*claim, pod)));
	}
	for (const auto &[name, patch] : patches)
		claims_.change(name, patch);
	return true;
}

} // namespace sk8::sim
