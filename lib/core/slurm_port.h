// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The engine's only way into Slurm. Real: slurm_worker (a thread that takes
// slurmctld's locks); in tests a model. All calls return at once; `done` runs
// later on the engine's thread, once.
#ifndef SK8_CORE_SLURM_PORT_H
#define SK8_CORE_SLURM_PORT_H

#include <functional>
#include <optional>
#include <string>

#include "lib/core/job.h"
#include "lib/core/job_request.h"
#include "lib/core/pod_end.h"
#include "lib/core/slurm_node.h"

namespace sk8::core {

struct SlurmReply {
	bool ok = false;
	bool fatal = false;  // the same again would fail again
	std::string text;    // Slurm's words
	JobPtr job;          // submit: as it is now; null unless ok
	std::vector<std::pair<PodKey, JobPtr>> changed; // set_devices: jobs of ours as they are now
	std::optional<SlurmNode> node; // of a node: as it is now; nothing: there is no such node
	bool requeued = false; // a job of Slurm's own: it waits in the queue again
	bool told = false;     // the same, and only for the Slurm thread: who waits for it has been told, and it has not ended yet
};

// struct sk8_device_change, without the job that gets them.
struct DeviceChange {
	std::string node, gres;
	std::vector<std::uint16_t> devices; // sorted
	JobRef from{};                      // id 0: nobody
};

class SlurmPort {
public:
	virtual ~SlurmPort() = default;
	using Done = std::function<void(const SlurmReply &)>;

	// One live job per pod: if there is one already, the reply has that one. With a
	// required_node it is started there now, be it new or pending, or the reply says why not.
	virtual void submit(JobRequest request, Done done) = 0;
	// end.node: see there; a reply that is not ok and not fatal leaves the job as it was.
	virtual void end(const PodKey &key, JobRef job, JobEnd end, Done done) = 0;
	// Of many that are asked for at a time, as when a node comes or goes, the job with the best
	// priority gets more nodes first, and fewer last.
	virtual void exclude(const PodKey &key, const Job &job, std::string nodes, Done done) = 0;
	// A running job gets these devices of a GRES there, instead of those that it has. Refused if another
	// job has one of them, but for change.from.
	virtual void set_devices(JobRef job, DeviceChange change, Done done) = 0;
	// What is free is no mask from then on, and the scheduler looks again.
	virtual void wake_scheduler() = 0;
};

// What is done to nodes; the same thread, the same answers.
class SlurmNodePort {
public:
	virtual ~SlurmNodePort() = default;
	using Done = SlurmPort::Done;

	// Not ok: it was not as expected (reply.node tells how it is), or Slurm refuses.
	virtual void change_node(NodeChange change, Done done) = 0;
	virtual void change_features(FeatureChange change, Done done) = 0; // the same
};

} // namespace sk8::core

#endif
