// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Preemption in the model of Slurm: who is chosen, when the grace is over, and what
// lib/slurm/preemptees.c and preemptors.c make of it.
#include "test/sim/model_slurm.h"

#include <algorithm>
#include <utility>

namespace sk8::sim {

static constexpr Micros time_limit_interval = 30 * second; // PERIODIC_TIMEOUT
static constexpr std::int64_t kill_wait = 30, message_timeout = 10;
static constexpr std::int64_t kubelet_needs = 15; // preemptees.c
static constexpr std::int64_t patience = 300;     // preemptors.c

// For whom jobs were preempted there: others do not start before it (job_scheduler.c takes the nodes
// of a job that cannot start yet from those behind it, backfill.c reserves them).
bool ModelSlurm::emptied_for_another(const std::string &node, const SlurmJob &job) const
{
	auto it = emptied_.find(node);
	if (it == emptied_.end() || it->second == job.id || !job.required.empty())
		return false;
	auto preemptor = jobs_.find(it->second);
	return preemptor == jobs_.end() || job.high < preemptor->second.high;
}

// True: a node is everybody's again.
bool ModelSlurm::forget_emptied()
{
	return std::erase_if(emptied_, [this](const auto &e) {
		auto it = jobs_.find(e.second);
		return it == jobs_.end() || !it->second.pending() || it->second.priority == 0;
	}) > 0;
}

// ---- who is chosen ----

// As _run_now() of cons_common/job_test.c does it, on one node: the newest ones are thought away until
// the job fits; then the last one of them comes first, and again, so that none is taken in vain.
std::vector<SlurmJob *> ModelSlurm::choose_victims(const SlurmJob &job, const std::string &node)
{
	std::vector<SlurmJob *> order;
	for (auto it = jobs_.rbegin(); it != jobs_.rend(); ++it)
		if (it->second.running() && it->second.high < job.high && it->second.node == node)
			order.push_back(&it->second);
	const auto masks = hooks_->masks();
	std::size_t needed = 0;
	for (int pass = 0; pass < 3; pass++) {
		std::vector<const SlurmJob *> without;
		bool fits = false;
		for (needed = 0; needed < order.size() && !fits;) {
			without.push_back(order[needed++]);
			fits = select_.test(job, node, masks.get(), without).has_value();
		}
		if (!fits)
			return {};
		std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(needed) - 1,
			    order.begin() + static_cast<std::ptrdiff_t>(needed));
	}
	order.resize(needed);
	return order;
}

// Where the fewest must go. What was emptied for a better job is none of its candidates.
void ModelSlurm::preempt_for(SlurmJob &job)
{
	if (victims_leave(job))
		return;
	std::vector<SlurmJob *> victims;
	for (const auto &[name, n] : select_.nodes) {
		if (emptied_for_another(name, job))
			continue;
		if (auto there = choose_victims(job, name); !there.empty() && (victims.empty() || there.size() < victims.size()))
			victims = std::move(there);
	}
	if (victims.empty())
		return;
	remember(job, victims);
	if (job.preempt_start_time > wall() - kill_wait - message_timeout)
		return; // "Job preemption may still be in progress"
	job.preempt_start_time = wall();
	emptied_[victims[0]->node] = job.id;
	std::vector<const SlurmJob *> fresh;
	for (const SlurmJob *v : victims)
		if (!v->preempt_time)
			fresh.push_back(v);
	if (!fresh.empty())
		watcher_.jobs_preempted(&job, fresh);
	for (SlurmJob *v : victims)
		preempt(*v);
}

// ---- the grace ----

// slurm_job_preempt()
void ModelSlurm::preempt(SlurmJob &job)
{
	if (!job.preempt_time)
		begin_grace(job, graces.of(job.qos));
	if (wall() >= job.kill_at)
		finish(job, SK8_JOB_PREEMPTED, 0, 0);
}

void ModelSlurm::begin_grace(SlurmJob &job, std::int64_t grace)
{
	job.preempt_time = wall();
	job.grace = grace;
	job.kill_at = job.preempt_time + grace;
	if (grace == 0)
		return;
	tell(story_, "slurm: job ", std::to_string(job.id), " (", job.name, ") is preempted, grace ", std::to_string(grace));
	changed();
	plan_grace_check();
	// of a program that ends at SIGTERM; a pod's job has no process
	if (job.batch() && dice_.chance("slurm/sigterm", 500))
		time_.after(dice_.between("slurm/sigterm", 10 * ms, 3 * second), [this, copy = job] { process_ends(copy, true); });
}

