// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What is done with a node that a job wants without others' pods. Pure; facts, never a remembered step: a slurmctld that
// starts in the midst of it asks again.
#ifndef SK8_CORE_EXCLUSIVE_STEP_H
#define SK8_CORE_EXCLUSIVE_STEP_H

#include "lib/base/clock.h"

namespace sk8::core {

// A node of a job in the gate.
struct ExclusiveFacts {
	bool known = false;    // which nodes and pods there are
	bool enabled = false;  // it may be had so, by settings and labels
	bool tainted = false;  // so that no others come
	bool crowded = false;  // pods are there that can be evicted
	bool stays = false;    // ... that cannot
	bool too_late = false; // the job has waited long enough
};
enum class ExclusiveStep {
	wait,
	taint, // and wait
	evict, // and wait
	open,  // as far as this node is concerned
	refuse_pod,  // pods that cannot be evicted are there
	refuse_late, // time is over
};
ExclusiveStep exclusive_step(const ExclusiveFacts &facts);

// A node, for its taint.
struct ExclusiveUse {
	bool enabled = false;
	bool tainted = false;
	bool jobs_known = false; // Slurm has told which there are
	bool has_job = false;    // in the gate, running or ending
	bool refused = false;    // the last one could not have it: it goes back at once
	Millis free_for{0};      // without such a job
};
bool wants_exclusive_taint(const ExclusiveUse &use, Millis idle);

} // namespace sk8::core

#endif
