// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The jobs that wait in prolog_slurmctld (CONFIGURING) until each cluster that makes reservation pods,
// or that empties nodes for such a job (NativeJob::exclusive), has said what becomes of them. One for all clusters: a job may have
// nodes of several. Every job that arrives is answered once, unless slurmctld ends
// first: Slurm lets it arrive again after its start.
//
// Any thread. One short mutex, never held during I/O; hooks take it.
#ifndef SK8_CORE_GATE_H
#define SK8_CORE_GATE_H

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/core/native_job.h"

namespace sk8::core {

class Gate {
public:
	// tell: how the answer gets to Slurm; must return at once. Called without the mutex.
	using Tell = std::function<void(JobRef, const GateAnswer &)>;
	// taken_by: asked of a job that changed settings let out; beside: of one that wants its nodes for itself, when
	// nobody empties nodes any more. Called without the mutex.
	explicit Gate(Tell tell, TakenBy taken_by = {}, TakenBy beside = {})
		: tell_(std::move(tell)), taken_by_(std::move(taken_by)), beside_(std::move(beside))
	{
	}

	// Hooks. True: it waits, and is answered.
	bool arrive(const NativeJobPtr &job);
	void ended(JobRef job); // whatever for: it is let out

	// The clusters that make reservation pods, and those that empty nodes, once the settings are known.
	void set_clusters(std::set<std::string> reserving, std::set<std::string> emptying = {});
	// There is one of these, or that is not known yet.
	bool used() const;
	// slurmctld ends, or is not in charge any more: nobody is answered.
	void forget();

	std::vector<NativeJobPtr> waiting(const std::string &cluster) const;
	void vote(const std::string &cluster, JobRef job, const GateAnswer &answer);

private:
	struct Waiting {
		NativeJobPtr job;
		std::set<std::string> missing; // votes
	};
	using Jobs = std::map<std::uint32_t, Waiting>; // by id

	struct Clusters {
		std::set<std::string> reserving, emptying;
		std::set<std::string> asked(const NativeJob &job) const; // whose word it needs
		bool none() const { return reserving.empty() && emptying.empty(); }
	};

	void let_out(const std::vector<NativeJobPtr> &jobs);
	std::string crowded(const NativeJob &job) const;

	const Tell tell_;
	const TakenBy taken_by_, beside_;
	mutable std::mutex mutex_;
	std::optional<Clusters> clusters_; // nothing: not known yet
	Jobs jobs_;
};

} // namespace sk8::core

#endif
