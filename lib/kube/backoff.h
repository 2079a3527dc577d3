// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Exponential back-off with jitter, for whoever must not hammer the API server.
// Not thread safe. Time and chance come from outside.
#ifndef SK8_KUBE_BACKOFF_H
#define SK8_KUBE_BACKOFF_H

#include <algorithm>
#include <functional>
#include <utility>

#include "lib/base/clock.h"

namespace sk8::kube {

// A number in [0, 1), another one at each call.
using Random = std::function<double()>;

struct BackoffLimits {
	Millis first{800};           // the first delay is first .. first * (1 + jitter)
	Millis most{30'000};         // no delay is longer
	double factor = 2;           // from one delay to the next
	double jitter = 0.5;         // so that many clients do not come back together
	Millis reset_after{120'000}; // so long after the end of a delay without the next
				     // failure, the first delay counts again
};

// 0.8 s to 30 s, reset after two healthy minutes: client-go's reflector.
class Backoff {
public:
	// random: called at each next(); empty means no jitter.
	explicit Backoff(Random random = {}, BackoffLimits limits = {})
		: random_(std::move(random)), limits_(limits)
	{
	}

	// Something failed at now (monotonic): how long to wait before the next try.
	Millis next(Millis now)
	{
		if (fresh(now))
			step_ = limits_.first;
		double chance = random_ ? std::clamp(random_(), 0.0, 1.0) : 0.0;
		double delay = static_cast<double>(step_.count()) * (1 + limits_.jitter * chance);
		double ceiling = static_cast<double>(limits_.most.count());
		// The step stops growing where the jitter still fits below the ceiling.
		step_ = Millis(static_cast<Millis::rep>(
			std::min(static_cast<double>(step_.count()) * limits_.factor,
				 ceiling / (1 + limits_.jitter))));
		Millis out(static_cast<Millis::rep>(std::min(delay, ceiling)));
		until_ = now + out;
		used_ = true;
		return out;
	}

	// True if no failure is remembered.
	bool fresh(Millis now) const { return !used_ || now - until_ >= limits_.reset_after; }

	void reset() { used_ = false; }

private:
	Random random_;
	BackoffLimits limits_;
	Millis step_{0}, until_{0};
	bool used_ = false;
};

} // namespace sk8::kube

#endif
