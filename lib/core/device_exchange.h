// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A job runs, its reservation pod was taken and made anew, and the kubelet has given the new one other devices than those that
// the job goes on using, which count as free for the kubelet then. The pod is given back and made again, until it has the
// right ones: which ones a kubelet chooses is its own affair, so it may hit or not.
//
// The second is made when the first is gone, not before: two of them need twice the room, which a full node never has, and
// which Slurm would have to keep from its other jobs meanwhile. So the job has none for as long as its kubelet needs to end
// one that does nothing (its grace is a second), and tries get rarer. Pure.
#ifndef SK8_CORE_DEVICE_EXCHANGE_H
#define SK8_CORE_DEVICE_EXCHANGE_H

#include "lib/base/clock.h"
#include "lib/core/gres.h"

namespace sk8::core {

struct ExchangeFacts {
	bool other = false;     // the pod has other devices than its job
	bool container = false; // tasks may run in it: they would lose their files
	bool held = false;      // other pods have all of the job's that it has not: no kubelet could give it any of these
	bool paused = false;    // the last try was a moment ago, or nobody hears of the kubelet, which could not end the pod
};
enum class ExchangeStep {
	none,      // it has those of its job
	stays,     // for as long as the job runs
	waits,     // for the other pod, or for the time of the next try
	give_back, // now
};
ExchangeStep next_step(const ExchangeFacts &facts);

// After so many tries in a row, from 0, until the next one.
Millis exchange_pause(int tries);

// Which devices of the one are not in the other: each a GRES with nothing but these.
GresList devices_without(const GresList &of, const GresList &these);

} // namespace sk8::core

#endif
