// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/pinning.h"

#include <algorithm>

#include "lib/base/doubling.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/core/pod_key.h"

namespace sk8::agent {

// Until the kubelet has made the cgroup of a pod that is new here.
static constexpr Millis soon{200};
// The kubelet writes cgroups anew when it starts, and some tools do.
static constexpr Millis looks_again{10'000};
static constexpr Millis first_pause{1'000}, longest_pause{60'000};

Pinning::Pinning(const Clock &clock, SlurmJobs &jobs, CpuTopology topology, PodCgroups cgroups, std::string kubelet_root_dir,
		 bool pin, Confinement confinement)
	: clock_(clock), jobs_(jobs), topology_(std::move(topology)), cgroups_(std::move(cgroups)),
	  cpu_manager_state_(kubelet_root_dir + "/cpu_manager_state"), pin_(pin), confinement_(std::move(confinement))
{
}

void Pinning::set_pods(std::vector<PlacedPod> pods)
{
	std::map<std::string, Entry> now;
	for (PlacedPod &pod : pods) {
		Entry &e = now[pod.uid];
		auto known = entries_.find(pod.uid);
		if (known != entries_.end() && known->second.pod == pod)
			e = std::move(known->second);
		else
			e.pod = std::move(pod);
	}
	entries_ = std::move(now);
}

static std::string text_of(const PlacedPod &pod)
{
	return "pod " + pod.ns + "/" + pod.name + " uid " + pod.uid + " job " + std::to_string(pod.job_id);
}

void Pinning::tell(Entry &e, const std::string &trouble)
{
	if (std::exchange(e.trouble, trouble) != trouble && !trouble.empty())
		log_warning("%s: %s", text_of(e.pod).c_str(), trouble.c_str());
}

void Pinning::again_later(Entry &e)
{
	e.ask_at = clock_.monotonic() + doubled(first_pause, longest_pause, e.failures++);
}

// Its owner may write any number onto his pod: the job must be for it.
static bool is_for(const SlurmJob &job, const PlacedPod &pod)
{
	const auto key = core::PodKey::from_mark(job.mark);
	if (pod.own_job)
		return !key && job.submit_time == *pod.own_job;
	return key && key->uid == pod.uid && key->ns == pod.ns && key->name == pod.name;
}

void Pinning::ask(Entry &e)
{
	auto job = jobs_.find(e.pod.job_id);
	again_later(e);
	if (!job)
		return tell(e, "its cores are not known yet: " + job.error().message);
	if (!*job || !(*job)->running || !is_for(**job, e.pod) || (*job)->cores.empty())
		return tell(e, "is not pinned: Slurm has no such job for it that runs here");
	const auto cpus = topology_.cpus_of((*job)->cores);
	if (!cpus)
		return tell(e, "is not pinned: " + cpus.error().message);
	e.has_job = true;
	e.cpus = *cpus;
	e.failures = 0;
	tell(e, "");
}

void Pinning::pin(Entry &e, const std::string &folder)
{
	if (!pin_)
		if (auto all = cgroups_.cpus_of_parent(folder))
			e.cpus = *all;
	auto set = cgroups_.set_cpus(folder, e.cpus);
	const bool changed = set && *set, again = changed && e.done;
	e.done |= set.ok();
	if (changed) // the kernel takes what it cannot give, and says only afterwards what it made of it
		set = cgroups_.set_cpus(folder, e.cpus);
	e.has = set ? e.cpus : cgroups_.cpus(folder).value_or(CpuSet());
	const bool was_trouble = !e.trouble.empty();
	if (!set)
		return tell(e, "cannot be put on CPUs " + cpu_list(e.cpus) + ": " + set.error().message);
	tell(e, "");
	if (changed || was_trouble)
		log_info("%s: runs on CPUs %s%s", text_of(e.pod).c_str(), cpu_list(e.cpus).c_str(),
			 again ? " again, somebody else had changed that" : "");
}

bool Pinning::in_trouble(const std::string &why)
{
	if (std::exchange(trouble_, why) != why && !why.empty())
		log_error("no pod is pinned: %s", why.c_str());
	return !why.empty();
}

Millis Pinning::round()
{
	if (entries_.empty() && confinement_.idle())
		return looks_again;
	const auto folders = cgroups_.find();
	if (const Millis now = clock_.monotonic(); now >= read_policy_at_) {
		if (const auto text = cpu_manager_state_.news())
			kubelet_pins_ = parse_cpu_manager(*text).pins();
		read_policy_at_ = now + looks_again;
	}
	if (in_trouble(kubelet_pins_ ? "the kubelet's CPU manager has the policy static and pins pods itself; set its cpuManagerPolicy to "
			      "none, or pinning to false"
			    : folders ? "" : folders.error().message))
		return looks_again;
	Millis wait = looks_again;
	for (auto &[uid, e] : entries_) {
		const Millis now = clock_.monotonic();
		if (!e.has_job && now >= e.ask_at)
			ask(e);
		if (!e.has_job) {
			wait = std::min(wait, std::max(soon, e.ask_at - now));
			continue;
		}
		const auto folder = folders->find(uid);
		if (folder != folders->end())
			pin(e, folder->second);
		else if (!e.done)
			wait = soon;
	}
	return std::min(wait, confinement_.round(*folders, pinned()));
}

std::map<std::string, CpuSet> Pinning::pinned() const
{
	std::map<std::string, CpuSet> out;
	for (const auto &[uid, e] : entries_)
		if (e.done)
			out[uid] = e.has;
	return out;
}

} // namespace sk8::agent
