// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A clock that only a test moves. Any thread may read it.
#ifndef SK8_TEST_UNIT_KUBE_VIRTUAL_CLOCK_H
#define SK8_TEST_UNIT_KUBE_VIRTUAL_CLOCK_H

#include <atomic>

#include "lib/base/clock.h"

class VirtualClock final : public sk8::Clock {
public:
	sk8::Millis monotonic() const override { return sk8::Millis(now_.load()); }
	std::int64_t wall_seconds() const override { return 1785578400 + now_.load() / 1000; }
	void advance(sk8::Millis by) { now_ += by.count(); }

private:
	std::atomic<std::int64_t> now_{1'000'000};
};

#endif
