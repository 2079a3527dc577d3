// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/gate.h"

#include <algorithm>
#include <iterator>

namespace sk8::core {

NativeJobPtr native_from_abi(const sk8_native_job &j)
{
	auto out = std::make_shared<NativeJob>();
	out->ref = {j.job_id, j.submit_time};
	out->user_id = j.user_id;
	out->account = j.account ? j.account : "";
	out->requeues = j.requeues;
	out->ending = j.ending;
	for (std::uint32_t i = 0; i < j.share_count; i++) {
		const sk8_share &s = j.shares[i];
		out->shares.push_back({s.node, s.cpus, s.memory_mb, gres_from_abi(s.gres, s.gres_count), {s.cores, s.cores + s.core_count}});
	}
	return out;
}

bool Gate::arrive(const NativeJobPtr &job)
{
	std::lock_guard lock(mutex_);
	if (clusters_ && clusters_->empty())
		return false;
	jobs_[job->ref.id] = {job, clusters_.value_or(std::set<std::string>{})};
	return true;
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
	tell_(job, {});
}

bool Gate::used() const
{
	std::lock_guard lock(mutex_);
	return !clusters_ || !clusters_->empty();
}

void Gate::set_clusters(std::set<std::string> clusters)
{
	std::vector<JobRef> free;
	{
		std::lock_guard lock(mutex_);
		for (auto it = jobs_.begin(); it != jobs_.end();) {
			std::set<std::string> &missing = it->second.missing, kept;
			if (clusters_) // a cluster that has come since has no say in what runs already
				std::ranges::set_intersection(missing, clusters, std::inserter(kept, kept.end()));
			else
				kept = clusters;
			missing = std::move(kept);
			if (!missing.empty()) {
				++it;
				continue;
			}
			free.push_back(it->second.job->ref);
			it = jobs_.erase(it);
		}
		clusters_ = std::move(clusters);
	}
	let_out(free);
}

void Gate::let_out(const std::vector<JobRef> &jobs)
{
	for (const JobRef &job : jobs)
		tell_(job, {});
}

void Gate::forget()
{
	std::lock_guard lock(mutex_);
	jobs_.clear();
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

void Gate::vote(const std::string &cluster, JobRef job, const GateAnswer &answer)
{
	{
		std::lock_guard lock(mutex_);
		auto it = jobs_.find(job.id);
		if (it == jobs_.end() || it->second.job->ref != job || !it->second.missing.erase(cluster))
			return;
		if (answer.open && !it->second.missing.empty())
			return;
		jobs_.erase(it);
	}
	tell_(job, answer);
}

} // namespace sk8::core
