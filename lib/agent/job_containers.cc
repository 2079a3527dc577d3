// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/job_containers.h"

#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/core/job_container.h"
#include "lib/core/reservation.h"

namespace sk8::agent {

// Until the runtime has made the container's cgroup.
static constexpr Millis soon{100};
static constexpr Millis looks_again{10'000};
static constexpr int soon_enough = 100; // times

std::map<std::uint32_t, JobContainer> job_containers(const std::unordered_map<std::string, kube::PodPtr> &pods,
						     const std::string &ns, const std::string &node)
{
	std::map<std::uint32_t, JobContainer> out;
	for (const auto &[uid, pod] : pods) {
		if (pod->meta.ns != ns)
			continue;
		const auto job = core::job_of_reservation(pod->meta.name, node);
		const auto *c = core::find_job_container(pod->containers);
		if (!job || !c || c->state != kube::ContainerStatus::State::running || c->id.empty())
			continue;
		JobContainer &known = out[job->id];
		if (known.id.empty() || known.submit_time < job->submit_time)
			known = {uid, c->id, job->submit_time};
	}
	return out;
}

// Who waits for a file in it watches it: it is there from the start on, and never goes.
static std::string made_empty(std::string folder)
{
	std::error_code failed; // write_file_atomic() tells; what cannot be removed is replaced when its job comes again
	std::filesystem::create_directories(folder, failed);
	std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
	for (const auto &left : std::filesystem::directory_iterator(folder, failed))
		std::filesystem::remove(left, failed);
	return folder;
}

JobContainers::JobContainers(PodCgroups cgroups, std::string folder)
	: cgroups_(std::move(cgroups)), folder_(made_empty(std::move(folder)))
{
}

void JobContainers::set(std::map<std::uint32_t, JobContainer> containers)
{
	for (const auto &[job, e] : entries_)
		if (e.told && !containers.contains(job))
			(void) unlink(file_of(job).c_str());
	std::map<std::uint32_t, Entry> now;
	for (auto &[job, container] : containers) {
		const auto known = entries_.find(job);
		const bool same = known != entries_.end() && known->second.container == container;
		now[job] = same ? std::move(known->second) : Entry{.container = std::move(container)};
	}
	entries_ = std::move(now);
}

bool JobContainers::tell(std::uint32_t job, const JobContainer &container, const std::map<std::string, std::string> &pods) const
{
	const auto pod = pods.find(container.pod_uid);
	const std::string at = pod == pods.end() ? "" : cgroups_.folder_of_container(pod->second, container.id);
	if (at.empty())
		return false;
	if (const auto written = write_file_atomic(file_of(job), at + "/cgroup.procs\n"); !written) {
		log_error("job %u: its steps cannot be let into its container: %s", job, written.error().message.c_str());
		return false;
	}
	log_verbose("job %u: its container is in %s", job, at.c_str());
	return true;
}

// A runtime makes a cgroup before it tells of its container: who does not find one for so long looks in the wrong place.
Millis JobContainers::failed(std::uint32_t job, Entry &e) const
{
	if (++e.failures == soon_enough)
		log_warning("job %u: the cgroup of its container %s is not found, its steps cannot be let into it; "
			    "is cgroupRoot in slurm-k8s-node.yaml the kubelet's?",
			    job, e.container.id.c_str());
	return e.failures < soon_enough ? soon : looks_again;
}

Millis JobContainers::round()
{
	if (std::ranges::all_of(entries_, [](const auto &at) { return at.second.told; }))
		return looks_again;
	const auto pods = cgroups_.find();
	Millis wait = looks_again;
	for (auto &[job, e] : entries_) {
		e.told = e.told || (pods && tell(job, e.container, *pods));
		if (!e.told)
			wait = std::min(wait, failed(job, e));
	}
	return wait;
}

} // namespace sk8::agent
