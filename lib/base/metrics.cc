// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/metrics.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <mutex>

#include "lib/base/text.h"

namespace sk8 {

namespace {

struct Registry {
	std::mutex mutex;
	std::map<std::string, std::unique_ptr<Counter>, std::less<>> counters;
	std::map<std::string, std::unique_ptr<Histogram>, std::less<>> histograms;
};

Registry &registry()
{
	// Leaked: threads may record until the process is gone.
	static auto *const r = new Registry;
	return *r;
}

template <class M, class... Args>
typename M::mapped_type::element_type &find_or_make(M &metrics, std::string_view name, Args... args)
{
	const std::lock_guard lock(registry().mutex);
	auto at = metrics.find(name);
	if (at == metrics.end()) {
		using T = typename M::mapped_type::element_type;
		at = metrics.emplace(std::string(name), std::make_unique<T>(args...)).first;
	}
	return *at->second;
}

} // namespace

// 0 to 15 have a bucket each; above, the three bits after the highest one choose
// among 8 buckets of its power of two.
std::size_t Histogram::bucket_of(std::uint64_t value)
{
	if (value < 16)
		return value;
	const auto width = static_cast<std::size_t>(std::bit_width(value)); // 5 to 64
	return 16 + (width - 5) * 8 + (value >> (width - 4) & 7);
}

std::uint64_t Histogram::last_of(std::size_t bucket)
{
	if (bucket < 16)
		return bucket;
	const std::size_t shift = (bucket - 16) / 8 + 1;
	const std::uint64_t first = (8 + (bucket - 16) % 8) << shift;
	return first + ((std::uint64_t{1} << shift) - 1);
}

Histogram::Histogram(std::span<const std::uint64_t> bounds)
	: bounds_(bounds.first(std::min(bounds.size(), max_bounds)))
{
}

void Histogram::record(std::uint64_t value)
{
	const auto step = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
	steps_[static_cast<std::size_t>(step)].fetch_add(1, std::memory_order_relaxed);
	counts_[bucket_of(value)].fetch_add(1, std::memory_order_relaxed);
	sum_.fetch_add(value, std::memory_order_relaxed);
	std::uint64_t max = max_.load(std::memory_order_relaxed);
	while (value > max &&
	       !max_.compare_exchange_weak(max, value, std::memory_order_relaxed))
		;
}

HistogramReading Histogram::read() const
{
	std::array<std::uint64_t, buckets> counts;
	HistogramReading reading;
	for (std::size_t i = 0; i < buckets; i++)
		reading.count += counts[i] = counts_[i].load(std::memory_order_relaxed);
	reading.sum = sum_.load(std::memory_order_relaxed);
	reading.max = max_.load(std::memory_order_relaxed);

	// The value that at least percent of all are not above.
	const auto percentile = [&](std::uint64_t percent) -> std::uint64_t {
		const std::uint64_t wanted =
			reading.count / 100 * percent + (reading.count % 100 * percent + 99) / 100;
		std::uint64_t seen = 0;
		for (std::size_t i = 0; i < buckets; i++) {
			seen += counts[i];
			if (seen >= wanted && seen)
				return std::min(last_of(i), reading.max);
		}
		return 0;
	};
	reading.p50 = percentile(50);
	reading.p99 = percentile(99);
	return reading;
}

HistogramSteps Histogram::steps() const
{
	HistogramSteps out;
	for (std::size_t i = 0; i <= bounds_.size(); i++) {
		out.count += steps_[i].load(std::memory_order_relaxed);
		if (i < bounds_.size())
			out.cumulative.push_back(out.count);
	}
	out.sum = sum_.load(std::memory_order_relaxed);
	return out;
}

void Histogram::reset()
{
	for (auto &step : steps_)
		step.store(0, std::memory_order_relaxed);
	for (auto &count : counts_)
		count.store(0, std::memory_order_relaxed);
	sum_.store(0, std::memory_order_relaxed);
	max_.store(0, std::memory_order_relaxed);
}

void CounterFamily::add(Values values, std::uint64_t n)
{
	const std::lock_guard lock(mutex_);
	auto at = series_.find(values);
	if (at == series_.end()) {
		if (series_.size() + 1 >= max_series_)
			values.assign(values.size(), "other");
		at = series_.try_emplace(std::move(values)).first;
	}
	at->second += n;
}

void CounterFamily::each(const std::function<void(const Values &, std::uint64_t)> &f) const
{
	const std::lock_guard lock(mutex_);
	for (const auto &[values, n] : series_)
		f(values, n);
}

Counter &counter(std::string_view name)
{
	return find_or_make(registry().counters, name);
}

Histogram &histogram(std::string_view name, std::span<const std::uint64_t> bounds)
{
	return find_or_make(registry().histograms, name, bounds);
}

std::vector<std::string> metric_lines()
{
	const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
	std::vector<std::string> lines;
	Registry &r = registry();
	const std::lock_guard lock(r.mutex);
	for (const auto &[name, c] : r.counters)
		lines.push_back(strprintf("%s %llu", name.c_str(), number(c->get())));
	for (const auto &[name, h] : r.histograms) {
		const HistogramReading v = h->read();
		lines.push_back(strprintf("%s count=%llu sum=%llu p50=%llu p99=%llu max=%llu",
					  name.c_str(), number(v.count), number(v.sum), number(v.p50),
					  number(v.p99), number(v.max)));
	}
	std::sort(lines.begin(), lines.end());
	return lines;
}

} // namespace sk8
