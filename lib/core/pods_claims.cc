// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods that claim devices (Dynamic Resource Allocation). Their job asks Slurm for as many, and when it has got some, just
// these are written into the claims, before the Binding: its kubelet prepares what the claims have. A claim that has devices
// and stands for a pod without a node is of a Binding that failed: it is freed first.
#include "lib/core/pods_controller.h"
#include "lib/core/pods_then.h"

#include <algorithm>
#include <functional>

#include "lib/base/text.h"
#include "lib/core/claim_pods.h"
#include "lib/core/claim_writer.h"
#include "lib/core/names.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

// It had a part of what the claim has when others had it, too: what it holds by that is no job's, also when these are gone.
static bool has_shared(const std::optional<HeldBy> &held, const kube::ResourceClaim &claim, const std::string &uid, const Dra &dra)
{
	return held && is_reserved_for(claim, uid) && devices_collide(held->hold.shared, dra.held(claim, held->hold.node));
}

// Error: they are to be waited for, whatever the pod does.
Result<PodsController::PodClaims> PodsController::claims_of(const Entry &e) const
{
	PodClaims out;
	if (!ports_.dra || !ports_.dra->synced())
		return Error{"the cluster's resource claims and devices have not been listed yet"};
	const auto held = ports_.holds.held_by(e.key);
	for (const auto &c : e.pod->resource_claims) {
		if (c.claim.empty())
			return Error{"its claim " + one_line(c.name, 128) + " has not been made from its template yet, by kube-controller-manager"};
		auto claim = ports_.dra->find(e.key.ns, c.claim);
		if (!claim || claim->meta.deleting)
			return Error{claim_text(c.claim) + (claim ? " is being deleted" : " does not exist")};
		// ... or its job has the devices, and others have come to have them, too
		const bool of_job = e.job && e.job->running() && is_reserved_for(*claim, e.key.uid) &&
				    devices_collide(e.job->gres, ports_.dra->held(*claim, e.job->node));
		const bool has_part = has_shared(held, *claim, e.key.uid, *ports_.dra);
		if (!claim->allocated || of_job || (is_only_for(*claim, e.key.uid) && !has_part))
			out.own.push_back(std::move(claim));
		else if (auto added = add_shared_claim(e, claim, has_part, out); !added)
			return added.error();
	}
	return out;
}

// Of the pods that have it one got its devices by its job. When that one has ended they stay hidden from jobs until the last of
// the others is gone (Hold::shared); what nobody holds any more is about to be freed, by kube-controller-manager.
Result<void> PodsController::add_shared_claim(const Entry &e, const kube::ResourceClaimPtr &claim, bool has_part, PodClaims &out) const
{
	if (claim->reserved_for_other)
		return Error{claim_text(claim->meta.name) + " is in use by something that is no pod"};
	if (!is_reserved_for(*claim, e.key.uid) && claim->reserved_for.size() >= kube::max_claim_consumers)
		return Error{claim_text(claim->meta.name) + " has as many pods as it can have"};
	auto has = ports_.dra->devices_of(*claim);
	if (!has)
		return Error{claim_text(claim->meta.name) + ": " + has.error().message};
	if (!out.node.empty() && !has->node.empty() && out.node != has->node)
		return Error{"its resource claims have devices of nodes " + one_line(out.node, 128) + " and " + one_line(has->node, 128)};
	if (!has_part && !ports_.holds.held_by_others(e.key, has->node, has->gres))
		return Error{claim_text(claim->meta.name) + " has devices that no pod uses any more, and is not free yet"};
	out.shared.push_back(claim);
	out.node = has->node.empty() ? out.node : has->node; // none: it has devices that others have, too
	std::ranges::move(has->gres, std::back_inserter(out.devices));
	return {};
}

// What they are in Slurm, beside what the pod requests otherwise. Error: why it cannot be.
Result<GresList> PodsController::gres_with_claims(const Claims &claims, const GresList &requested) const
{
	for (const auto &claim : claims)
		for (const kube::DeviceRequest &r : claim->requests)
			if (find_device_class(settings_.resources, r.device_class))
				if (std::string why = ports_.dra->inventory.class_problem(r.device_class); !why.empty())
					return Error{why};
	auto gres = gres_of_claims(claims, settings_.resources);
	if (!gres)
		return gres;
	for (const Gres &g : *gres)
		if (std::ranges::find(requested, g.name, &Gres::name) != requested.end())
			return Error{"it asks for " + g.name + " by a claim and by an extended resource: use one of them"};
	gres->insert(gres->end(), requested.begin(), requested.end());
	return merged(std::move(*gres));
}

