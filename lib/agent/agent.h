// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The agent on a compute node, in slurmd: watches the pods of this node with the kubelet's own
// credentials, which allow no more than that (Kubernetes' Node authorizer), and keeps those that Slurm has
// placed on their cores (pinning.h).
//
// Two threads: sk8-agent does network, sk8-pin asks slurmctld and writes cgroups, and may wait for both.
#ifndef SK8_AGENT_AGENT_H
#define SK8_AGENT_AGENT_H

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>

#include "lib/agent/job_containers.h"
#include "lib/agent/job_devices.h"
#include "lib/agent/node_report.h"
#include "lib/agent/pinning.h"
#include "lib/agent/settings.h"
#include "lib/base/thread.h"
#include "lib/kube/client.h"
#include "lib/kube/http_loop.h"
#include "lib/kube/objects.h"
#include "lib/kube/reflector.h"

namespace sk8::agent {

class Agent : public std::enable_shared_from_this<Agent> {
public:
	// node: its name in Slurm and in Kubernetes. jobs: must outlive the threads.
	Agent(AgentSettings settings, std::string node, SlurmJobs &jobs);

	// Any thread. Error: no threads.
	Result<void> start();
	// Ends the threads; waits up to a second for sk8-agent, and for sk8-pin until slurmctld has answered or
	// libslurm has given up, at most 15 s. What still runs then is left to itself.
	void stop();

private:
	void run();
	void connect();
	void watch(const kube::ClusterAccess &access);
	void pods_changed();
	void pin_pods();
	void trouble(const std::string &what);

	const AgentSettings settings_;
	const std::string node_;
	SlurmJobs &jobs_;
	SystemClock clock_;
	std::atomic<bool> stop_{false};
	Wakeup wake_pinning_;
	std::mutex mutex_; // guards news_
	struct News {
		std::vector<PlacedPod> placed;
		ContainersByKey containers;
		std::string kubeconfig; // of job_kubeconfig()
	};
	std::optional<News> news_;
	Thread thread_, pin_thread_;

	// Thread sk8-agent only.
	kube::HttpLoop loop_;
	std::mt19937_64 random_;
	std::unique_ptr<kube::Client> client_;
	std::unique_ptr<kube::Reflector<kube::Pod>> reflector_;
	std::unique_ptr<NodeReport> report_;
	std::unique_ptr<JobDevices> devices_;
	std::unordered_map<std::string, kube::PodPtr> pods_; // by uid
	std::string kubeconfig_; // for jobs
	std::optional<std::string> trouble_; // "": none. Nothing before the pods are known
};

// The pods of these that name a job of Slurm and may have processes here. ns, node: as of job_containers().
std::vector<PlacedPod> placed_pods(const std::unordered_map<std::string, kube::PodPtr> &pods, const std::string &ns,
				   const std::string &node);

} // namespace sk8::agent

#endif
