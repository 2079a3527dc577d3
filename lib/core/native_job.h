// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A job of Slurm's own, behind which no pod stands: a copy of struct sk8_native_job.
#ifndef SK8_CORE_NATIVE_JOB_H
#define SK8_CORE_NATIVE_JOB_H

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/core/gres.h"
#include "lib/core/job.h"
#include "lib/core/slurm_port.h"

namespace sk8::core {

struct NativeShare {
	std::string node;
	std::uint32_t cpus = 0; // hardware threads
	std::uint64_t memory_mb = 0;
	GresList gres;
	std::vector<std::uint16_t> cores{}; // of the node, as in Hold
};

struct NativeJob {
	JobRef ref;
	std::uint32_t user_id = 0, group_id = 0;
	std::string account;
	// Of the container that its user wants (job_container.h, pod_template.h, service_account.h); empty: nothing is said.
	std::string image, pod_template, service_account;
	bool wants_container() const { return !image.empty() || !pod_template.empty() || !service_account.empty(); }
	bool exclusive = false; // it wants its nodes without others' pods
	bool requeues = false; // a batch job that may be requeued
	bool ending = false;   // processes may be left on the nodes of shares, and on no other
	std::vector<NativeShare> shares;
};
using NativeJobPtr = std::shared_ptr<const NativeJob>;

NativeJobPtr native_from_abi(const sk8_native_job &j); // copies

// What becomes of a job in the gate.
struct GateAnswer {
	bool open = true;
	Millis delay{0};  // not open: a batch job does not start again before
	std::string why;  // not open: one sentence for people
};

// The pod that holds cores or devices of this share; nothing: none.
using TakenBy = std::function<std::optional<PodKey>(const NativeShare &share)>;
// That, as a part of a sentence; empty: none.
std::string taken_text(const NativeShare &share, const TakenBy &taken_by);
// The answer to a job that is not started; why: a part of a sentence.
GateAnswer not_started(const std::string &why, Millis delay);

// What the engine asks of Slurm about them; any thread, returns at once.
class NativePort {
public:
	virtual ~NativePort() = default;
	virtual void answer(JobRef job, GateAnswer answer) = 0;
	// It ends, or will, or has given a node back: SlurmListener::native_left() tells which nodes it still uses until there are none.
	virtual void watch_end(JobRef job) = 0;
	// One that runs. requeue: cancelled only if it cannot be requeued; reply.requeued. why: one sentence.
	virtual void end(JobRef job, bool requeue, std::string why, SlurmPort::Done done) = 0;
	// One in the gate gets these devices of a GRES there, instead of those that it has. Refused if another job has one of them.
	virtual void set_devices(JobRef job, DeviceChange change, SlurmPort::Done done) = 0;
};

} // namespace sk8::core

#endif