static std::string text_of(const Result<GresList> &gres)
{
	return gres ? gres_request(*gres) : "";
}

// Its job waits for some, and its claims have got them meanwhile, by another pod; or the other way.
bool PodsController::wants_other_devices(const Entry &e) const
{
	if (e.pod->resource_claims.empty() || !e.asked_for_claims)
		return false;
	const auto claims = claims_of(e);
	return claims && text_of(gres_of_claims(claims->own, settings_.resources)) != *e.asked_for_claims;
}

// The same, where its job has started before that was known, or before slurmctld knew.
std::string PodsController::claims_not_met(const Entry &e) const
{
	const auto claims = e.pod->resource_claims.empty() ? Result<PodClaims>(PodClaims{}) : claims_of(e);
	if (!claims || (claims->own.empty() && claims->shared.empty()))
		return ""; // allocate_claims() waits
	if (!claims->node.empty() && claims->node != e.job->node)
		return "its resource claims have devices of node " + one_line(claims->node, 128);
	const auto wanted = gres_with_claims(claims->own, gres_of(e.pod->request.extended, settings_.resources));
	for (const ResourceSettings &r : settings_.resources)
		if (wanted && !r.device_class.empty() && count_of(*wanted, r.gres) != count_of(e.job->gres, r.gres))
			return "its resource claims want " + std::to_string(count_of(*wanted, r.gres)) + " of Slurm's " + r.gres + ", and it has " +
			       std::to_string(count_of(e.job->gres, r.gres));
	return "";
}

// The job's request, with its claims. False: not now, which has been said.
bool PodsController::add_claims(Entry &e, JobRequest &request)
{
	auto claims = claims_of(e);
	if (!claims) {
		if (!free_unused(e))
			reports_.condition(e.pod, {std::string(names::pending_reason), claims.error().message});
		return false; // a change of a claim, or of the pod, leads here again
	}
	if (free_allocated(e, *claims))
		return false;
	auto gres = gres_with_claims(claims->own, request.gres);
	if (!gres) {
		refuse_because(e, gres.error().message, false);
		refuse(e);
		return false;
	}
	request.gres = std::move(*gres);
	e.asked_for_claims = text_of(gres_of_claims(claims->own, settings_.resources));
	const ClaimNodes &nodes = claim_nodes(*claims);
	if (nodes.none.empty())
		return true;
	refuse_because(e, nodes.none, true);
	refuse(e);
	return false;
}

// Many pods have claims of one template.
static constexpr std::size_t max_claim_nodes = 1024;

// Nodes where not whatever Slurm chooses would do. Until the next call.
const PodsController::ClaimNodes &PodsController::claim_nodes(const PodClaims &claims)
{
	if (claim_nodes_of_ != ports_.dra->inventory.version() || claim_nodes_.size() > max_claim_nodes)
		claim_nodes_.clear();
	claim_nodes_of_ = ports_.dra->inventory.version();
	const auto [it, fresh] = claim_nodes_.try_emplace(wishes_text(claims.own) + '\n' + claims.node);
	if (fresh)
		it->second = compute_claim_nodes(claims);
	return it->second;
}

PodsController::ClaimNodes PodsController::compute_claim_nodes(const PodClaims &claims) const
{
	ClaimNodes out;
	ClaimPlaces places(claims.own);
	std::map<std::string, int> reasons;
	bool some = false;
	for (const auto &node : nodes_.names()) {
		if (nodes_.shared(node) != NodeView::Shared::yes)
			continue;
		const std::string why = !claims.node.empty() && claims.node != node
						? "not the node of devices that it shares with other pods"
						: places.objection(node, ports_.dra->inventory);
		some |= why.empty();
		if (why.empty())
			continue;
		out.excluded.insert(node);
		reasons[why]++;
	}
	if (some)
		return out;
	out.none = "no node has devices for its resource claims:";
	for (const auto &[why, count] : reasons)
		out.none += (out.none.back() == ':' ? " " : ", ") + std::to_string(count) + " " + why;
	return out;
}

