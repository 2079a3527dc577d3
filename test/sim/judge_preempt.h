// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge remembers of a pod whose job Slurm preempts.
#ifndef SK8_SIM_JUDGE_PREEMPT_H
#define SK8_SIM_JUDGE_PREEMPT_H

#include <cstdint>
#include <string>

#include "test/sim/slurm_job.h"

namespace sk8::sim {

struct Preemption {
	JobId preemptor, job;      // preemptor: {} is an administrator's hand
	std::string node;
	Micros at = 0;
	std::int64_t begun = 0, grace = 0; // by Slurm's clock; seconds
	std::int64_t clock_step = 0;       // of that clock then
	bool told = false;         // a DELETE was sent in the grace
	std::int64_t ended = 0;    // its job, by Slurm's clock; 0: not yet
	bool by_others = false;    // somebody else wanted its end as well
	bool before_crash = false; // slurmctld may have forgotten it
};

// A job of Slurm's own that makes room for another one, while it has a pod of its own that its kubelet has admitted.
struct NativePreemption {
	JobId preemptor, job;
	std::string node;
	std::int64_t begun = 0, clock_step = 0;
	int crashes = 0; // by then: a slurmctld that is killed forgets who waits for whom
};

} // namespace sk8::sim

#endif
