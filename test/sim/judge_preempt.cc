// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What is promised of pods whose jobs Slurm preempts:
//
//   * With a grace the DELETE comes at its start, or as soon as the API server can be reached,
//     with all that is left of it; no container of it is killed before that is over.
//   * Slurm does not end the job before the kubelet had time to do that; the job ends PREEMPTED,
//     but for what ended by itself meanwhile.
//   * While a victim that is a pod leaves, its preemptor takes no other one, up to five minutes
//     after the end of the victim's job. So is it while the reservation pod of one of Slurm's own
//     jobs that has ended leaves. A slurmctld that is killed forgets who waits for whom.
//
// That a preemptor starts only on what is free is I1 as of any job; that it does not wait for
// ever is the judge's end of all.
#include <algorithm>

#include "test/sim/judge.h"

namespace sk8::sim {

using State = Container::State;

static constexpr std::int64_t patience = 300, kubelet_needs = 15; // seconds, see slurm-k8s(7), PREEMPTION

static const SlurmJob *job_of(const Preemption &p, const std::map<std::uint32_t, SlurmJob> &jobs)
{
	auto it = jobs.find(p.job.id);
	return it != jobs.end() && it->second.ref() == p.job ? &it->second : nullptr;
}

// What came in between leaves open what follows.
bool Judge::preemption_is_open(const std::string &uid, const Preemption &p) const
{
	const PodTruth &t = pods_.at(uid);
	return t.two_jobs || t.restored || t.released || t.unknown || t.phase_set || config_changed_ || p.by_others ||
	       p.clock_step != slurm_->clock_step;
}

bool Judge::still_leaves(const std::string &uid, const Preemption &p) const
{
	if (p.before_crash || preemption_is_open(uid, p))
		return false;
	const SlurmJob *job = job_of(p, slurm_->jobs());
	if (job && job->running())
		return job->in_grace();
	const Container *c = kubelet_->find(p.node, uid);
	return p.ended && slurm_->wall() - p.ended < patience && c && c->state == State::running;
}

// Which part of a pod that several share was that job's nobody can tell: only pods of their own count.
bool Judge::still_leaves(const NativePreemption &p) const
{
	if (p.crashes != crashes_ || p.clock_step != slurm_->clock_step || config_changed_ || state_lost_ ||
	    slurm_->wall() - p.begun >= patience)
		return false;
	const auto it = slurm_->jobs().find(p.job.id);
	const bool ended = it == slurm_->jobs().end() || it->second.ref() != p.job || !it->second.running();
	return ended && std::ranges::any_of(kubelet_->containers(), [&](const auto &at) {
		const Container &c = at.second;
		const PodTruth &t = pods_.at(c.uid);
		return t.reservation && !t.shared && t.job == Ref(p.job.id, p.job.submit_time) && c.node == p.node &&
		       c.state == State::running && !t.restored && !t.released && !t.unknown && !t.phase_set;
	});
}

void Judge::jobs_preempted(const SlurmJob *preemptor, const std::vector<const SlurmJob *> &victims)
{
	for (const auto &[uid, p] : preemptions_)
		if (preemptor && p.preemptor == preemptor->ref() && still_leaves(uid, p))
			violation("I3: job " + std::to_string(preemptor->id) + " takes another victim, job " +
				  std::to_string(victims[0]->id) + ", while " + name_of("pod", pods_.at(uid).name, uid) + " leaves for it");
	for (const auto &p : native_preemptions_)
		if (preemptor && p.preemptor == preemptor->ref() && still_leaves(p))
			violation("I3: job " + std::to_string(preemptor->id) + " takes another victim, job " +
				  std::to_string(victims[0]->id) + ", while the pod of job " + std::to_string(p.job.id) + " leaves for it");
	std::erase_if(native_preemptions_, [&](const auto &p) { return !still_leaves(p); });
	for (const SlurmJob *v : victims)
		if (preemptor && v->batch() && has_own_pod(ref(*v), v->node))
			native_preemptions_.push_back({preemptor->ref(), v->ref(), v->node, slurm_->wall(), slurm_->clock_step, crashes_});
	for (const SlurmJob *v : victims) {
		auto key = core::PodKey::from_mark(v->mark);
		PodTruth *t = truth_of(v->mark);
		if (!t)
			continue;
		t->innocent = false;
		t->taken_once = true;
		t->accrue_times.insert(v->accrue_time);
		Preemption p;
		p.preemptor = preemptor ? preemptor->ref() : JobId{};
		p.job = v->ref();
		p.node = v->node;
		p.at = time_.now();
		p.begun = slurm_->wall();
		p.clock_step = slurm_->clock_step;
		p.grace = slurm_->grace_of(*v);
		p.by_others = t->deleted >= 0; // its time had begun before
		preemptions_[key->uid] = p;
	}
}

void Judge::preempted_delete_sent(const std::string &uid, std::int64_t grace)
{
	auto it = preemptions_.find(uid);
	if (it == preemptions_.end() || preemption_is_open(uid, it->second))
		return;
	const SlurmJob *job = job_of(it->second, slurm_->jobs());
	if (!job || !job->in_grace())
		return;
	const Container *c = kubelet_->find(job->node, uid);
	if (c && c->state == State::ended)
		return;
	const std::int64_t left = std::max<std::int64_t>(1, job->preempt_time + job->grace - slurm_->wall());
	if (grace != left)
		violation("I3: " + name_of("pod", pods_.at(uid).name, uid) + " is deleted with a grace of " + std::to_string(grace) +
			  " s, and Slurm, which preempts job " + std::to_string(job->id) + ", gives " + std::to_string(left) + " s");
	it->second.told = true;
}

// One that hung since the end of a former job of it, which Slurm, killed meanwhile, may have forgotten: it was to end then, with the
// grace of then.
void Judge::preempted_delete_arrives(const std::string &uid, Micros sent_at)
{
	if (auto it = preemptions_.find(uid); it != preemptions_.end())
		it->second.by_others |= sent_at < it->second.at;
}

// How long the engine may take when nothing is in its way any more.
Micros Judge::time_to_act(const Preemption &p) const
{
	static constexpr Micros longest_retry = 75 * second, at_once = 5 * second, back_again = 15 * second;
	if (bad_at_ + longest_retry >= p.at) // what failed is tried again later and later
		return std::max(p.at, bad_at_) + longest_retry;
	return away_at_ < p.at ? p.at + at_once : away_at_ + back_again;
}

void Judge::check_preemptions()
{
	for (const auto &[uid, p] : preemptions_) {
		if (p.grace == 0 || p.told || p.ended || time_.now() <= time_to_act(p) || preemption_is_open(uid, p))
			continue;
		const SlurmJob *job = job_of(p, slurm_->jobs());
		const Container *c = kubelet_->find(p.node, uid);
		kube::PodPtr pod = api_.pod(pods_.at(uid).name);
		if (job && job->in_grace() && c && c->state == State::running && is_there(pod, uid) && !pod->meta.deleting)
			violation("I3: " + name_of("pod", pod->meta.name, uid) + " is not deleted, and Slurm preempts its job " +
				  std::to_string(job->id) + " since " + std::to_string((time_.now() - p.at) / second) + " s");
	}
}

void Judge::preempted_container_ended(const Container &c)
{
	auto it = preemptions_.find(c.uid);
	const bool killed = c.exit_code == 137 && c.reason == "Error" && !c.by_itself;
	if (!killed || it == preemptions_.end() || it->second.node != c.node)
		return;
	const Preemption &p = it->second;
	const PodTruth &t = pods_.at(c.uid);
	const SlurmJob *job = job_of(p, slurm_->jobs());
	const bool forgotten = p.before_crash && !(job && job->preempt_time);
	if (preemption_is_open(c.uid, p) || forgotten || t.deleted_by_people >= 0 || !is_there(api_.pod(t.name), c.uid))
		return;
	if (p.grace > 0 && slurm_->wall() < p.begun + p.grace)
		violation("I3: " + name_of("pod", c.pod, c.uid) + " is killed " + std::to_string(slurm_->wall() - p.begun) +
			  " s after Slurm began to preempt its job with a grace of " + std::to_string(p.grace) + " s");
}

void Judge::preempted_job_ended(const SlurmJob &job)
{
	auto key = core::PodKey::from_mark(job.mark);
	auto it = key ? preemptions_.find(key->uid) : preemptions_.end();
	if (it == preemptions_.end() || it->second.job != job.ref())
		return;
	Preemption &p = it->second;
	p.ended = slurm_->wall();
	if (!job.by_us && job.state != SK8_JOB_PREEMPTED) {
		p.by_others = true;
		return;
	}
	static constexpr Micros to_say_so = 3 * second; // a scan and a command
	const bool undisturbed = bad_at_ < p.at && away_at_ < p.at && !p.before_crash && time_.now() > p.at + to_say_so;
	const Container *c = kubelet_->find(job.node, key->uid);
	if (!job.by_us && p.grace > 0 && undisturbed && !preemption_is_open(key->uid, p) && c && c->state == State::running &&
	    slurm_->wall() < p.begun + p.grace + kubelet_needs)
		violation("I3: Slurm ends job " + std::to_string(job.id) + " " + std::to_string(p.ended - p.begun) +
			  " s after it began to preempt it with a grace of " + std::to_string(p.grace) + " s, and " +
			  name_of("pod", pods_.at(key->uid).name, key->uid) + " still runs");
}

// What was ended for the preemption and for nothing else.
void Judge::preempted_job_ended_by_us(const SlurmJob &job, const std::string &uid, const sk8_end &end)
{
	auto it = preemptions_.find(uid);
	if (it == preemptions_.end() || !job.in_grace() || !it->second.told || preemption_is_open(uid, it->second))
		return;
	if (pods_.at(uid).deleted_by_people >= 0)
		return; // that overwrites when it was first deleted, and nobody may have seen it run since
	const Container *c = kubelet_->find(job.node, uid);
	if (c && c->state == State::ended && !c->by_itself && c->reason == "Error" && end.state != SK8_JOB_PREEMPTED)
		violation("I2: " + name_of("pod", pods_.at(uid).name, uid) + " was ended because Slurm preempts its job " +
			  std::to_string(job.id) + ", which we end with state " + std::to_string(end.state));
}

} // namespace sk8::sim
