// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/gate.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "lib/core/job_container.h"
#include "lib/core/pod_template.h"
#include "lib/core/service_account.h"

namespace sk8::core {

// One byte more than may be: who reads it sees that it is too long.
static std::string bounded(const char *text, std::size_t longest)
{
	return text ? std::string(text, strnlen(text, longest + 1)) : "";
}

NativeJobPtr native_from_abi(const sk8_native_job &j)
{
	auto out = std::make_shared<NativeJob>();
	out->ref = {j.job_id, j.submit_time};
	out->user_id = j.user_id;
	out->group_id = j.group_id;
	out->account = j.account ? j.account : "";
	out->image = bounded(j.image, longest_image); // too long is bad_image()
	out->pod_template = bounded(j.pod_template, longest_template);
	out->service_account = bounded(j.service_account, longest_service_account);
	out->exclusive = j.exclusive;
	out->requeues = j.requeues;
	out->ending = j.ending;
	for (std::uint32_t i = 0; i < j.share_count; i++) {
		const sk8_share &s = j.shares[i];
		out->shares.push_back({s.node, s.cpus, s.memory_mb, gres_from_abi(s.gres, s.gres_count), {s.cores, s.cores + s.core_count}});
	}
	return out;
}

std::string taken_text(const NativeShare &share, const TakenBy &taken_by)
{
	const auto who = taken_by ? taken_by(share) : std::nullopt;
	return who ? "node " + share.node + ": pod " + who->ns + "/" + who->name + " holds its cores or devices" : "";
}

GateAnswer not_started(const std::string &why, Millis delay)
{
	return {.open = false, .delay = delay, .why = why};
}

std::set<std::string> Gate::Clusters::asked(const NativeJob &job) const
{
	std::set<std::string> out = reserving;
	if (job.exclusive)
		out.insert(emptying.begin(), emptying.end());
	if (job.wants_container())
		out.insert(containing.begin(), containing.end());
	return out;
}

// Slurm placed it where pods are, which were to go before its launch: who would have evicted them is not there any more.
std::string Gate::crowded(const NativeJob &job) const
{
	if (job.exclusive)
		for (const NativeShare &share : job.shares)
			if (const auto who = beside_ ? beside_(share) : std::nullopt)
				return "node " + share.node + ": pod " + who->ns + "/" + who->name + " is there, and nobody evicts it for this job";
	return "";
}

void Gate::answer(JobRef job, const GateAnswer &answer)
{
	{
		std::lock_guard lock(mutex_);
		untold_.emplace_back(job, answer);
	}
	tell_(job, answer);
}

bool Gate::told(JobRef job)
{
	std::lock_guard lock(mutex_);
	const auto at = std::ranges::find(untold_, job, [](const auto &entry) { return entry.first; });
	if (at == untold_.end())
		return false;
	untold_.erase(at);
	return true;
}

std::vector<std::pair<JobRef, GateAnswer>> Gate::untold() const
{
	std::lock_guard lock(mutex_);
	return untold_;
}

bool Gate::arrive(const NativeJobPtr &job)
{
	{
		std::lock_guard lock(mutex_);
		const auto asked = clusters_ ? clusters_->asked(*job) : std::set<std::string>{};
		if (!clusters_ || !asked.empty()) {
			jobs_[job->ref.id] = {job, asked};
			return true;
		}
	}
	const std::string why = crowded(*job);
	if (!why.empty())
		answer(job->ref, not_started(why, Millis(0)));
	return !why.empty();
}

void Gate::ended(JobRef job)
{
	{
		std::lock_guard lock(mutex_);
		auto it = jobs_.find(job.id);
		if (it == jobs_.end() || it->second.job->ref != job)
			return;
		jobs_.erase(it);
	}
	answer(job, {});
}

bool Gate::used() const
{
	std::lock_guard lock(mutex_);
	return !clusters_ || !clusters_->none();
}

void Gate::set_clusters(std::set<std::string> reserving, std::set<std::string> emptying, std::set<std::string> containing)
{
	Clusters clusters{std::move(reserving), std::move(emptying), std::move(containing)};
	std::vector<NativeJobPtr> free;
	{
		std::lock_guard lock(mutex_);
		if (paused_)
			return;
		for (auto it = jobs_.begin(); it != jobs_.end();) {
			const auto asked = clusters.asked(*it->second.job);
			std::set<std::string> &missing = it->second.missing, kept;
			if (clusters_) // a cluster that has come since has no say in what runs already
				std::ranges::set_intersection(missing, asked, std::inserter(kept, kept.end()));
			else
				kept = asked;
			missing = std::move(kept);
			if (!missing.empty()) {
				++it;
				continue;
			}
			free.push_back(it->second.job);
			it = jobs_.erase(it);
		}
		clusters_ = std::move(clusters);
	}
	let_out(free);
}

// Nobody waits for a kubelet's word any more. What is masked is given to nobody, but a slurmctld that was
// killed may have forgotten a job, and a pod got its cores meanwhile.
void Gate::let_out(const std::vector<NativeJobPtr> &jobs)
{
	for (const auto &job : jobs) {
		std::string why = crowded(*job);
		for (const NativeShare &share : job->shares)
			if (why.empty())
				why = taken_text(share, taken_by_);
		answer(job->ref, why.empty() ? GateAnswer{} : not_started(why, Millis(0)));
	}
}

void Gate::pause()
{
	std::lock_guard lock(mutex_);
	paused_ = true;
	clusters_.reset();
}

void Gate::go_on()
{
	std::lock_guard lock(mutex_);
	paused_ = false;
}

void Gate::forget()
{
	std::lock_guard lock(mutex_);
	jobs_.clear();
	untold_.clear();
	clusters_.reset();
}

std::vector<NativeJobPtr> Gate::waiting(const std::string &cluster) const
{
	std::lock_guard lock(mutex_);
	std::vector<NativeJobPtr> out;
	for (const auto &[id, w] : jobs_)
		if (w.missing.contains(cluster))
			out.push_back(w.job);
	return out;
}

void Gate::vote(const std::string &cluster, JobRef job, const GateAnswer &said)
{
	NativeJobPtr unheard; // nobody who empties nodes was asked
	{
		std::lock_guard lock(mutex_);
		auto it = jobs_.find(job.id);
		if (!clusters_ || it == jobs_.end() || it->second.job->ref != job || !it->second.missing.erase(cluster))
			return;
		if (said.open && !it->second.missing.empty())
			return;
		if (said.open && clusters_->emptying.empty())
			unheard = it->second.job;
		jobs_.erase(it);
	}
	const std::string why = unheard ? crowded(*unheard) : "";
	answer(job, why.empty() ? said : not_started(why, Millis(0)));
}

} // namespace sk8::core
