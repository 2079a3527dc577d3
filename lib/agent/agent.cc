// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/agent.h"

#include "lib/agent/job_kubeconfig.h"
#include "lib/agent/numa.h"
#include "lib/base/guard.h"
#include "lib/base/log.h"
#include "lib/base/log_limit.h"
#include "lib/base/text.h"
#include "lib/core/lifecycle.h"
#include "lib/core/names.h"
#include "lib/kube/kubeconfig.h"
#include "lib/kube/url.h"
#include "lib/sk8_container.h"

namespace sk8::agent {

static constexpr Millis longest_wait{1'000};
static constexpr Millis connect_again{10'000};
static constexpr Millis longest_pause{10'000};
static constexpr Millis longest_stop{1'000};
// libslurm tries to reach slurmctld for MessageTimeout (10 s by default; slurm_protocol_api.c,
// slurm_open_controller_conn()), cannot be interrupted, and uses what slurmd frees at its end.
static constexpr Millis longest_rpc{15'000};
static constexpr auto device_folder = "/sys/devices";
static constexpr auto cpu_folder = "/sys/devices/system/cpu";
static constexpr auto cgroup_mount = "/sys/fs/cgroup";
static const char *const state_folder = "/run/slurm-k8s/";

static std::string annotation(const kube::Pod &pod, std::string_view name)
{
	const auto it = pod.meta.annotations.find(std::string(name));
	return it == pod.meta.annotations.end() ? "" : it->second;
}

std::vector<PlacedPod> placed_pods(const std::unordered_map<std::string, kube::PodPtr> &pods, const std::string &ns,
				   const std::string &node)
{
	std::vector<PlacedPod> out;
	for (const auto &[uid, pod] : pods) {
		if (core::kubelet_reports_over(*pod))
			continue;
		// in a job's container by itself nothing runs that needs a core
		if (const auto job = job_with_container(*pod, ns, node); job && pod->containers.size() > 1) {
			out.push_back({pod->meta.ns, pod->meta.name, uid, job->id, "", job->submit_time});
			continue;
		}
		const auto id = parse_integer(annotation(*pod, core::names::job_id), 1, UINT32_MAX);
		if (!id)
			continue;
		out.push_back({pod->meta.ns, pod->meta.name, uid, static_cast<std::uint32_t>(*id),
			       annotation(*pod, core::names::job_submit_time) + " " + annotation(*pod, core::names::job_cores)});
	}
	return out;
}

Agent::Agent(AgentSettings settings, std::string node, SlurmJobs &jobs)
	: settings_(std::move(settings)), node_(std::move(node)), jobs_(jobs), loop_(clock_), random_(std::random_device{}())
{
}

Result<void> Agent::start()
{
	auto pins = Thread::start("sk8-pin", [self = shared_from_this()] { self->pin_pods(); });
	if (!pins)
		return pins.error();
	pin_thread_ = std::move(*pins);
	auto thread = Thread::start("sk8-agent", [self = shared_from_this()] { self->run(); });
	if (!thread) {
		stop();
		return thread.error();
	}
	thread_ = std::move(*thread);
	return {};
}

void Agent::stop()
{
	stop_.store(true, std::memory_order_release);
	loop_.wake();
	wake_pinning_.notify();
	thread_.join_or_leave(longest_stop);
	pin_thread_.join_or_leave(longest_rpc);
}

// ---- thread sk8-agent ----

void Agent::run()
{
	log_info("agent of node %s starts", node_.c_str());
	connect();
	while (!stop_.load(std::memory_order_acquire))
		guard("agent", [this] {
			loop_.run_once(longest_wait);
			log_limiter().tell();
		});
	report_.reset();
	reflector_.reset();
	client_.reset();
}

// Told when it changes.
void Agent::trouble(const std::string &what)
{
	if (std::exchange(trouble_, what) == what)
		return;
	if (what.empty())
		log_info("agent: the pods of this node are known, all is well");
	else
		log_warning("agent: %s; pods stay as they are", what.c_str());
}

// The kubelet may get its credentials later than slurmd starts.
void Agent::connect()
{
	auto access = kube::load_kubeconfig(settings_.kubeconfig, settings_.context, 0);
	if (access)
		return watch(*access);
	trouble(access.error().message);
	loop_.after(connect_again, [this] { connect(); });
}

void Agent::watch(const kube::ClusterAccess &access)
{
	client_ = std::make_unique<kube::Client>(loop_, access);
	kubeconfig_ = job_kubeconfig(access, settings_.reservations_ns);
	kube::ReflectorOptions options;
	options.name = "pods of this node";
	options.path = resource_path(kube::pods_resource);
	options.field_selector = "spec.nodeName=" + node_;
	options.backoff.most = longest_pause;
	kube::Reflector<kube::Pod>::Callbacks call;
	call.on_replace = [this](std::vector<kube::PodPtr> pods) {
		pods_.clear();
		for (auto &pod : pods)
			pods_[pod->meta.uid] = std::move(pod);
		trouble("");
		pods_changed();
	};
	call.on_upsert = [this](kube::PodPtr pod) {
		pods_[pod->meta.uid] = pod;
		pods_changed();
	};
	call.on_delete = [this](kube::PodPtr last) {
		pods_.erase(last->meta.uid);
		pods_changed();
	};
	call.on_lost = [this](std::string why) { trouble(why); };
	call.on_regained = [this] { trouble(""); };
	const kube::Random random = [this] { return std::uniform_real_distribution<double>(0, 1)(random_); };
	reflector_ = std::make_unique<kube::Reflector<kube::Pod>>(*client_, options, kube::decode_pod, call, random);
	reflector_->start();
	const CpuTopology topology = read_cpu_topology(cpu_folder).value_or({});
	report_ = std::make_unique<NodeReport>(*client_, node_, KubeletFiles(settings_.kubelet_root_dir, settings_.device_plugin_dir),
					       topology, read_numa(device_folder, topology),
					       PodCgroups(cgroup_mount, settings_.cgroup_root), random);
	devices_ = std::make_unique<JobDevices>(strprintf(SK8_DEVICE_FOLDER, node_.c_str()));
}

void Agent::pods_changed()
{
	{
		const std::lock_guard lock(mutex_);
		news_ = News{placed_pods(pods_, settings_.reservations_ns, node_), job_containers(pods_, settings_.reservations_ns, node_), kubeconfig_};
	}
	wake_pinning_.notify();
	if (!report_)
		return;
	std::set<std::string> uids;
	for (const auto &[uid, pod] : pods_)
		uids.insert(uid);
	report_->set_pods(std::move(uids));
	report_->look();
	devices_->set(job_devices(pods_, report_->devices(), settings_.reservations_ns, node_));
}

// ---- thread sk8-pin ----

void Agent::pin_pods()
{
	const auto topology = read_cpu_topology(cpu_folder);
	if (!topology) {
		log_error("agent: no pod is pinned: %s", topology.error().message.c_str());
		return;
	}
	const PodCgroups cgroups(cgroup_mount, settings_.cgroup_root);
	std::optional<ExclusiveCpus> exclusive;
	if (settings_.confine_foreign_pods)
		exclusive.emplace(clock_, jobs_, *topology);
	Pinning pinning(clock_, jobs_, *topology, cgroups, settings_.kubelet_root_dir, settings_.pinning,
			Confinement(std::move(exclusive), cgroups, std::string(state_folder) + node_ + ".confined"));
	JobContainers containers(cgroups, strprintf(SK8_CONTAINER_FOLDER, node_.c_str()));
	Millis wait{0};
	while (!stop_.load(std::memory_order_acquire)) {
		(void) wake_pinning_.wait(wait);
		(void) wake_pinning_.drain();
		guard("pinning", [&] {
			std::optional<News> news;
			{
				const std::lock_guard lock(mutex_);
				news = std::exchange(news_, std::nullopt);
			}
			if (news) {
				containers.set_kubeconfig(news->kubeconfig);
				containers.set(std::move(news->containers));
				pinning.set_pods(std::move(news->placed));
			}
			wait = std::min(containers.round(), pinning.round());
		});
	}
}

} // namespace sk8::agent
