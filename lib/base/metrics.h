// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Counters and histograms for the status lines, the benchmarks and Prometheus.
// Recording is a few relaxed atomic operations: allowed in hooks and from any thread.
// Readings are not a snapshot: what is recorded meanwhile may be in one number and not
// in another.
#ifndef SK8_BASE_METRICS_H
#define SK8_BASE_METRICS_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sk8 {

class Counter {
public:
	void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
	void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }
	std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

private:
	std::atomic<std::uint64_t> value_{0};
};

struct HistogramReading {
	std::uint64_t count = 0, sum = 0, max = 0;
	std::uint64_t p50 = 0, p99 = 0; // at most 12.5 % above the true value
};

// How many values were not above each of the bounds, and in all.
struct HistogramSteps {
	std::vector<std::uint64_t> cumulative; // one for each bound
	std::uint64_t count = 0, sum = 0;
};

// Of whole numbers in a unit that the name tells ("bind_us"). 8 buckets for each
// doubling: 4 KiB, whatever is recorded. And exact counts up to chosen bounds, for
// readers who add and compare the histograms of several machines.
class Histogram {
public:
	static constexpr std::size_t max_bounds = 20;

	// bounds: ascending, in the unit of the values, at most max_bounds; must live as
	// long as the histogram.
	explicit Histogram(std::span<const std::uint64_t> bounds = {});

	void record(std::uint64_t value);
	HistogramReading read() const;
	HistogramSteps steps() const;
	std::span<const std::uint64_t> bounds() const { return bounds_; }
	void reset(); // not to be mixed with record()

private:
	static constexpr std::size_t buckets = 496;
	static std::size_t bucket_of(std::uint64_t value);
	static std::uint64_t last_of(std::size_t bucket); // its largest value

	const std::span<const std::uint64_t> bounds_;
	std::array<std::atomic<std::uint64_t>, max_bounds + 1> steps_{}; // the last: above all bounds
	std::array<std::atomic<std::uint64_t>, buckets> counts_{};
	std::atomic<std::uint64_t> sum_{0}, max_{0};
};

// Counters that differ in the values of some labels ("pods", "200"). However many
// values come, there are never more than so many counters: all later ones are one, with
// the value "other" in each label.
class CounterFamily {
public:
	using Values = std::vector<std::string>;
	explicit CounterFamily(std::size_t max_series) : max_series_(max_series) {}

	// Takes a short lock and may allocate: not for hooks. values: one for each label.
	void add(Values values, std::uint64_t n = 1);
	// f runs under that lock; in the order of the values.
	void each(const std::function<void(const Values &, std::uint64_t)> &f) const;

private:
	const std::size_t max_series_;
	mutable std::mutex mutex_;
	std::map<Values, std::uint64_t> series_;
};

// The one of that name, created at the first call (takes a lock and may allocate:
// keep the reference), never destroyed. One name is either a counter or a histogram.
// bounds: as Histogram's; those of the first call count.
Counter &counter(std::string_view name);
Histogram &histogram(std::string_view name, std::span<const std::uint64_t> bounds = {});

// "name 5" and "name count=2 sum=30 p50=10 p99=20 max=20", by name.
std::vector<std::string> metric_lines();

} // namespace sk8

#endif
