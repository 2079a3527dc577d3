// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/job_containers.h"

#include <algorithm>
#include <unistd.h>

#include "lib/agent/run_folder.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/core/job_container.h"
#include "lib/core/reservation.h"
#include "lib/sk8_container.h"

namespace sk8::agent {

// Until the runtime has made the container's cgroup.
static constexpr Millis soon{100};
static constexpr Millis looks_again{10'000};
static constexpr int soon_enough = 100; // times

static bool runs(const kube::ContainerStatus &c)
{
	return c.state == kube::ContainerStatus::State::running && !c.id.empty();
}

std::optional<core::JobRef> job_with_container(const kube::Pod &pod, const std::string &ns, const std::string &node)
{
	const bool has_one = pod.meta.ns == ns && core::find_job_container(pod.containers);
	return has_one ? core::job_of_reservation(pod.meta.name, node) : std::nullopt;
}

ContainersByKey job_containers(const std::unordered_map<std::string, kube::PodPtr> &pods, const std::string &ns,
			       const std::string &node)
{
	std::map<std::uint32_t, std::pair<std::int64_t, const kube::Pod *>> latest; // by job: submitted when, its pod
	for (const auto &[uid, pod] : pods) {
		const auto job = job_with_container(*pod, ns, node);
		if (!job || !runs(*core::find_job_container(pod->containers)))
			continue;
		auto &known = latest[job->id];
		if (!known.second || known.first < job->submit_time)
			known = {job->submit_time, pod.get()};
	}
	ContainersByKey out;
	for (const auto &[job, of] : latest)
		for (const auto &c : of.second->containers)
			if (runs(c))
				out[{job, c.name == core::job_container ? "" : c.name}] = {of.second->meta.uid, c.id};
	return out;
}

JobContainers::JobContainers(PodCgroups cgroups, std::string folder)
	: cgroups_(std::move(cgroups)), folder_(made_empty(std::move(folder)))
{
}

// The API server has names of containers checked: none has a dot or a slash.
std::string JobContainers::file_of(const ContainerKey &key) const
{
	return folder_ + "/" + std::to_string(key.first) + (key.second.empty() ? "" : "." + key.second);
}

void JobContainers::set_kubeconfig(const std::string &text)
{
	if (text == kubeconfig_ && is_still_there(folder_ + "/" SK8_KUBECONFIG))
		return;
	if (const auto written = write_file_atomic(folder_ + "/" SK8_KUBECONFIG, text))
		kubeconfig_ = text;
	else
		log_error("no job of this node can use its ServiceAccount: %s", written.error().message.c_str());
}

void JobContainers::set(ContainersByKey containers)
{
	for (const auto &[key, e] : entries_)
		if (e.told && !containers.contains(key))
			(void) unlink(file_of(key).c_str());
	std::map<ContainerKey, Entry> now;
	for (auto &[key, container] : containers) {
		const auto known = entries_.find(key);
		const bool same = known != entries_.end() && known->second.container == container;
		now[key] = same ? std::move(known->second) : Entry{.container = std::move(container)};
	}
	entries_ = std::move(now);
}

bool JobContainers::tell(const ContainerKey &key, const JobContainer &container, const std::map<std::string, std::string> &pods) const
{
	const auto pod = pods.find(container.pod_uid);
	const std::string at = pod == pods.end() ? "" : cgroups_.folder_of_container(pod->second, container.id);
	if (at.empty())
		return false;
	if (const auto written = write_file_atomic(file_of(key), at + "/cgroup.procs\n"); !written) {
		log_error("job %u: its steps cannot be let into its container: %s", key.first, written.error().message.c_str());
		return false;
	}
	log_verbose("job %u: its container %s is in %s", key.first, key.second.c_str(), at.c_str());
	return true;
}

// A runtime makes a cgroup before it tells of its container: who does not find one for so long looks in the wrong place.
Millis JobContainers::failed(const ContainerKey &key, Entry &e)
{
	if (++e.failures == soon_enough)
		log_warning("job %u: the cgroup of its container %s is not found, its steps cannot be let into it; "
			    "is cgroupRoot in slurm-k8s-node.yaml the kubelet's?",
			    key.first, e.container.id.c_str());
	return e.failures < soon_enough ? soon : looks_again;
}

Millis JobContainers::round()
{
	for (auto &[key, e] : entries_)
		e.told = e.told && is_still_there(file_of(key));
	if (std::ranges::all_of(entries_, [](const auto &at) { return at.second.told; }))
		return looks_again;
	const auto pods = cgroups_.find();
	Millis wait = looks_again;
	std::uint32_t incomplete = 0; // job of which a container is missing
	// Backwards: of each job the one without a name comes last, and who has seen its file finds the others.
	for (auto at = entries_.rbegin(); at != entries_.rend(); ++at) {
		auto &[key, e] = *at;
		if (e.told || (key.second.empty() && key.first == incomplete))
			continue;
		e.told = pods && tell(key, e.container, *pods);
		if (e.told)
			continue;
		incomplete = key.first;
		wait = std::min(wait, failed(key, e));
	}
	return wait;
}

} // namespace sk8::agent
