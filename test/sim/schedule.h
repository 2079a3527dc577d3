// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Virtual time: what is due, in the order in which it happens. Everything that
// happens in a simulation is a function put here; one of them is one step.
#ifndef SK8_SIM_SCHEDULE_H
#define SK8_SIM_SCHEDULE_H

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace sk8::sim {

using Micros = std::int64_t;
inline constexpr Micros ms = 1000, second = 1'000'000;

class Schedule {
public:
	Micros now() const { return now_; }
	bool empty() const { return heap_.empty(); }
	std::uint64_t steps() const { return steps_; }
	// Only if there is one.
	Micros next_at() const { return heap_.front().at; }

	// Of those due in the same microsecond the one that was put first comes first.
	void after(Micros delay, std::function<void()> f)
	{
		heap_.push_back({now_ + std::max<Micros>(delay, 0), order_++, std::move(f)});
		std::push_heap(heap_.begin(), heap_.end(), later);
	}
	void step()
	{
		std::pop_heap(heap_.begin(), heap_.end(), later);
		Event e = std::move(heap_.back());
		heap_.pop_back();
		now_ = e.at;
		steps_++;
		e.f();
	}

private:
	struct Event {
		Micros at;
		std::uint64_t order;
		std::function<void()> f;
	};
	static bool later(const Event &a, const Event &b)
	{
		return a.at != b.at ? a.at > b.at : a.order > b.order;
	}
	std::vector<Event> heap_;
	Micros now_ = second;
	std::uint64_t order_ = 0, steps_ = 0;
};

} // namespace sk8::sim

#endif
