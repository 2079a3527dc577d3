// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What an engine knows at one moment, in numbers: for those who ask, never kept up to
// date. Counting costs as much as there are pods.
#ifndef SK8_CORE_CLUSTER_NUMBERS_H
#define SK8_CORE_CLUSTER_NUMBERS_H

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/clock.h"
#include "lib/core/lifecycle.h"

namespace sk8::core {

struct PodNumbers {
	std::array<std::size_t, pod_states> pods{}; // by PodState
	std::array<std::size_t, job_states> jobs{}; // by JobState; none: pods without job
	// What pods hold on nodes:
	std::size_t placed = 0;  // covered by their running job
	std::size_t leaving = 0; // masked: the job has ended, the kubelet has not yet reported the end
	std::size_t lost = 0;    // masked, and no kubelet will report: its agent or a person must say it
	std::size_t reports_waiting = 0; // events and conditions not sent yet

	std::size_t masked() const { return leaving + lost; }
	std::size_t held() const { return placed + masked(); }
};

// Pods that others placed on shared nodes.
struct ForeignNumbers {
	std::size_t held = 0;     // with a mask
	std::size_t unproved = 0; // ... gone, and their kubelet has not reported since
	std::size_t lost = 0;     // ... gone by force: the same
};

// What masks keep away from Slurm's jobs.
struct MaskNumbers {
	std::size_t nodes = 0; // with a mask, wholly masked ones included
	std::size_t whole_nodes = 0;
	std::uint64_t cores = 0, memory_mb = 0; // without wholly masked nodes; cores: of pods through Slurm
	std::uint64_t foreign_milli_cpu = 0;
	std::map<std::pair<std::string, std::string>, std::uint64_t> gres; // by name and type, of which there are few
};

struct WatchNumbers {
	std::string resource;        // "pods"
	std::int64_t last_event = 0; // seconds since 1970; 0: none yet
};

struct ClusterNumbers {
	std::string cluster;
	bool answered = false; // false: the engine was too busy, nothing below is known
	bool connected = false; // all lists and watches are up to date
	std::vector<WatchNumbers> watches;
	PodNumbers pods;
	ForeignNumbers foreign;
	MaskNumbers masks;
	std::size_t overcommitted_nodes = 0; // shared ones of which pods and Slurm's jobs together have more than there is
	std::size_t requests_in_flight = 0;
	std::size_t events_waiting = 0; // of Slurm's, for the engine; known also if it was too busy
};

// Numbers that an engine is asked for; shared by who asks and who answers.
class Counting {
public:
	explicit Counting(ClusterNumbers known) : numbers_(std::move(known)) {}

	void answer(ClusterNumbers numbers)
	{
		{
			const std::lock_guard lock(mutex_);
			numbers_ = std::move(numbers);
		}
		answered_.notify_all();
	}
	// Waits; without an answer: what was known before.
	ClusterNumbers wait(Millis timeout)
	{
		std::unique_lock lock(mutex_);
		answered_.wait_for(lock, timeout, [this] { return numbers_.answered; });
		return numbers_;
	}

private:
	std::mutex mutex_;
	std::condition_variable answered_;
	ClusterNumbers numbers_;
};

} // namespace sk8::core

#endif
