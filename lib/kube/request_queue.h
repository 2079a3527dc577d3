// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which request goes next: the most important first, a bounded number at once and
// per second. Pure but for the time that it is told; one thread.
#ifndef SK8_KUBE_REQUEST_QUEUE_H
#define SK8_KUBE_REQUEST_QUEUE_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "lib/base/clock.h"

namespace sk8::kube {

// urgent: cores hang on it (Binding, DELETE, finalizer). normal: decisions wait for it
// (GET, LIST). low: people read it (conditions, events).
enum class Priority { urgent, normal, low };

struct RequestLimits {
	// On the wire at once, watches apart. Slurm starts jobs in bursts (a cycle of its
	// backfill), and what waits here for a connection waits for several answers of the
	// server. Connections are made when a burst first needs them, then kept.
	int in_flight = 32;
	double per_second = 500; // in the long run; after a quiet time two seconds' worth at once
};

class RequestQueue {
public:
	using Id = std::uint64_t;

	explicit RequestQueue(RequestLimits limits = {}) { set_limits(limits); }

	// in_flight below 1 and per_second below 1 count as 1.
	void set_limits(RequestLimits limits)
	{
		limits_ = {std::max(limits.in_flight, 1), std::max(limits.per_second, 1.0)};
		tokens_ = std::min(tokens_, burst());
	}

	void push(Priority priority, Id id) { waiting_[index(priority)].push_back(id); }

	// The next one to send at now (monotonic), if any may be sent. It is in flight until
	// ended(), which every id that was returned needs.
	std::optional<std::pair<Priority, Id>> next(Millis now)
	{
		refill(now);
		for (Priority p : order) {
			std::deque<Id> &queue = waiting_[index(p)];
			if (queue.empty() || !has_room(p) || is_held(p, now) || tokens_ < needed(p))
				continue;
			tokens_ -= 1;
			in_flight_[index(p)]++;
			Id id = queue.front();
			queue.pop_front();
			return std::pair(p, id);
		}
		return std::nullopt;
	}

	void ended(Priority priority) { in_flight_[index(priority)]--; }

	// The server is overloaded and wants to be left alone: until then only urgent
	// requests go.
	void hold_back(Millis until) { held_until_ = std::max(held_until_, until); }

	// When next() may have something without push() or ended(); nothing if only those can
	// change that.
	std::optional<Millis> due(Millis now) const
	{
		std::optional<Millis> first;
		for (Priority p : order) {
			if (waiting_[index(p)].empty() || !has_room(p))
				continue;
			double missing = std::max(needed(p) - tokens_, 0.0);
			// Rounded up: a wait that ends too early would be repeated at once.
			Millis at = filled_ + Millis(static_cast<Millis::rep>(missing * 1000 / limits_.per_second) +
						     (missing > 0));
			if (p != Priority::urgent)
				at = std::max(at, held_until_);
			first = std::min(first.value_or(at), at);
		}
		return first ? std::optional(std::max(*first, now)) : std::nullopt;
	}

private:
	static constexpr std::array order = {Priority::urgent, Priority::normal, Priority::low};
	static std::size_t index(Priority p) { return static_cast<std::size_t>(p); }

	double burst() const { return 2 * limits_.per_second; }

	// Something is left for those that are more important.
	double needed(Priority p) const
	{
		static constexpr double reserve[] = {0, 0.25, 0.5}; // of the burst
		return std::max(1.0, burst() * reserve[index(p)]);
	}

	bool has_room(Priority p) const
	{
		int all = in_flight_[0] + in_flight_[1] + in_flight_[2];
		if (p == Priority::urgent)
			return all < limits_.in_flight;
		// One is kept for urgent requests, and low ones get a third.
		int others = in_flight_[1] + in_flight_[2];
		bool room = others < std::max(1, limits_.in_flight - 1) && all < limits_.in_flight;
		return room && (p == Priority::normal || in_flight_[2] < std::max(1, limits_.in_flight / 3));
	}

	bool is_held(Priority p, Millis now) const { return p != Priority::urgent && now < held_until_; }

	void refill(Millis now)
	{
		if (!started_)
			tokens_ = burst();
		else
			tokens_ += limits_.per_second * double((now - filled_).count()) / 1000;
		started_ = true;
		tokens_ = std::min(tokens_, burst());
		filled_ = now;
	}

	RequestLimits limits_;
	std::array<std::deque<Id>, 3> waiting_;
	std::array<int, 3> in_flight_{};
	double tokens_ = 0;
	Millis filled_{0}, held_until_{0};
	bool started_ = false;
};

} // namespace sk8::kube

#endif