// ---- its job has devices ----

// As they are when a Binding is sent.
static bool all_given(const Claims &claims)
{
	return !claims.empty() && std::ranges::all_of(claims, [](const auto &claim) { return claim->allocated; });
}

static bool are_given(const std::vector<ClaimDevices> &wanted)
{
	return std::ranges::all_of(wanted, [](const ClaimDevices &c) { return c.claim->devices == c.devices; });
}

void PodsController::allocate_claims(Entry &e, const Hold &hold)
{
	auto claims = claims_of(e);
	if (!claims)
		return claims_failed(e, claims.error().message, {});
	for (const Gres &g : claims->devices)
		if (!std::ranges::includes(devices_named(hold.shared, g.name), g.devices))
			return claims_failed(e, "no pod uses any more what its resource claims have", {});
	if (const std::string why = claims_not_met(e); !why.empty()) // since bind()
		return claims_failed(e, why, {});
	auto shares = share_out(claims->own, e.job->gres, hold.node, ports_.dra->inventory);
	if (!shares)
		return claims_failed(e, shares.error().message, {});
	if (may_arrive(e) && all_given(claims->own) && !are_given(*shares)) // its kubelet may have prepared what they have
		return claims_failed(e, "it may be bound already with other devices than its new job has", {});
	const std::size_t own = shares->size();
	for (const auto &claim : claims->shared)
		shares->push_back({claim, claim->devices});
	for (const ClaimDevices &c : *shares) // one that others have, too, may have got what kube-scheduler gave another meanwhile
		if (const std::string why = taken_by_another(c, hold.node, *ports_.dra, claims->own); !why.empty())
			return claims_failed(e, why, {});
	const auto writes = std::make_shared<ClaimWrites>(ClaimWrites{e.key.name, e.key.uid, hold.node, std::move(*shares), own});
	write_claims(writes, {*ports_.dra, std::bind_front(&KubePort::patch_claim, &ports_.kube),
			      [this, uid = e.key.uid, node = hold.node] { return goes_on_claiming(uid, node); },
			      [this, uid = e.key.uid, hold](const std::string &why, const KubeReply &r) {
				      if (auto it = entries_.find(uid); it != entries_.end() && it->second.op == Op::binding)
					      why.empty() ? send_binding(it->second, hold) : claims_failed(it->second, why, r);
			      }});
}

// While its claims are written for a Binding to that node.
bool PodsController::goes_on_claiming(const std::string &uid, const std::string &node)
{
	auto it = entries_.find(uid);
	if (it == entries_.end() || it->second.op != Op::binding)
		return false;
	Entry &e = it->second;
	const bool held = ports_.holds.node_of(e.key) == node; // else it was released by hand meanwhile
	if (can_be_bound(e) && held)
		return true;
	e.op = Op::none; // it queues again, or goes, or holds something first
	keep_only_if_unsure(e);
	sync(uid);
	return false;
}

// The pod is not bound, and its job ends after bindTimeout. What its claims have got is freed then.
void PodsController::claims_failed(Entry &e, const std::string &why, const KubeReply &r)
{
	e.op = Op::none;
	keep_only_if_unsure(e);
	tell_denied(e, r);
	back_off_from_server(e, "cannot be bound: its resource claims cannot be allocated: " + why, r.retry_after);
	if (e.pod)
		reports_.condition(e.pod, {std::string(names::pending_reason), e.trouble});
	end_if_overdue(e);
	sync(e.key.uid);
}

// ---- where it runs ----

// With devices, as far as it is known which. What it has once shared stays that when the others are gone; what its job there has
// is its own.
GresList PodsController::claimed_there(const Entry &e, Whose whose) const
{
	GresList out;
	if (!ports_.dra || !e.pod || e.pod->resource_claims.empty())
		return out;
	const auto held = ports_.holds.held_by(e.key);
	const std::string node = node_of(e);
	for (const auto &c : e.pod->resource_claims) {
		const auto claim = ports_.dra->find(e.key.ns, c.claim);
		if (!claim || !is_reserved_for(*claim, e.key.uid))
			continue;
		GresList has = ports_.dra->held(*claim, node);
		const bool of_job = has_its_job_there(e) && devices_collide(e.job->gres, has);
		const bool once_shared = held && devices_collide(held->hold.shared, has);
		const bool shared = once_shared || (!of_job && !is_only_for(*claim, e.key.uid));
		if (shared == (whose == Whose::shared))
			std::ranges::move(has, std::back_inserter(out));
	}
	return merged(std::move(out));
}

