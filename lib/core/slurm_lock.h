// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How the Slurm thread takes slurmctld's locks, and when it looks again. Only for
// slurm_worker.cc and slurm_nodes.cc.
#ifndef SK8_CORE_SLURM_LOCK_H
#define SK8_CORE_SLURM_LOCK_H

#include <algorithm>

#include "lib/base/clock.h"
#include "lib/core/metrics.h"
#include "lib/sk8_abi.h"

namespace sk8::core {

// slurmctld's locks for a scope; counts how long others had to wait for us.
class SlurmLock {
public:
	// held_us: added to, at least 1; null: nobody wants to know.
	SlurmLock(const sk8_slurm_ops &ops, const Clock &clock, bool write, std::int64_t *held_us = nullptr)
		: ops_(ops), clock_(clock), write_(write), held_us_(held_us)
	{
		ops_.lock(write_);
		since_ = clock_.monotonic_us();
	}
	~SlurmLock()
	{
		const auto held = clock_.monotonic_us() - since_;
		ops_.unlock(write_, changed, masks);
		if (held_us_)
			*held_us_ += std::max<std::int64_t>(held, 1);
		auto &histogram = write_ ? metrics().write_lock_held_us : metrics().read_lock_held_us;
		histogram.record(static_cast<std::uint64_t>(held));
	}
	SlurmLock(const SlurmLock &) = delete;
	SlurmLock &operator=(const SlurmLock &) = delete;

	// Also when slurmctld ends: who holds its locks then keeps it from saving its state.
	bool used_up() const { return !ops_.active() || clock_.monotonic_us() - since_ > max_hold.count() * 1000; }
	bool changed = false, masks = false; // see sk8_slurm_ops

private:
	static constexpr Millis max_hold{10}; // then others get slurmctld's locks

	const sk8_slurm_ops &ops_;
	const Clock &clock_;
	bool write_;
	std::int64_t *held_us_;
	std::int64_t since_;
};

// Slurm's stamp has a resolution of a second: it is news until it is older than the
// last look. Nothing can be told if the clock was set back since then.
inline bool news(std::int64_t stamp, std::int64_t seen, std::int64_t now)
{
	return stamp >= seen || now < seen;
}

} // namespace sk8::core

#endif
