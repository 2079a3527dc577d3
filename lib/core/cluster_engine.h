// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// One attached Kubernetes cluster: the engine thread, its connections, and the
// controllers that run on it. It never takes a lock of slurmctld.
#ifndef SK8_CORE_CLUSTER_ENGINE_H
#define SK8_CORE_CLUSTER_ENGINE_H

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/base/thread.h"
#include "lib/core/cluster_numbers.h"
#include "lib/core/dra.h"
#include "lib/core/exclusive_nodes.h"
#include "lib/core/foreign_pods.h"
#include "lib/core/gate.h"
#include "lib/core/hold_table.h"
#include "lib/core/ledger_file.h"
#include "lib/core/link_state.h"
#include "lib/core/nodes_controller.h"
#include "lib/core/pods_controller.h"
#include "lib/core/reservations.h"
#include "lib/core/saved_nodes.h"
#include "lib/core/settings.h"
#include "lib/core/slurm_worker.h"
#include "lib/kube/http_loop.h"
#include "lib/kube/reflector.h"

namespace sk8::core {

class ClusterEngine final : public SlurmListener,
			    public TimerPort,
			    public NativePort,
			    public std::enable_shared_from_this<ClusterEngine> {
public:
	// host, holds, gate: live for ever.
	ClusterEngine(const ClusterSettings &settings, const sk8_host &host, HoldTable &holds, Gate &gate,
		      std::shared_ptr<SlurmWorker> worker);
	~ClusterEngine() override;

	const ClusterSettings &settings() const { return settings_; }

	// For `slurm-k8s` (cluster_status.cc). Engine thread; no I/O.
	Json status(const StatusQuery &query) const;
	Json gres(const std::string &node) const;
	Result<std::string> release_by_hand(const PodKey &key, const std::string &by, bool force);
	// Any thread: how long its thread has been busy without looking at its queue.
	Millis busy() const { return now() - Millis(turn_.load(std::memory_order_relaxed)); }

	// Any thread.
	Result<void> start();
	void stop(); // returns at once; nothing is sent to Kubernetes any more
	// true: the thread has ended. Else it is left to itself; it holds its own share
	// of this object.
	bool join(Millis timeout);
	// From a hook: returns at once.
	void job_seen(const PodKey &key, const JobPtr &job, Millis seen_at);
	// From hooks: jobs have come into the gate; a job's processes are being ended.
	void gate_changed();
	void native_ended(JobRef job);
	// Asks the engine's thread for its numbers; returns at once.
	std::shared_ptr<Counting> count();

	// SlurmListener
	void post(std::function<void()> f) override;
	void slurm_nodes(std::vector<SlurmNode> nodes) override;
	void overcommits(const Overcommits &over) override;
	void jobs_replaced(const std::vector<std::pair<PodKey, JobPtr>> &jobs) override;
	void job_changed(const PodKey &key, const JobPtr &job) override;
	void job_purged(const PodKey &key, JobRef ref) override;
	bool wants_natives() const override { return settings_.wants_natives(); }
	void natives_replaced(const std::vector<NativeJobPtr> &jobs) override;
	void native_left(JobRef job, const std::set<std::string> &still_on) override;

	// NativePort
	void answer(JobRef job, GateAnswer answer) override { gate_.vote(settings_.name, job, answer); }
	void watch_end(JobRef job) override { worker_->watch_end(job); }
	void end(JobRef job, bool requeue, std::string why, SlurmPort::Done done) override
	{
		worker_->end_native(seat_, job, requeue, std::move(why), std::move(done));
	}
	void set_devices(JobRef job, DeviceChange change, SlurmPort::Done done) override
	{
		worker_->set_devices(seat_, job, std::move(change), std::move(done));
	}

	// TimerPort
	void after(Millis delay, std::function<void()> f) override;
	Millis now() const override;
	std::int64_t wall_seconds() const override;

private:
	void run();
	void connect();
	void build(const kube::ClusterAccess &access);
	void open_nodes_file();
	void set_missing(const std::string &node, GresList gres);
	void watch_pods(const std::string &scheduler_name);
	void watch_foreign_pods();
	void hear_of_foreign_pods(kube::Reflector<ForeignPod>::Callbacks &call);
	void reserve();
	void empty_nodes();
	void holds_claims(const ForeignPod &pod);
	void refuse_after_timeout();
	void watch_nodes();
	void watch_unbound_pods();
	void watch_dra();
	// what: for people and logs, "resource claims". options: path and field_selector. In cluster_watch.h.
	template <class T>
	void start_watch(std::unique_ptr<kube::Reflector<T>> &reflector, const std::string &what, kube::ReflectorOptions options,
			 Result<std::shared_ptr<const T>> (*decode)(const Json &), typename kube::Reflector<T>::Callbacks call);
	void watch_slices();
	void watch_device_classes();
	void watch_claims();
	void foreign_known();
	void end_of_turn();
	void tell_full_nodes();
	bool knows_lost() const;
	void back(const std::string &what);
	ClusterNumbers numbers() const;
	Json outline() const;
	Json node_status(const std::string &node) const;
	// People read the wall clock; what is measured is monotonic. Seconds since 1970.
	std::int64_t wall_at(Millis monotonic) const { return wall_seconds() - (now() - monotonic).count() / 1000; }
	void listed(const char *resource, bool first);
	double random();

	// How long a list or a watch that fails waits at most. A cluster has few of them; what
	// waits longer only comes back later.
	static constexpr Millis longest_pause{10'000};

	const ClusterSettings settings_;
	const sk8_host host_;
	HoldTable &holds_;
	Gate &gate_;
	std::shared_ptr<SlurmWorker> worker_;
	const SlurmWorker::Seat seat_; // of what is asked of Slurm
	SystemClock clock_;
	kube::HttpLoop loop_;
	std::atomic<bool> stop_{false};
	std::atomic<std::size_t> posted_{0}; // and not run yet
	std::atomic<std::int64_t> turn_{0}; // monotonic ms of the last turn of its loop
	Thread thread_;

	// Engine thread only, in the order of construction.
	std::mt19937_64 random_;
	std::string access_error_; // why there is no client; empty: there is one
	int access_failures_ = 0;
	LinkState link_;
	std::unique_ptr<kube::Client> client_;
	std::unique_ptr<KubePort> kube_;
	std::unique_ptr<SlurmPort> slurm_;
	std::unique_ptr<LedgerFile> ledger_;
	bool full_nodes_stale_ = false;
	bool foreign_listed_ = false;
	Dra dra_;
	bool claims_stale_ = false; // all were listed; told at the end of the turn
	std::unique_ptr<PodsController> pods_;
	std::unique_ptr<NodeKubePort> node_kube_;
	std::unique_ptr<SlurmNodePort> node_slurm_;
	std::unique_ptr<NodesFile> nodes_file_;
	std::unique_ptr<NodesController> nodes_;
	std::vector<std::unique_ptr<kube::Reflector<kube::Pod>>> pod_reflectors_;
	std::unique_ptr<EvictionPort> eviction_kube_;
	std::unique_ptr<ExclusiveNodes> exclusive_; // null: not connected yet
	std::unique_ptr<ReservationPort> reservation_kube_;
	std::unique_ptr<Reservations> reservations_; // null: not connected yet
	std::unique_ptr<ForeignPods> foreign_;
	std::unique_ptr<kube::Reflector<ForeignPod>> foreign_reflector_;
	std::unique_ptr<kube::Reflector<ForeignPod>> unbound_reflector_; // null: not connected yet
	std::unique_ptr<kube::Reflector<kube::Node>> node_reflector_;
	std::unique_ptr<kube::Reflector<kube::ResourceSlice>> slice_reflector_; // these three null: no deviceClass
	std::unique_ptr<kube::Reflector<kube::DeviceClass>> class_reflector_;
	std::unique_ptr<kube::Reflector<kube::ResourceClaim>> claim_reflector_;
};

} // namespace sk8::core

#endif
