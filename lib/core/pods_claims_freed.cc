// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Claims that have devices which none of their pods can use: they are freed, as kube-controller-manager does for pods that are over.
#include "lib/core/pods_controller.h"
#include "lib/core/pods_then.h"

#include <algorithm>

#include "lib/core/claim_pods.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

void PodsController::free_claim(Entry &e, const kube::ResourceClaim &claim, const char *why)
{
	log_pod(verbose, e.key, job_id(e), "resource claim %s is freed: %s", claim.meta.name.c_str(), why);
	e.op = Op::claims;
	ports_.kube.patch_claim(claim, true, freeing_patch(claim), then<KubeReply>(e, Op::claims, &PodsController::claim_freed));
}

// The first that has devices of those that it alone has. True: it is under way.
bool PodsController::free_allocated(Entry &e, const PodClaims &claims)
{
	const auto allocated = std::ranges::find_if(claims.own, [](const auto &claim) { return claim->allocated; });
	if (allocated == claims.own.end())
		return false;
	free_claim(e, **allocated, "it has devices of a node where the pod is not");
	return true;
}

// It has devices for pods of ours alone, of which none has a node or may get one: they do not use them, and as long as they are there
// kube-controller-manager takes nothing from them. Nor has one a job, with which it could be bound while the claim is being freed,
// be that late; without a job none gets one before that.
bool PodsController::is_unused(const kube::ResourceClaim &claim) const
{
	const auto waits = [&](const std::string &uid) {
		const auto it = entries_.find(uid);
		if (it == entries_.end())
			return false;
		const Entry &e = it->second;
		const bool idle = (e.op == Op::none || e.op == Op::claims) && (!e.job || e.job->ended());
		return idle && e.pod && e.bound_node.empty() && !may_arrive(e) && !ports_.holds.held(e.key);
	};
	return claim.allocated && !claim.meta.deleting && !claim.reserved_for_other && std::ranges::all_of(claim.reserved_for, waits);
}

// Of the pods that were to share it each would wait for the others to have it.
bool PodsController::free_unused(Entry &e)
{
	for (const auto &c : e.pod->resource_claims) {
		const auto claim = ports_.dra && ports_.dra->synced() ? ports_.dra->find(e.key.ns, c.claim) : nullptr;
		if (!claim || !is_unused(*claim))
			continue;
		free_claim(e, *claim, "none of its pods was bound");
		return true;
	}
	return false;
}

// Of a pod that waits with a job: a write for a job before this one was late, and who else gets the devices could not be bound. If nobody
// has what it was to share, it must have no job for that to be freed.
bool PodsController::free_late_claims(Entry &e)
{
	if (e.pod->resource_claims.empty())
		return false;
	if (const auto claims = claims_of(e); claims)
		return free_allocated(e, *claims);
	for (const auto &c : e.pod->resource_claims) {
		const auto claim = ports_.dra && ports_.dra->synced() ? ports_.dra->find(e.key.ns, c.claim) : nullptr;
		if (!claim || e.job->held || is_only_for(*claim, e.key.uid) || !is_reserved_for(*claim, e.key.uid))
			continue;
		const auto has = ports_.dra->devices_of(*claim);
		if (!has || ports_.holds.held_by_others(e.key, has->node, has->gres))
			continue;
		queue_anew(e, "nobody uses what its resource claims have");
		return true;
	}
	return false;
}

void PodsController::claim_freed(Entry &e, const KubeReply &r)
{
	if (r.ok() && r.claim) {
		ports_.dra->claim_changed(r.claim);
		return succeeded(e);
	}
	refused(e, "its resource claim cannot be freed: ", r);
}

} // namespace sk8::core
