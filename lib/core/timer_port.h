// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Delays on the engine's thread. Real: the HTTP loop's timers; in tests virtual.
#ifndef SK8_CORE_TIMER_PORT_H
#define SK8_CORE_TIMER_PORT_H

#include <cstdint>
#include <functional>

#include "lib/base/clock.h"

namespace sk8::core {

class TimerPort {
public:
	virtual ~TimerPort() = default;
	virtual void after(Millis delay, std::function<void()> f) = 0;
	virtual Millis now() const = 0;              // monotonic
	virtual std::int64_t wall_seconds() const = 0;
};

} // namespace sk8::core

#endif
