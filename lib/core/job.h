// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A placeholder job as the engine sees it: a copy of struct sk8_job.
#ifndef SK8_CORE_JOB_H
#define SK8_CORE_JOB_H

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/gres.h"
#include "lib/sk8_abi.h"

namespace sk8::core {

// Names a job for ever: bare ids are used again after a crash of slurmctld.
struct JobRef {
	std::uint32_t id = 0; // 0: no job
	std::int64_t submit_time = 0;

	bool operator==(const JobRef &) const = default;
	explicit operator bool() const { return id != 0; }
};

// What a job keeps of its place in the queue if it is made anew.
struct Age {
	std::int64_t accrue_time = 0; // since when Slurm counts its age (AccrueTime); 0: it does not
	std::uint32_t priority = 0;   // that it was given; 0: Slurm computes it

	bool operator==(const Age &) const = default;
};

struct Job {
	JobRef ref;
	sk8_job_state state = SK8_JOB_PENDING;
	bool held = false;
	std::string reason; // Slurm's word, for example "Priority"
	std::string partition;
	std::string excluded_nodes; // see node_list.h
	std::uint32_t priority = 0;
	std::int64_t start_time = 0; // expected while pending
	std::int64_t end_time = 0;
	std::int64_t preempt_end = 0; // it runs and Slurm preempts it: when its grace is over; else 0
	Age age;
	std::uint32_t exit_code = 0; // wait status
	std::uint32_t ended_by = SK8_NO_UID;
	bool ended_by_us = false; // through SlurmPort::end()
	std::string node;
	std::vector<std::uint16_t> cores; // Slurm's abstract index on the node
	std::uint64_t memory_mb = 0;
	GresList gres; // what it has there

	bool operator==(const Job &) const = default;

	bool ended() const { return state >= SK8_JOB_COMPLETED; }
	bool preempted() const { return running() && preempt_end != 0; } // in its grace
	bool running() const { return state == SK8_JOB_RUNNING || state == SK8_JOB_SUSPENDED; }
};

// As one thread saw it; for others to keep, never changed again.
using JobPtr = std::shared_ptr<const Job>;
inline JobPtr share(Job job)
{
	return std::make_shared<const Job>(std::move(job));
}

Job job_from_abi(const sk8_job &j); // copies
const char *job_state_name(sk8_job_state state); // "CANCELLED"

// A list of excluded nodes as we write it ends with the node that it begins with: so it
// tells, also after a restart, that no administrator has written it. Slurm keeps the text
// as it was given and counts a node once. "" is ours, too. Nodes that follow each other are written
// as ranges, "n[501-5000],n501": whoever lists jobs is sent all of it. Former releases wrote each.
std::string our_excluded_nodes(const std::set<std::string> &nodes);
bool are_our_excluded_nodes(std::string_view list);

} // namespace sk8::core

#endif
