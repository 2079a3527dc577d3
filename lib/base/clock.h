// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Time is injected, so that tests and the simulation own it.
#ifndef SK8_BASE_CLOCK_H
#define SK8_BASE_CLOCK_H

#include <chrono>
#include <cstdint>

namespace sk8 {

using Millis = std::chrono::milliseconds;

class Clock {
public:
	virtual ~Clock() = default;
	// Never goes back; only differences mean something. For delays and timeouts.
	virtual Millis monotonic() const = 0;
	// The same in microseconds, for measuring.
	virtual std::int64_t monotonic_us() const { return monotonic().count() * 1000; }
	// Seconds since 1970, UTC; may step. For what people and other systems read.
	virtual std::int64_t wall_seconds() const = 0;
};

class SystemClock final : public Clock {
public:
	Millis monotonic() const override
	{
		return std::chrono::duration_cast<Millis>(
			std::chrono::steady_clock::now().time_since_epoch());
	}
	std::int64_t monotonic_us() const override
	{
		return std::chrono::duration_cast<std::chrono::microseconds>(
			       std::chrono::steady_clock::now().time_since_epoch())
			.count();
	}
	std::int64_t wall_seconds() const override
	{
		return std::chrono::duration_cast<std::chrono::seconds>(
			       std::chrono::system_clock::now().time_since_epoch())
			.count();
	}
};

} // namespace sk8

#endif
