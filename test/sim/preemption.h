// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Preemption by partition or QOS in the model of Slurm: what it is made of.
#ifndef SK8_SIM_PREEMPTION_H
#define SK8_SIM_PREEMPTION_H

#include <cstdint>
#include <string>
#include <vector>

#include "test/sim/slurm_job.h"

namespace sk8::sim {

// GraceTime, seconds: of each partition, and of the QOS "patient", which counts in its place.
struct GraceTimes {
	std::int64_t partition = 0;
	static constexpr std::int64_t patient = 40;

	std::int64_t of(const std::string &qos) const { return qos == "patient" ? patient : partition; }
};

// Partitions that preempt have names; any other one is the lowest.
inline int tier_of(const std::string &partition)
{
	return partition == "top" ? 2 : partition == "high" ? 1 : 0;
}

enum class VictimState { gone, runs, leaves };

// A job that leaves for a preemptor: a row of lib/slurm/preemptors.c.
struct Victim {
	JobId preemptor, job;
	bool native = false;
	std::string node;
	std::vector<std::uint16_t> cores;
	std::int64_t until = 0; // 0: its job has not ended
};

} // namespace sk8::sim

#endif
