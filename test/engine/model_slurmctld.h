// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A slurmctld in miniature behind the C border: jobs, nodes with cores, one lock, a
// scheduler thread. It calls the hooks where the real one does and honours masks, so
// that the whole engine can run, with all its threads, under sanitizers.
#ifndef SK8_TEST_MODEL_SLURMCTLD_H
#define SK8_TEST_MODEL_SLURMCTLD_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lib/sk8_abi.h"

namespace sk8::test {

class ModelSlurmctld {
public:
	// nodes: names, each with that many cores. Only one at a time: C has no context.
	ModelSlurmctld(std::vector<std::string> nodes, int cores);
	~ModelSlurmctld();

	static const sk8_slurm_ops &ops();
	void start();    // boot: node_init, reconfigure, then the scheduler
	void shutdown(); // state_save
	// Cancels a random live job, as a user would.
	void cancel_one(std::mt19937 &random);

	std::size_t completed(); // jobs that ended well
	// false: after so long no pod has a job.
	bool wait_submitted(int seconds);
	// false: after so long fewer pods than that have had their last job.
	bool wait_ended(std::size_t pods, int seconds);

private:
	std::size_t ended_pods();
	struct ModelJob {
		std::string mark, excluded, pinned, node, reason;
		std::uint32_t id = 0, cpus = 1, ended_by = SK8_NO_UID;
		std::int64_t submit_time = 0;
		sk8_job_state state = SK8_JOB_PENDING;
		std::vector<std::uint16_t> cores;
		std::uint64_t memory_mb = 0;
		bool by_us = false;
	};
	sk8_job view(const ModelJob &job) const;
	sk8_node view(const std::string &node);
	void schedule();
	bool try_start(ModelJob &job, const std::string &node);
	void finish(ModelJob &job, sk8_job_state state);

	void submit(const sk8_submit &s, sk8_outcome &out);
	void start_there(std::uint32_t id, const char *node, sk8_outcome &out);
	void end(const sk8_end &e, sk8_outcome &out);

	std::mutex mutex_; // "slurmctld's locks"
	std::condition_variable changed_;
	std::vector<std::string> nodes_;
	int cores_;
	std::map<std::uint32_t, ModelJob> jobs_;
	std::map<std::string, std::vector<bool>> used_; // node -> core
	std::map<std::string, std::string> drained_;    // node -> why, by SlurmUser
	std::map<std::string, std::string> features_; // the same; available and active
	std::uint32_t next_ = 1;
	std::atomic<std::int64_t> updated_{0}, masked_{0};
	std::atomic<bool> active_{false};
	bool stop_ = false, wake_ = false;
	std::thread scheduler_;
};

} // namespace sk8::test

#endif
