// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The engine's numbers; slurmctld's log has them at shutdown (verbose).
#ifndef SK8_CORE_METRICS_H
#define SK8_CORE_METRICS_H

#include "lib/base/metrics.h"

namespace sk8::core {

struct Metrics {
	Histogram &start_to_binding_ms; // Slurm starts the job -> the Binding request leaves
	Histogram &fini_to_delete_ms;   // Slurm ends the job -> the DELETE request leaves
	Histogram &created_to_bound_ms; // the pod is first seen -> 201 of its Binding
	Histogram &write_lock_held_us;  // by us, one hold
	Histogram &read_lock_held_us;
	Counter &pods_bound;
	Counter &jobs_submitted;
};

Metrics &metrics(); // any thread

} // namespace sk8::core

#endif
