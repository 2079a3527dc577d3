// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The jobs that wait in prolog_slurmctld (CONFIGURING) until each cluster that makes reservation pods,
// for all jobs or for those that want containers, or that empties nodes for such a job (NativeJob::exclusive), has said
// what becomes of them. One for all clusters: a job may have nodes of several. Every job that arrives is answered once, unless slurmctld ends
// first: Slurm lets it arrive again after its start. It does not if a reconfigure fails, and slurmctld goes on.
//
// Any thread. One short mutex, never held during I/O; hooks take it.
#ifndef SK8_CORE_GATE_H
#define SK8_CORE_GATE_H

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

	// The clusters that make reservation pods, those that empty nodes, and those that make the pods of containers, once the
	// settings are known.
	void set_clusters(std::set<std::string> reserving, std::set<std::string> emptying = {}, std::set<std::string> containing = {});
	// There is one of these, or that is not known yet.
	bool used() const;
	// slurmctld ends, or is not in charge any more, unless that is called off: nobody is asked or answered, and settings that come
	// late do not count.
	void pause();
	// It is in charge (again): who waits is asked anew when settings are known.
	void go_on();
	// slurmctld reads its jobs anew.
	void forget();

	// An answer is about to get to Slurm. False: there is none that has not got there; it is not to be told twice.
	bool told(JobRef job);
	// Answers that have not: who was to tell them may have ended.
	std::vector<std::pair<JobRef, GateAnswer>> untold() const;

	std::vector<NativeJobPtr> waiting(const std::string &cluster) const;
	void vote(const std::string &cluster, JobRef job, const GateAnswer &answer);

private:
	struct Waiting {
		NativeJobPtr job;
		std::set<std::string> missing; // votes
	};
	using Jobs = std::map<std::uint32_t, Waiting>; // by id

	struct Clusters {
		std::set<std::string> reserving, emptying, containing;
		std::set<std::string> asked(const NativeJob &job) const; // whose word it needs
		bool none() const { return reserving.empty() && emptying.empty() && containing.empty(); }
	};

	void answer(JobRef job, const GateAnswer &answer);
	void let_out(const std::vector<NativeJobPtr> &jobs);
	std::string crowded(const NativeJob &job) const;

	const Tell tell_;
	const TakenBy taken_by_, beside_;
	mutable std::mutex mutex_;
	std::optional<Clusters> clusters_; // nothing: not known yet
	bool paused_ = false;
	std::vector<std::pair<JobRef, GateAnswer>> untold_; // of one job there may be two, of two runs
	Jobs jobs_;
};

} // namespace sk8::core

#endif
