// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A job of the model of Slurm, as its controller's memory and its saved state have it.
#ifndef SK8_SIM_SLURM_JOB_H
#define SK8_SIM_SLURM_JOB_H

#include <string>
#include <vector>

#include "lib/sk8_abi.h"
#include "test/sim/schedule.h"

namespace sk8::sim {

// Ids come again, with another time.
struct JobId {
	std::uint32_t id = 0;
	std::int64_t submit_time = 0;

	bool operator==(const JobId &) const = default;
};

struct SlurmJob {
	std::uint32_t id = 0;
	std::int64_t submit_time = 0; // by the controller's clock
	std::string mark;             // empty: of sbatch
	bool by_hand = false;         // ... which an administrator has given it, or another slurmctld
	std::uint32_t user = 0;
	std::string name;
	sk8_job_state state = SK8_JOB_PENDING;
	std::uint32_t cpus = 1;       // one thread per core
	std::uint64_t memory_mb = 0;
	std::uint32_t gpus = 0;
	std::string excluded, required;
	std::uint32_t priority = 1000; // 0: held
	int high = 0;                 // its partition preempts those of lower ones
	std::string qos;
	std::int64_t preempt_time = 0, kill_at = 0; // when its grace began, and is over for Slurm; 0: it is not preempted
	std::int64_t grace = 0;       // that it has then
	std::int64_t preempt_start_time = 0; // when others were last preempted for it
	bool requeues = false;        // batch only, as in Slurm
	std::string node;
	std::vector<std::uint16_t> cores, devices; // devices: of its GPUs
	std::int64_t start_time = 0, end_time = 0, accrue_time = 0;
	Micros life = 0;              // of a batch job's program
	std::uint32_t exit_code = 0, ended_by = SK8_NO_UID;
	bool by_us = false;           // its system comment says so

	JobId ref() const { return {id, submit_time}; }
	bool in_grace() const { return running() && preempt_time != 0; }
	// Of Slurm's own, with prep/k8s: model_gate.cc
	bool srun = false;            // no batch job: never queued again
	bool configuring = false;     // in the gate, or on its way there
	int prologs = 0;              // of prolog_slurmctld: those that nobody has answered
	bool launched = false;        // in the run that ends, or has ended
	bool completing = false;      // slurmd has not said that its last process is gone
	bool again = false;           // ... and then it is queued again
	std::int64_t begin_time = 0;  // it does not start before

	bool batch() const { return mark.empty(); }
	bool live() const { return state < SK8_JOB_COMPLETED; }
	bool running() const { return state == SK8_JOB_RUNNING; }
	bool pending() const { return state == SK8_JOB_PENDING; }
	bool can_start(std::int64_t now) const
	{
		return pending() && priority > 0 && !completing && prologs == 0 && begin_time <= now;
	}
	bool has_process() const { return batch() && !configuring; } // once it has started
};

} // namespace sk8::sim

#endif
