// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The pause before the next try of what has failed.
#ifndef SK8_BASE_DOUBLING_H
#define SK8_BASE_DOUBLING_H

#include <algorithm>

#include "lib/base/clock.h"

namespace sk8 {

// first, then twice as long with each failure before this one, up to longest. failures: how many there were before it.
constexpr Millis doubled(Millis first, Millis longest, int failures)
{
	return std::min(longest, first * (1 << std::clamp(failures, 0, 20)));
}

// The usual one: half a second, up to ten.
constexpr Millis pause_after(int failures)
{
	return doubled(Millis(500), Millis(10'000), failures);
}

} // namespace sk8

#endif
