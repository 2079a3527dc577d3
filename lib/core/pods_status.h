// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What `slurm-k8s status` is told about pods: plain values, and how they become
// JSON. Pure.
#ifndef SK8_CORE_PODS_STATUS_H
#define SK8_CORE_PODS_STATUS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/core/cluster_numbers.h"
#include "lib/core/hold_table.h"
#include "lib/core/lifecycle.h"

namespace sk8::core {

// Which pods somebody asks about.
struct StatusQuery {
	std::string node; // those that hold something there or are bound there; empty: any
	std::string pod;  // NAMESPACE/NAME or a uid; empty: any
	bool held = false; // only those with a mask

	bool wants_pod(const PodKey &key) const;
};

// One pod: where it stands in the table, and what is in its way.
struct PodReport {
	PodKey key;
	PodState pod = PodState::unknown;
	JobState job = JobState::none;
	Effect next = Effect::nothing;
	JobRef job_ref;         // id 0: none
	std::string job_reason; // Slurm's word while it is pending
	std::string node;       // where it is bound, or its job runs
	std::string phase;      // Kubernetes' word; empty: the object is not known
	bool deleting = false;
	std::optional<HeldBy> held;
	std::string doing;      // the answer that is awaited: "binding"
	std::string refusal;    // why it is refused
	std::string trouble;    // why the last try failed
	int failures = 0;       // tries that failed in a row
	std::optional<Millis> retry_in;
	std::string why;        // of a mask: why it is still there
};

// A foreign pod that holds something.
struct ForeignReport {
	Hold hold;
	std::string phase; // Kubernetes' word; empty: only the saved ledger knows of it
	std::string why;   // it is still held although its object is gone; or empty
};

Json to_json(const PodNumbers &n);
Json to_json(const ForeignNumbers &n);
Json to_json(const ForeignReport &r);
Json to_json(const PodReport &r);
Json to_json(const Hold &h, bool masked);
Json to_json(const NodeMask &m);

} // namespace sk8::core

#endif
