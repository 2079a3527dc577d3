// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/process.h"


#include <algorithm>
#include <stdexcept>

namespace sk8::sim {

using core::Job;
using core::JobPtr;
using core::PodKey;

bool Process::effect(const char *what)
{
	if (!dying_ && effects_left_ >= 0 && effects_left_-- == 0) {
		tell(out_.story, "slurmctld dies before: ", what);
		dying_ = true;
	}
	if (dying_)
		return false;
	// Slurm's own threads do not wait for ours: jobs may start in between.
	if (out_.dice.chance("interleave", 20))
		out_.slurm.schedule_now();
	return true;
}

void Process::lose_requests()
{
	for (const auto &former : former_requests_) // it is dead
		former->lose();
}

void Process::later(Micros delay, std::function<void()> f)
{
	out_.time.after(delay, [this, self = weak_from_this(), f = std::move(f)] {
		if (auto keep = self.lock(); keep && alive_ && !dying_)
			f();
	});
}

// ---- slurmctld's side (runtime.cc) ----

void Process::node_init()
{
	if (in_charge_)
		return; // a reconfigure: memory knows better
	if (!out_.disk.found)
		return block_unknown_nodes({});
	auto saved = core::parse_journal(out_.disk.ledger);
	if (!saved) {
		violation = "I3: the saved ledger cannot be read: " + saved.error().message;
		return;
	}
	if (out_.mutant == Mutant::foreign_not_restored)
		std::erase_if(saved->holds, [](const core::Hold &h) { return h.foreign; });
	if (out_.mutant == Mutant::word_forgotten)
		saved->released.clear();
	if (out_.mutant == Mutant::gres_not_restored)
		for (core::Hold &h : saved->holds)
			h.gres.clear();
	Ledgers ledgers;
	if (!saved->partial || !saved->first)
		ledgers[settings_.name] = !saved->partial;
	if (out_.mutant != Mutant::ledger_not_loaded)
		holds_.restore(std::move(*saved));
	block_unknown_nodes(ledgers);
}

std::vector<core::UntoldNodes> Process::untold_nodes(const Ledgers &ledgers) const
{
	std::vector<std::string> nodes;
	for (const auto &[name, n] : out_.slurm.select().nodes)
		nodes.push_back(name);
	return core::untold_nodes(ledgers, {settings_}, nodes);
}

// The judge is told what is right, whatever a mutant believes.
void Process::block_unknown_nodes(const Ledgers &ledgers)
{
	const auto right = untold_nodes(ledgers);
	if (right.empty())
		out_.requests.moment_is_over();
	else if (right.front().wait == core::Wait::a_moment)
		out_.requests.waits_a_moment();
	Ledgers believed = ledgers;
	if (out_.mutant == Mutant::first_ledger_believed && out_.disk.found)
		believed[settings_.name] = true;
	for (const auto &u : untold_nodes(believed)) {
		if (out_.mutant == Mutant::unknown_nodes_open || (out_.mutant == Mutant::first_list_not_waited_for && u.wait == core::Wait::a_while) ||
		    (out_.mutant == Mutant::list_since_ledger_not_waited_for && u.wait == core::Wait::a_moment))
			continue;
		holds_.block_nodes(u.cluster, u.nodes, u.wait);
	}
}

void Process::stop_waiting(core::Wait wait)
{
	if (wait == core::Wait::a_moment)
		out_.requests.moment_is_over();
	if (!holds_.stop_waiting(settings_.name))
		return;
	if (wait == core::Wait::a_while)
		out_.requests.waited_enough();
	plan_round(0);
}

void Process::tell_engine(const PodKey &key, const Job &job)
{
	if (out_.mutant == Mutant::job_end_not_forwarded && job.ended())
		return;
	if (controller_ && key.cluster == settings_.name)
		post([this, key, job = share(job), at = now()] { controller_->job_changed(key, job, at); });
}

void Process::job_start(const sk8_job &abi)
{
	hooks_++;
	auto key = PodKey::from_mark(abi.mark);
	const Job job = core::job_from_abi(abi);
	holds_.job_started(*key, job);
	tell_engine(*key, job);
}

void Process::job_fini(const sk8_job &abi)
{
	hooks_++;
	auto key = PodKey::from_mark(abi.mark);
	const Job job = core::job_from_abi(abi);
	if (out_.mutant == Mutant::late_leaving_mask)
		later(out_.dice.between("late mask", 0, 100 * ms), [this, key, job] { holds_.job_ended(*key, job.ref); });
	else if (out_.mutant != Mutant::no_leaving_mask)
		holds_.job_ended(*key, job.ref);
	tell_engine(*key, job);
}

void Process::reconfigure()
{
	hooks_++;
	const bool start = !std::exchange(in_charge_, true);
	if (start) {
		worker_ = std::make_unique<core::SlurmWorker>(mutate(out_.mutant, ModelSlurm::ops()), holds_, *this);
		for (const auto &[cluster, wait] : holds_.closed())
			if (const auto most = core::at_most(wait))
				later(most->count() * ms, [this, wait] { stop_waiting(wait); });
	}
	worker_->reread();
	plan_round(0);
	if (start)
		later(out_.dice.between("engine/start", 1 * ms, 2 * second), [this] { reload(); });
	else if (out_.mutant != Mutant::settings_not_reread)
		later(out_.dice.between("engine/reload", 1 * ms, 50 * ms), [this] { reload(); });
}

// A broken file changes nothing: without an engine none is started.
void Process::reload()
{
	if (out_.config.broken && !controller_) {
		out_.requests.gate_opens();
		gate_.set_clusters({});
	}
	if (out_.config.broken || (controller_ && settings_ == out_.config.settings))
		return;
	stop_engine();
	settings_ = out_.config.settings;
	gate_.set_clusters(wants_natives() ? std::set{settings_.name} : std::set<std::string>());
	start_engine();
}

std::shared_ptr<const core::MaskSnapshot> Process::masks()
{
	const auto seen = mutate(out_.mutant, holds_.masks());
	return out_.mutant == Mutant::claim_unshared ? mutate_shared(seen, ledger()) : seen;
}

void Process::slurm_changed()
{
	plan_round(out_.dice.between("scan", 1 * ms, 250 * ms));
	// Its thread looks each 250 ms: a job that came unseen is found in the end.
	walks_ = 2; // the first may come less than ten seconds after the last look
	if (!std::exchange(walk_planned_, true))
		plan_walk();
}

void Process::plan_walk()
{
	later(11 * second, [this] {
		plan_round(0);
		walk_planned_ = --walks_ > 0;
		if (walk_planned_)
			plan_walk();
	});
}

// ---- cluster_engine.cc ----

std::optional<Result<std::string>> Process::release(const std::string &uid, bool force)
{
	std::optional<Result<std::string>> done;
	static constexpr const char *who = "root (uid 0)";
	if (!controller_)
		return std::nullopt;
	turn([&] {
		if (!(done = foreign_->release_by_hand(uid, who, force)))
			done = controller_->release_by_hand(uid, who, force);
		else if (auto saved = controller_->save_journal(); *done && !saved)
			done = **done + " until slurmctld starts again: " + saved.error().message;
	});
	return done;
}

bool Process::holds(const std::string &uid) const
{
	return !holds_.find([&](const core::Hold &h) { return h.key.uid == uid; }).empty();
}

void Process::set_faults(int permille)
{
	faults_ = permille;
	if (requests_)
		requests_->faults = permille;
}

static bool covers(const core::NodeMask &m, const core::NodeMask &was)
{
	return (m.whole || !was.whole) && (m.full.for_pods || !was.full.for_pods) && (m.full.for_jobs || !was.full.for_jobs) && m.more_cores >= was.more_cores && m.milli_cpu >= was.milli_cpu && m.memory_mb >= was.memory_mb &&
	       std::ranges::includes(m.cores, was.cores);
}

// The engine's thread has none of slurmctld's locks: a mask that went away meanwhile would
// give its cores to whoever is asked next, in the midst of a pass of the scheduler.
void Process::watching_masks(const std::function<void()> &f)
{
	const auto before = holds_.masks();
	const int hooks = hooks_;
	f();
	if (out_.mutant == Mutant::masks_let_go)
		holds_.let_masks_go();
	const auto after = holds_.masks();
	if (!before || before == after || hooks != hooks_)
		return;
	for (const auto &was : before->masks)
		if (!after || std::ranges::none_of(after->masks, [&](const auto &m) {
			    return m->node == was->node && covers(*m, *was);
		    }))
			violation = "I3: a mask of node " + was->node + " goes without slurmctld's locks";
}

void Process::post(std::function<void()> f)
{
	const Micros at = std::max(posted_until_, out_.time.now() + out_.dice.between("post", 0, 3 * ms));
	posted_until_ = at;
	later(at - out_.time.now(), [this, engine = engine_, f = std::move(f)] {
		if (engine == engine_)
			turn(f);
	});
}

void Process::plan_round(Micros delay)
{
	if (!in_charge_)
		return;
	const Micros at = out_.time.now() + delay + (lock_delay ? out_.dice.between("locks", 0, lock_delay) : 0);
	if (round_at_ >= 0 && round_at_ <= at)
		return;
	round_at_ = at;
	later(at - out_.time.now(), [this, at] {
		if (round_at_ != at)
			return; // an earlier one came
		round_at_ = -1;
		worker_->round();
		wake_is_coming_ = false;
		if (worker_->waiting() > 0) // its own commands, or what had no time
			plan_round(out_.dice.between("round", 0, 10 * ms));
		if (const Millis left = worker_->look_in(); left > Millis(0))
			plan_round(left.count() * ms);
		plan_later();
	});
}

// Its thread looks each 250 ms for what it was to do later.
void Process::plan_later()
{
	if (const auto due = worker_ ? worker_->later_in() : std::nullopt)
		plan_round(due->count() * ms + out_.dice.between("later", 0, 250 * ms));
}

void Process::after(Millis delay, std::function<void()> f)
{
	if (out_.mutant == Mutant::timers_lost && ++timers_ % 5 == 0)
		return;
	later(delay.count() * ms, [this, engine = engine_, f = std::move(f)] {
		if (engine == engine_)
			turn(f);
	});
}

void Process::slurm_nodes(std::vector<core::SlurmNode> nodes)
{
	if (controller_->slurm_nodes(nodes)) {
		full_nodes_stale_ = true;
		foreign_->nodes_changed();
		if (reservations_)
			reservations_->nodes_changed();
	}
	if (nodes_)
		nodes_->slurm_nodes(nodes);
}

void Process::overcommits(const core::Overcommits &over)
{
	if (nodes_ && out_.mutant != Mutant::overcommit_untold)
		nodes_->overcommits(over);
}

std::optional<std::size_t> Process::overcommitted() const
{
	return nodes_ && controller_ && controller_->started() ? std::optional(nodes_->overcommitted()) : std::nullopt;
}

void Process::jobs_replaced(const std::vector<std::pair<PodKey, JobPtr>> &jobs)
{
	controller_->jobs_replaced(jobs);
}

void Process::job_changed(const PodKey &key, const JobPtr &job)
{
	if (out_.mutant != Mutant::job_end_not_forwarded || !job->ended())
		controller_->job_changed(key, job, now());
}

void Process::job_purged(const PodKey &key, core::JobRef ref)
{
	controller_->job_purged(key, ref);
}

} // namespace sk8::sim
