// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How slices and claims reach the engine: each is a list, then its events in their order; late, broken off, and after 410 a new
// list. And what has reached it.
#ifndef SK8_SIM_CLAIM_WATCH_H
#define SK8_SIM_CLAIM_WATCH_H

#include <functional>
#include <vector>

#include "test/sim/dice.h"
#include "test/sim/model_api.h"
#include "test/sim/model_claims.h"

namespace sk8::sim {

class ClaimWatch final : public ClaimListener {
public:
	struct Calls {
		std::function<void(const std::vector<kube::ResourceSlicePtr> &)> slices_replaced;
		std::function<void(const std::vector<kube::DeviceClassPtr> &)> classes_replaced;
		std::function<void(const std::vector<kube::ResourceClaimPtr> &)> claims_replaced;
		std::function<void(const ClaimEvent &)> changed;
		std::function<void()> back; // after an interruption, before what was missed
	};

	// api: whether it answers.
	ClaimWatch(Schedule &time, Dice &dice, Story &story, ModelApi &api, ModelClaims &claims)
		: time_(time), dice_(dice), story_(story), api_(api), claims_(claims)
	{
	}
	// Each call is one turn of the engine. After stop() none comes any more.
	void start(Calls calls);
	void stop();
	// The connection is gone; lost: and what was missed cannot be had any more (410).
	void interrupt(bool lost);

	// ---- faults ----
	Micros lateness = 0; // of events, at most, beside the usual
	void usual() { lateness = 0; }
	bool is_usual() const { return lateness == 0; }

	// ---- what the engine that is there was told last ----
	const ClaimMap &told() const { return told_; }
	// None before the class was, without which they are nobody's devices.
	const SliceMap &told_slices() const { return class_told_ ? told_slices_ : no_slices_; }
	std::function<void(const kube::ResourceClaimPtr &)> on_claim = [](const auto &) {}; // ... of this one, and not by a list
	std::function<void()> on_served = [] {}; // and has done with all that: lists and slices wait for the end of its turn

	void claim_event(const ClaimEvent &event) override;

private:
	void list();
	void resume();
	void deliver(std::size_t which);
	void remember(const ClaimEvent &event);
	void later(Micros delay, std::function<void()> f);

	Schedule &time_;
	Dice &dice_;
	Story &story_;
	ModelApi &api_;
	ModelClaims &claims_;
	Calls calls_;
	bool wanted_ = false, watching_ = false;
	int connection_ = 0, lists_ = 0; // lists_: that have arrived since they were asked for
	std::size_t next_ = 0;           // of the history: what has not arrived
	Micros until_ = 0;               // when the last of what was sent arrives
	ClaimMap told_;
	SliceMap told_slices_, no_slices_;
	bool class_told_ = false;
};

} // namespace sk8::sim

#endif
