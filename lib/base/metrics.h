// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Counters and histograms for the status lines and the benchmarks. Recording is a
// few relaxed atomic operations: allowed in hooks and from any thread. Readings are
// not a snapshot: what is recorded meanwhile may be in one number and not in another.
#ifndef SK8_BASE_METRICS_H
#define SK8_BASE_METRICS_H

#include <array>
#include <atomic>
#include <cstdint>
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

// Of whole numbers in a unit that the name tells ("bind_us"). 8 buckets for each
// doubling: 4 KiB, whatever is recorded.
class Histogram {
public:
	void record(std::uint64_t value);
	HistogramReading read() const;
	void reset(); // not to be mixed with record()

private:
	static constexpr std::size_t buckets = 496;
	static std::size_t bucket_of(std::uint64_t value);
	static std::uint64_t last_of(std::size_t bucket); // its largest value

	std::array<std::atomic<std::uint64_t>, buckets> counts_{};
	std::atomic<std::uint64_t> sum_{0}, max_{0};
};

// The one of that name, created at the first call (takes a lock and may allocate:
// keep the reference), never destroyed. One name is either a counter or a histogram.
Counter &counter(std::string_view name);
Histogram &histogram(std::string_view name);

// "name 5" and "name count=2 sum=30 p50=10 p99=20 max=20", by name.
std::vector<std::string> metric_lines();

} // namespace sk8

#endif