// Then claimed_there() is all that it has.
bool PodsController::all_devices_known(const Entry &e) const
{
	return std::ranges::all_of(e.pod->resource_claims, [&](const kube::PodResourceClaim &c) {
		const auto claim = ports_.dra ? ports_.dra->find(e.key.ns, c.claim) : nullptr;
		return !claim || !is_reserved_for(*claim, e.key.uid) || ports_.dra->devices_of(*claim);
	});
}

// Before its claims say that it has them: who had them until now may end at any time.
std::optional<Hold> PodsController::share_devices(const Entry &e)
{
	const auto claims = e.pod->resource_claims.empty() ? Result<PodClaims>(PodClaims{}) : claims_of(e);
	return claims && !claims->devices.empty() ? ports_.holds.share(e.key, claims->devices) : std::nullopt;
}

bool PodsController::knows_what_it_claims(const Entry &e) const
{
	return std::ranges::all_of(e.pod->resource_claims, [&](const kube::PodResourceClaim &c) {
		const auto claim = ports_.dra ? ports_.dra->find(e.key.ns, c.claim) : nullptr;
		return claim && is_reserved_for(*claim, e.key.uid);
	});
}

// For the job of a pod that is there without one, or may be. A bound one has what its claims have (which ones: see
// correct_devices()): its kubelet starts nothing before that, and the watch may be behind. Of another it is still to be chosen.
Result<GresList> PodsController::adopted_gres(const Entry &e, const GresList &requested) const
{
	if (e.pod->resource_claims.empty())
		return requested;
	if (e.bound_node.empty()) {
		const auto claims = claims_of(e);
		return claims ? gres_with_claims(claims->own, requested) : claims.error();
	}
	if (!knows_what_it_claims(e))
		return Error{"what its resource claims have is not known"};
	for (const auto &c : e.pod->resource_claims)
		if (auto has = ports_.dra->devices_of(*ports_.dra->find(e.key.ns, c.claim)); !has)
			return has.error(); // its driver is away: a job without them would free them
	GresList out = requested;
	for (const Gres &g : claimed_there(e, Whose::own))
		out.push_back({g.name, g.type, g.count, {}});
	return merged(std::move(out));
}

// Its Binding was sent when all its claims had devices and were reserved for it, and nobody takes that away while it is there and waits.
// Nor would its kubelet start anything of it without. Not after etcd was restored: then the claims are as old as the pod.
bool PodsController::cannot_have_been_bound(const Entry &e) const
{
	if (!e.pod || !e.bound_node.empty() || e.lost_node || !ports_.dra || !ports_.dra->synced())
		return false;
	return std::ranges::any_of(e.pod->resource_claims, [&](const kube::PodResourceClaim &c) {
		const auto claim = ports_.dra->find(e.key.ns, c.claim);
		return !claim || !claim->allocated || !is_reserved_for(*claim, e.key.uid);
	});
}

// ---- news ----

void PodsController::claim_changed(const std::string &ns, const std::string &claim)
{
	std::vector<std::string> uids;
	for (const auto &[uid, e] : entries_)
		if (e.pod && e.key.ns == ns && kube::has_claim(e.pod->resource_claims, claim))
			uids.push_back(uid);
	for (const auto &uid : uids) {
		if (auto it = entries_.find(uid); it != entries_.end()) {
			it->second.refusal.clear(); // it may be another claim of that name
			it->second.retry_at = Millis(0);
		}
		sync(uid);
	}
}

// Which devices those are that claims of bound pods have is known with their driver's slices.
void PodsController::dra_changed()
{
	maybe_start();
	nodes_changed();
	std::vector<std::string> uids;
	for (const auto &[uid, e] : entries_)
		if (e.pod && !e.pod->resource_claims.empty() && !e.bound_node.empty())
			uids.push_back(uid);
	for (const auto &uid : uids)
		sync(uid);
}

} // namespace sk8::core
