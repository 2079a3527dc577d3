// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The engine's numbers; slurmctld's log has them at shutdown (verbose), Prometheus
// gets them by the table in metrics_table.cc.
#ifndef SK8_CORE_METRICS_H
#define SK8_CORE_METRICS_H

#include <array>
#include <chrono>

#include "lib/base/metrics.h"

namespace sk8::core {

// What slurmctld calls under its locks (lib/sk8_abi.h), in the order of hook_names.
enum class Hook { node_init, reconfigure, job_start, job_fini, masks, shutdown };
inline constexpr std::array<const char *, 6> hook_names = {"node_init", "reconfigure", "job_start",
							    "job_fini",	 "masks",	"shutdown"};
// Of the Kubernetes API, as RBAC names them. A watch takes as long as it is asked to.
inline constexpr std::array<const char *, 6> timed_verbs = {"get", "list", "create", "update", "patch", "delete"};

struct Metrics {
	Histogram &start_to_binding_ms; // Slurm starts the job -> the Binding request leaves
	Histogram &fini_to_delete_ms;   // Slurm ends the job -> the DELETE request leaves
	Histogram &created_to_bound_ms; // the pod is first seen -> 201 of its Binding
	Histogram &write_lock_held_us;  // by us, one hold
	Histogram &read_lock_held_us;
	std::array<Histogram *, hook_names.size()> hook_ns;
	std::array<Histogram *, timed_verbs.size()> api_ms;
	Counter &pods_bound;
	Counter &pods_resubmitted;
	Counter &jobs_submitted;
	Counter &ledger_writes; // flushes that wrote something
	Counter &ledger_write_errors;
	CounterFamily &api_requests; // cluster, verb, resource, code
	CounterFamily &relists;      // cluster, resource
};

Metrics &metrics(); // any thread

// Counts the time of one hook: a few relaxed atomics.
class HookTimer {
public:
	explicit HookTimer(Hook hook) : hook_(hook) {}
	~HookTimer()
	{
		const auto took = std::chrono::steady_clock::now() - began_;
		metrics().hook_ns[static_cast<std::size_t>(hook_)]->record(static_cast<std::uint64_t>(
			std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()));
	}
	HookTimer(const HookTimer &) = delete;
	HookTimer &operator=(const HookTimer &) = delete;

private:
	const Hook hook_;
	const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// A status as a value of a label: "200"; unusual ones by their class ("4xx"), so that
// no server can make up series; "none": there was no answer.
std::string code_label(int status);

} // namespace sk8::core

#endif
