// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/metrics.h"

#include <algorithm>

namespace sk8::core {

// Steps for Prometheus, in the unit of the histogram.
using Bounds = std::uint64_t;
static constexpr Bounds latency_ms[] = {5,    10,   25,   50,    100,   250,	500,
					1000, 2500, 5000, 10000, 30000, 60000};
static constexpr Bounds queue_ms[] = {100,     1'000,	  10'000,	60'000,	   300'000,
				      900'000, 3'600'000, 14'400'000, 86'400'000};
static constexpr Bounds lock_us[] = {100,    250,    500,    1'000,   2'500,	5'000,
				     10'000, 25'000, 50'000, 100'000, 1'000'000};
static constexpr Bounds hook_ns[] = {250,     1'000,   2'500,	  10'000,     25'000,	   100'000,
				     250'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};

static constexpr std::size_t max_api_series = 300, max_relist_series = 50;

template <std::size_t n>
static std::array<Histogram *, n> of_each(const char *prefix, const std::array<const char *, n> &names,
					  const char *unit, std::span<const Bounds> bounds)
{
	std::array<Histogram *, n> out;
	for (std::size_t i = 0; i < n; i++)
		out[i] = &histogram(std::string(prefix) + names[i] + unit, bounds);
	return out;
}

Metrics &metrics()
{
	// Leaked: no static destructors.
	static auto *m = new Metrics{
		histogram("start_to_binding_ms", latency_ms),
		histogram("fini_to_delete_ms", latency_ms),
		histogram("created_to_bound_ms", queue_ms),
		histogram("write_lock_held_us", lock_us),
		histogram("read_lock_held_us", lock_us),
		of_each("hook_", hook_names, "_ns", hook_ns),
		of_each("api_", timed_verbs, "_ms", latency_ms),
		counter("pods_bound"),
		counter("pods_resubmitted"),
		counter("jobs_submitted"),
		counter("ledger_writes"),
		counter("ledger_write_errors"),
		*new CounterFamily(max_api_series),
		*new CounterFamily(max_relist_series),
	};
	return *m;
}

std::string code_label(int status)
{
	static constexpr int usual[] = {200, 201, 202, 400, 401, 403, 404, 409, 410,
					413, 415, 422, 429, 500, 502, 503, 504};
	if (status == 0)
		return "none";
	if (std::find(std::begin(usual), std::end(usual), status) != std::end(usual))
		return std::to_string(status);
	return status >= 100 && status < 600 ? std::to_string(status / 100) + "xx" : "other";
}

} // namespace sk8::core
