// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What Kubernetes itself does with claims: kube-controller-manager (pkg/controller/resourceclaim) makes those of templates, frees
// what no pod has any more, and removes those whose pod is over; kube-scheduler gives foreign pods devices. Both know of claims
// and pods, and of nothing that Slurm does.
#ifndef SK8_SIM_CLAIM_CONTROLLERS_H
#define SK8_SIM_CLAIM_CONTROLLERS_H

#include "test/sim/dice.h"
#include "test/sim/model_api.h"
#include "test/sim/model_claims.h"

namespace sk8::sim {

// The name, in the pod, of a claim of so many devices that is made from a template; and how many.
std::string template_claim(std::int64_t devices);
std::int64_t devices_of_template(const std::string &name);

// No container of it will run any more, as kube-controller-manager has it: whoever says so.
bool is_done(const kube::Pod &pod);

class ClaimControllers final : public ApiListener, public ClaimListener {
public:
	ClaimControllers(Schedule &time, Dice &dice, Story &story, ModelApi &api, ModelClaims &claims)
		: time_(time), dice_(dice), story_(story), api_(api), claims_(claims)
	{
	}
	// kube-scheduler, before it binds the pod there. False: a claim is not there, or has devices elsewhere, or there are too few.
	bool allocate(const kube::Pod &pod, const std::string &node);

	void pod_event(const ApiEvent &) override { plan(); }
	void claim_event(const ClaimEvent &) override { plan(); }

private:
	void plan();
	void sync();
	void make_claims(const kube::Pod &pod);
	void reserve_claims(const kube::Pod &pod);
	void look_after(const kube::ResourceClaim &claim);
	bool still_wants(const kube::ResourceClaim &claim, const std::string &uid) const;

	Schedule &time_;
	Dice &dice_;
	Story &story_;
	ModelApi &api_;
	ModelClaims &claims_;
	bool planned_ = false;
	int made_ = 0;
};

} // namespace sk8::sim

#endif
