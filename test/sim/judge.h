// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Sees the truth (what really runs, what people did) and what the product does, and
// says which invariant is broken. Knows nothing of how the product works.
//
//   I1  no core and no byte of a node is used twice by what really runs there
//   I2  one job per pod; a job with the truth about its pod's end; nothing left over
//   I3  bound once, run once; nobody is killed but by somebody's wish; all comes to
//       its right end once faults have stopped, without waiting for Slurm's next cycle
//   I5  what others did stands: their exclusions, priorities, holds, finalizers
#ifndef SK8_SIM_JUDGE_H
#define SK8_SIM_JUDGE_H

#include <functional>
#include <map>
#include <set>
#include <string>

#include "test/sim/kube_requests.h"
#include "test/sim/model_kubelet.h"
#include "test/sim/model_slurm.h"

namespace sk8::sim {

class Judge final : public ApiListener, public ContainerListener, public SlurmWatcher, public RequestWatcher {
public:
	Judge(Schedule &time, ModelApi &api) : time_(time), api_(api) {}
	void look_at(const ModelKubelet &kubelet, const ModelSlurm &slurm) { kubelet_ = &kubelet, slurm_ = &slurm; }
	std::function<void()> on_slurm_changed = [] {};
	// Our Slurm thread has been told to wake the scheduler and waits for slurmctld's locks.
	// These are plain pthread_rwlocks (src/slurmctld/locks.c), which serve no order, and
	// _slurmctld_background() (controller.c) goes to schedule() each sched_interval, which
	// takes them by itself (job_scheduler.c): its pass may come first, and no wake was lost.
	std::function<bool()> wake_is_coming = [] { return false; };

	// The first violation, or empty.
	const std::string &verdict() const { return verdict_; }
	void violation(const std::string &what);

	// ---- what people did ----
	void created(const kube::Pod &pod, const Program &program);
	void deleted_by_people(const std::string &uid);
	void excluded_by_people(const SlurmJob &job) { exclusions_[ref(job)] = job.excluded; }
	void priority_by_people(const SlurmJob &job) { priorities_[ref(job)] = job.priority; }
	void finalizer_by_people(const std::string &uid, const std::string &finalizer, bool present);
	// A garbage collector's phase hides whether what waited has started since: the pod may
	// stay masked until a person decides.
	void phase_by_people(const std::string &uid) { pods_.at(uid).phase_set = pods_.at(uid).lost = true; }
	void people_are_gone() { exclusions_.clear(); priorities_.clear(); }
	void slurm_crashed()
	{
		crashes_++;
		people_are_gone(); // Slurm may have forgotten what they did
	}
	void etcd_restored();
	void trouble() { trouble_ = true; } // requests may fail, or nobody is there to make them

	// After every step.
	void check();
	// What is still to come before all is at its right end, or empty. masked, entries,
	// ledger: what the product still has.
	std::string unfinished(bool masked, std::size_t entries, const std::string &ledger) const;
	// At the end, when nothing is unfinished.
	void final_check();

	// What happens.
	void pod_event(const ApiEvent &event) override;
	void bound(const kube::Pod &pod) override;
	void container_started(const Container &c) override;
	void container_ended(const Container &c) override;
	void slurm_changed() override { on_slurm_changed(); }
	void job_started(const SlurmJob &job) override;
	void job_ended(const SlurmJob &job) override;
	void job_ended_by_us(const SlurmJob &before, const sk8_end &end) override;
	void submitted_by_us(const SlurmJob &job) override;
	void pinned_by_us(const SlurmJob &job) override { exclusions_.erase(ref(job)); }
	void started_without_being_woken(const SlurmJob &job) override;
	void delete_by_us(const core::PodKey &key, std::int64_t grace) override;
	void condition_by_us(const core::PodKey &) override {}
	void binding_by_us(const core::PodKey &key) override { pods_.at(key.uid).may_arrive++; }
	void binding_refused(const core::PodKey &key) override { pods_.at(key.uid).may_arrive--; }

private:
	using Ref = std::pair<std::uint32_t, std::int64_t>;
	struct PodTruth {
		std::string name;
		Program program;
		bool innocent = true;      // nobody wanted it to end
		bool phase_set = false;    // a garbage collector wrote its phase
		bool restored = false;     // it was in another state in a backup
		Micros deleted = -1;       // when that was first asked for
		int bound = 0, started = 0;
		Micros bound_at = 0;
		bool ended_by_itself = false, job_told = false, had_finalizer = false;
		int may_arrive = 0;        // Bindings that were sent and not refused
		bool lost = false;         // its object vanished before anybody could tell how it ended
		std::set<std::string> finalizers; // of others
	};
	static Ref ref(const SlurmJob &job) { return {job.id, job.submit_time}; }
	PodTruth *truth_of(const std::string &mark);
	bool may_stay(const SlurmJob &job) const; // of a lost pod
	void check_use(const std::string &node, const std::string &but_pod, const SlurmJob *more);
	void check_truth(PodTruth &t, const std::string &uid, const SlurmJob &job, const sk8_end &end);

	Schedule &time_;
	ModelApi &api_;
	const ModelKubelet *kubelet_ = nullptr;
	const ModelSlurm *slurm_ = nullptr;
	std::map<std::string, PodTruth> pods_; // by uid
	std::map<Ref, std::string> exclusions_;
	std::map<Ref, std::uint32_t> priorities_;
	int crashes_ = 0;
	bool trouble_ = false;
	std::string verdict_;
};

} // namespace sk8::sim

#endif
