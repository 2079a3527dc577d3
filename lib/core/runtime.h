// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Everything of ours that lives in one slurmctld: the holds, the Slurm thread, one
// engine per attached cluster. One object per process, made by the first plugin
// that asks, never destroyed: nobody calls fini() at exit, and threads may run.
#ifndef SK8_CORE_RUNTIME_H
#define SK8_CORE_RUNTIME_H

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/thread.h"
#include "lib/core/cluster_engine.h"
#include "lib/core/control.h"
#include "lib/core/gate.h"
#include "lib/core/hold_table.h"
#include "lib/core/metrics_server.h"
#include "lib/core/saved_nodes.h"
#include "lib/core/settings.h"
#include "lib/core/slurm_worker.h"
#include "lib/core/untold_nodes.h"
#include "lib/sk8_abi.h"

namespace sk8::core {

// Makes a cluster's engine, or throws what keeps it from that: the process is out of descriptors.
using MakeEngine = std::function<std::shared_ptr<ClusterEngine>(const ClusterSettings &settings, const sk8_host &host,
								HoldTable &holds, Gate &gate, std::shared_ptr<SlurmWorker> worker)>;
std::shared_ptr<ClusterEngine> make_engine(const ClusterSettings &settings, const sk8_host &host, HoldTable &holds, Gate &gate,
					   std::shared_ptr<SlurmWorker> worker);

class Runtime {
public:
	explicit Runtime(const sk8_host &host, MakeEngine make = make_engine, Millis wait = longest_wait);

	// Hooks (lib/sk8_abi.h says when); none waits for a thread of ours but
	// shutdown(), which waits at most a second.
	void node_init(bool goes_on);
	void reconfigure();
	void shutdown();
	void job_start(const sk8_job &job);
	void job_fini(const sk8_job &job);
	bool gate(const sk8_native_job &job);
	void native_fini(JobRef job);
	void native_resized(JobRef job);
	bool completes_tokens(std::string_view partition);
	HoldTable &holds() { return holds_; }

private:
	bool unless_parked(const std::function<void()> &keep);
	void start_control();
	RuntimeState state();
	// runtime_ledgers.cc
	void load_ledgers();
	// ledgers: by cluster, is it whole? clusters: of the settings.
	void close_untold(const std::map<std::string, bool> &ledgers, const std::vector<ClusterSettings> &clusters);
	SavedNodes restore_nodes(const std::string &cluster); // as far as they can be believed
	void restore_features();
	void close_added(SlurmWorker &worker, const std::vector<ClusterSettings> &clusters);
	void open_removed(const std::vector<ClusterSettings> &clusters);
	void stop_waiting(const std::string &cluster, const std::string &why);
	void stop_waiting_later(SlurmWorker &worker, const std::string &cluster, Wait wait);
	void fit_cores(Ledger &saved);
	std::map<std::string, std::uint32_t> slurm_nodes() const; // threads per core, by name; in a hook
	std::vector<std::string> slurm_node_names();

	std::optional<Settings> settings_to_use();
	void reload();
	// An engine that is to run. What it holds is in the ledger, started or not.
	struct Start {
		ClusterSettings settings;
		std::uint64_t reload = 0; // of which: another one decides anew
		int failures = 0;
	};
	void start_engine(const Start &start);
	Result<std::shared_ptr<ClusterEngine>> start_new(const ClusterSettings &settings,
							 const std::shared_ptr<SlurmWorker> &worker);
	void start_later(Start start, SlurmWorker &worker, const std::string &why);
	void stop_engine(const std::string &cluster);
	void answer_gate(JobRef job, const GateAnswer &answer);
	void tell_slurm(SlurmWorker &worker, JobRef job, const GateAnswer &answer);
	std::vector<std::shared_ptr<ClusterEngine>> engines_with_reservations();
	void tell_engine(const PodKey &key, const Job &job);
	void listen_for_metrics(const MetricsSettings &settings);
	void complete_tokens(const TokenSettings &settings);
	std::string metrics_page();

	const sk8_host host_;
	const MakeEngine make_;
	const Millis longest_wait_;
	SystemClock clock_;
	HoldTable holds_;
	Gate gate_;

	// Guards what follows; hooks wait for it: no I/O and no start of a thread but the
	// Slurm thread's own under it.
	std::mutex mutex_;
	std::map<std::string, std::uint32_t> slurm_nodes_; // of the last node_init()
	std::set<std::string> asked_; // clusters of the settings for which close_untold() was asked
	// What Slurm's nodes are to have before their clusters tell, by load_ledgers(); restore_features() tells Slurm.
	struct Features {
		NodeSettings settings;
		SavedNodes nodes;
	};
	std::vector<Features> features_;
	bool parked_ = true; // standby, or shutting down: nothing is written anywhere
	std::shared_ptr<SlurmWorker> worker_;
	Thread worker_thread_;
	std::map<std::string, std::shared_ptr<ClusterEngine>> engines_;
	std::map<std::string, std::string> not_started_; // clusters that are to have one, and why they do not yet
	std::uint64_t reloads_ = 0;
	std::shared_ptr<MetricsServer> metrics_server_; // null: never wanted
	std::shared_ptr<ControlServer> control_; // answers slurm-k8s(1)
	Thread control_thread_;
	std::int64_t started_at_ = 0, config_read_at_ = 0; // wall seconds
	std::string config_error_;                         // of the last reload(), lines
	std::vector<std::string> token_partitions_;        // globs
};

} // namespace sk8::core

#endif
