// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The engine's part of a process for claims of devices, as lib/core/cluster_dra.cc has it.
#include <utility>

#include "test/sim/process.h"

namespace sk8::sim {

void Process::watch_claims()
{
	if (!out_.claims)
		return;
	ClaimWatch::Calls calls;
	calls.back = [this] { turn([&] { controller_->hurry(); }); };
	calls.slices_replaced = [this, back = calls.back](const auto &slices) {
		back();
		turn([&] { dra_->inventory.slices_replaced(slices); });
	};
	calls.classes_replaced = [this](const auto &classes) { turn([&] { dra_->inventory.classes_replaced(classes); }); };
	calls.claims_replaced = [this](const auto &claims) {
		std::vector<kube::ResourceClaimPtr> seen;
		for (const auto &claim : claims)
			seen.push_back(mutate_claim(out_.mutant, claim));
		turn([&] {
			dra_->claims_replaced(seen);
			claims_stale_ = true;
		});
	};
	calls.changed = [this](const ClaimEvent &event) {
		turn([&] {
			if (event.claim)
				claim_seen(mutate_claim(out_.mutant, event.claim), event.removed);
			else if (event.removed)
				dra_->inventory.slice_removed(event.slice);
			else
				dra_->inventory.slice_changed(event.slice);
		});
	};
	out_.claim_watch->start(std::move(calls));
}

void Process::claim_seen(const kube::ResourceClaimPtr &claim, bool removed)
{
	if (removed)
		dra_->claim_removed(claim);
	else if (!dra_->claim_changed(claim))
		return;
	foreign_->claim_changed(claim->meta.ns, claim->meta.name);
	controller_->claim_changed(claim->meta.ns, claim->meta.name);
}

// Who shares one with this foreign pod may have waited for what that holds.
void Process::holds_claims(const core::ForeignPod &pod)
{
	for (const auto &claim : pod.resource_claims)
		controller_->claim_changed(pod.meta.ns, claim.claim);
}

void Process::claims_changed()
{
	const auto changed = dra_->inventory.take_changed();
	if (!std::exchange(claims_stale_, false) && !changed.any())
		return;
	foreign_->claims_changed();
	foreign_known();
	if (nodes_)
		nodes_->drivers_changed(changed);
	controller_->dra_changed();
	if (out_.claim_watch && !dying_)
		out_.claim_watch->on_served();
}

// A pod's devices are known when its claims are.
void Process::foreign_known()
{
	if (foreign_listed_ && dra_->synced())
		controller_->expect_foreign(true);
}

// Only drivers tell here which devices a node lacks.
std::function<void(const std::string &node, const core::GresList &gres)> Process::missing()
{
	if (!dra_->wanted())
		return {};
	return [this](const std::string &node, const core::GresList &gres) {
		if (holds_.set_missing(settings_.name, node, gres))
			slurm_->wake_scheduler(); // less is masked than before
	};
}

} // namespace sk8::sim