void ModelSlurm::preempt_by_hand(SlurmJob &job, std::int64_t grace)
{
	if (!job.running() || job.preempt_time)
		return;
	begin_grace(job, grace);
	watcher_.jobs_preempted(nullptr, {&job});
	if (grace == 0)
		finish(job, SK8_JOB_PREEMPTED, 0, 0);
}

// job_time_limit(), as long as somebody has a grace.
void ModelSlurm::plan_grace_check()
{
	if (std::exchange(grace_check_planned_, true))
		return;
	if (time_limit_phase_ < 0)
		time_limit_phase_ = dice_.between("slurm/time limit", 0, time_limit_interval);
	const Micros delay = time_limit_interval - (time_.now() + time_limit_phase_) % time_limit_interval;
	later(delay, [this] {
		grace_check_planned_ = false;
		std::vector<SlurmJob *> in_grace;
		for (auto &[id, job] : jobs_)
			if (job.in_grace())
				in_grace.push_back(&job);
		for (SlurmJob *job : in_grace)
			preempt(*job);
		if (!in_grace.empty())
			plan_grace_check();
	});
}

// ---- lib/slurm/preemptees.c ----

void ModelSlurm::spare(std::uint32_t id, std::int64_t submit_time, const char *mark, sk8_outcome &out)
{
	out = {};
	SlurmJob *job = find(id, submit_time, mark, out);
	if (!job || !job->in_grace() || job->kill_at != job->preempt_time + job->grace)
		return;
	job->kill_at += kubelet_needs;
	changed();
}

// ---- lib/slurm/preemptors.c ----

static bool hides(const core::NodeMask &mask, const Victim &v)
{
	if (v.native)
		return std::ranges::binary_search(mask.jobs, v.job.id) || ((mask.whole || mask.some_jobs) && mask.node == v.node);
	auto has = [&mask](std::uint16_t core) { return std::ranges::binary_search(mask.cores, core); };
	return mask.node == v.node && (mask.whole || std::ranges::any_of(v.cores, has));
}

bool ModelSlurm::is_masked(const Victim &v) const
{
	const auto masks = hooks_->masks();
	return masks && std::ranges::any_of(masks->masks, [&v](const auto &mask) { return hides(*mask, v); });
}

VictimState ModelSlurm::state_of(Victim &v)
{
	const SlurmJob *job = find(v.job.id);
	if (job && job->ref() == v.job && job->running()) {
		if (!job->in_grace())
			return VictimState::gone; // Slurm thought better of it
		return v.native ? VictimState::runs : VictimState::leaves;
	}
	if (!v.until)
		v.until = wall() + patience;
	if (wall() >= v.until)
		return VictimState::gone;
	const bool completing = v.native && job && job->ref() == v.job && job->completing;
	return completing || is_masked(v) ? VictimState::leaves : VictimState::gone;
}

bool ModelSlurm::victims_leave(const SlurmJob &job)
{
	bool leave = false;
	std::erase_if(victims_, [&](Victim &v) {
		const VictimState state = v.preemptor == job.ref() ? state_of(v) : VictimState::runs;
		leave |= state == VictimState::leaves;
		return state == VictimState::gone;
	});
	return leave && !takes_more_victims;
}

void ModelSlurm::remember(const SlurmJob &job, const std::vector<SlurmJob *> &victims)
{
	std::erase_if(victims_, [this](const Victim &v) {
		const SlurmJob *preemptor = find(v.preemptor.id);
		return !preemptor || preemptor->ref() != v.preemptor || !preemptor->pending();
	});
	for (const SlurmJob *v : victims)
		if ((!v->batch() || (gates && !forgets_native_victims)) && std::ranges::none_of(victims_, [&](const Victim &known) {
			    return known.preemptor == job.ref() && known.job == v->ref();
		    }))
			victims_.push_back({job.ref(), v->ref(), v->batch(), v->node, v->cores, 0});
}

} // namespace sk8::sim
