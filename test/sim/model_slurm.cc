// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The daemon: its jobs' lives and its own. What our Slurm thread calls is in
// slurm_ops.cc.
#include "test/sim/model_slurm.h"

#include <algorithm>

namespace sk8::sim {

static constexpr Micros save_delay = 5 * second, min_job_age = 2 * second, sched_interval = 60 * second;

void ModelSlurm::later(Micros delay, std::function<void()> f)
{
	time_.after(delay, [this, life = life_, f = std::move(f)] {
		if (life == life_ && up())
			f();
	});
}

// ---- the daemon ----

void ModelSlurm::changed()
{
	jobs_stamp_ = wall();
	watcher_.slurm_changed();
	if (save_planned_)
		return;
	save_planned_ = true;
	later(dice_.between("slurm/save", 0, save_delay), [this] { save(); });
}

void ModelSlurm::updated()
{
	changed();
	kick();
}

void ModelSlurm::save()
{
	save_planned_ = false;
	saved_ = {jobs_, next_, select_.nodes};
}

void ModelSlurm::boot(SlurmHooks &hooks)
{
	life_++;
	hooks_ = &hooks;
	save_planned_ = kicked_ = pass_planned_ = grace_check_planned_ = false;
	tell(story_, "slurmctld starts");
	hooks.node_init();
	load();
	hooks.reconfigure();
	if (pings)
		plan_ping();
	nodes_stamp_ = jobs_stamp_ = wall();
	later(dice_.between("slurm/register", 200 * ms, 3 * second), [this] { registered(); });
}

void ModelSlurm::load()
{
	jobs_ = saved_.jobs;
	next_ = saved_.next;
	select_.clear();
	for (auto &[name, n] : select_.nodes) {
		n.usable = false; // until it registers
		const SelectNode &was = saved_.nodes[name];
		n.drain = was.drain;
		n.set_down = was.set_down;
		n.fail = was.fail;
		n.maint = was.maint;
		n.reason = was.reason;
		n.reason_uid = was.reason_uid;
	}
	for (auto &p : processes_) {
		const SlurmJob *job = find(p.job_id);
		p.forgotten = !job || (job->pending() && !job->completing) || job->submit_time != p.submit_time;
	}
	for (auto &[id, job] : jobs_) {
		if (!job.live())
			plan_purge(job);
		job.preempt_start_time = 0;
		load_native(job);
		if (!job.running())
			continue;
		select_.take(job);
		if (job.in_grace())
			plan_grace_check();
		if (!job.batch())
			hooks_->job_start(view(job)); // nodeinfo_set: the replay
	}
}

// slurmds tell what they run: batch jobs that Slurm does not know as running are
// killed before the node is used again, and those that are over end.
void ModelSlurm::registered()
{
	auto known = [&](const BatchProcess &p) {
		const SlurmJob *job = find(p.job_id);
		return job && (job->running() || job->completing) && job->submit_time == p.submit_time && job->node == p.node;
	};
	std::erase_if(processes_, [&](const BatchProcess &p) { return !known(p); });
	for (auto &[name, n] : select_.nodes) {
		if (dead_[name])
			fail_jobs_on(name);
		n.usable = !dead_[name];
		n.down = dead_[name];
	}
	std::vector<std::uint32_t> over;
	for (const auto &[id, job] : jobs_)
		if (job.running() && job.batch() && !job.configuring &&
		    std::none_of(processes_.begin(), processes_.end(),
				 [id = id](const BatchProcess &p) { return p.job_id == id; }))
			over.push_back(id);
	for (auto id : over)
		finish(jobs_.at(id), SK8_JOB_COMPLETED, 0, SK8_NO_UID);
	nodes_stamp_ = wall();
	watcher_.slurm_changed();
	kick();
}

// ping_nodes(), with SlurmdTimeout=30; reset_node_load()
void ModelSlurm::plan_ping()
{
	later(10 * second, [this] {
		nodes_stamp_ = wall();
		watcher_.slurm_changed();
		plan_ping();
	});
}

void ModelSlurm::kill()
{
	tell(story_, "slurmctld is gone");
	hooks_ = nullptr;
	life_++;
	emptied_.clear();
	victims_.clear();
}

void ModelSlurm::shut_down()
{
	save();
	kill();
}

// ---- scheduling ----

void ModelSlurm::kick()
{
	if (kicked_ || !up())
		return;
	kicked_ = true;
	later(dice_.between("slurm/kick", 0, 20 * ms), [this] {
		kicked_ = false;
		pass(true);
	});
}

void ModelSlurm::schedule_now()
{
	if (up() && !locked_)
		pass(true);
}

void ModelSlurm::reconfigure()
{
	if (!up())
		return;
	tell(story_, "slurmctld: reconfigure");
	hooks_->node_init();
	for (const auto &[id, job] : jobs_)
		if (job.running() && !job.batch())
			hooks_->job_start(view(job));
	hooks_->reconfigure();
	kick();
}

void ModelSlurm::pass(bool woken)
{
	locked_ = true;
	woken |= forget_emptied();
	std::vector<SlurmJob *> queue;
	for (auto &[id, job] : jobs_)
		if (job.can_start(wall()))
			queue.push_back(&job);
	std::stable_sort(queue.begin(), queue.end(), [](const SlurmJob *a, const SlurmJob *b) {
		return a->high != b->high ? a->high > b->high : a->priority > b->priority;
	});
	for (SlurmJob *job : queue) {
		const bool just_due = job->begin_time > 0 && wall() - job->begin_time < 100; // and clocks step
		if (try_start(*job)) {
			if (!woken && !kicked_ && !just_due)
				watcher_.started_without_being_woken(*job);
		} else if (job->high > 0) {
			preempt_for(*job);
		}
	}
	locked_ = false;
	if (pending() > 0 && !pass_planned_) {
		pass_planned_ = true;
		later(sched_interval, [this] {
			pass_planned_ = false;
			pass(false);
		});
	}
}

std::size_t ModelSlurm::pending() const
{
	return static_cast<std::size_t>(
		std::count_if(jobs_.begin(), jobs_.end(), [](const auto &j) { return j.second.pending(); }));
}

bool ModelSlurm::try_start(SlurmJob &job)
{
	const auto masks = hooks_->masks();
	for (const auto &[name, n] : select_.nodes) {
		if (emptied_for_another(name, job))
			continue;
		if (auto place = select_.test(job, name, masks.get())) {
			start(job, name, std::move(*place));
			return true;
		}
	}
	return false;
}

void ModelSlurm::start(SlurmJob &job, const std::string &node, ModelSelect::Place place)
{
	job.state = SK8_JOB_RUNNING;
	job.node = node;
	job.cores = std::move(place.cores);
	job.devices = std::move(place.devices);
	job.start_time = wall();
	select_.take(job);
	tell(story_, "slurm: job ", std::to_string(job.id), " (", job.name, ") starts on ", node, " with ",
	     std::to_string(job.cores.size()), " cores from ", std::to_string(job.cores.empty() ? 0 : job.cores[0]),
	     job.devices.empty() ? "" : ", GPUs " + core::index_list(job.devices));
	changed();
	if (!job.batch())
		hooks_->job_start(view(job));
	else if (gates)
		prolog(job);
	else
		run_batch(job);
	watcher_.job_started(job);
}

void ModelSlurm::run_batch(const SlurmJob &job)
{
	processes_.push_back({job.id, job.submit_time, job.node, static_cast<int>(job.cpus), job.memory_mb, static_cast<int>(job.gpus), job.devices});
	time_.after(job.life, [this, copy = job] { process_ends(copy, true); });
}

// ---- ends ----

// As job_signal(), job_complete() and deallocate_nodes(): the final state is set, then
// our hook, then the select plugin frees, then slurmd ends what is left.
void ModelSlurm::finish(SlurmJob &job, sk8_job_state state, std::uint32_t exit_code, std::uint32_t by)
{
	if (!job.live())
		return;
	if (gates && job.batch() && job.running())
		return end_native(job, state, exit_code, by, state == SK8_JOB_NODE_FAIL || state == SK8_JOB_PREEMPTED);
	job.again = false;
	const bool ran = job.running();
	const bool again = ran && job.requeues && (state == SK8_JOB_NODE_FAIL || state == SK8_JOB_PREEMPTED);
	job.state = ran ? state : SK8_JOB_CANCELLED;
	job.exit_code = exit_code;
	job.ended_by = by;
	job.end_time = wall();
	tell(story_, "slurm: job ", std::to_string(job.id), " (", job.name, ") ends, state ", std::to_string(job.state));
	if (ran) {
		if (!job.batch())
			hooks_->job_fini(view(job));
		select_.give(job);
		job.cores.clear();
		job.devices.clear();
		if (job.batch())
			process_ends(job, false);
	}
	if (again) { // same id, another submit time: details->submit_time = now
		job.state = SK8_JOB_PENDING;
		job.submit_time = std::max(job.submit_time + 1, wall());
		job.node.clear();
		job.cores.clear();
		job.preempt_time = job.kill_at = job.preempt_start_time = 0;
	} else {
		watcher_.job_ended(job);
		plan_purge(job);
	}
	changed();
	kick();
}

static bool belongs(const BatchProcess &p, const SlurmJob &job)
{
	return p.job_id == job.id && p.submit_time == job.submit_time;
}

void ModelSlurm::process_ends(const SlurmJob &job, bool by_itself)
{
	auto there = [&] {
		return std::any_of(processes_.begin(), processes_.end(), [&](const auto &p) { return belongs(p, job); });
	};
	if (!there())
		return;
	if (by_itself) {
		std::erase_if(processes_, [&](const auto &p) { return belongs(p, job); });
		SlurmJob *known = up() ? find(job.id) : nullptr;
		if (known && known->running() && known->submit_time == job.submit_time)
			finish(*known, SK8_JOB_COMPLETED, 0, SK8_NO_UID);
		return;
	}
	// killed: the node is completing until it is gone
	SelectNode &n = select_.nodes.at(job.node);
	n.completing++;
	const auto delay = dice_.between("slurm/kill", 10 * ms, 3 * second);
	time_.after(delay, [this, copy = job, life = life_] {
		std::erase_if(processes_, [&](const auto &p) { return belongs(p, copy); });
		if (!up())
			return;
		if (life != life_) { // a slurmctld that has forgotten the end hears of it from slurmd
			SlurmJob *known = find(copy.id);
			if (known && known->running() && known->submit_time == copy.submit_time)
				finish(*known, SK8_JOB_FAILED, 9, SK8_NO_UID);
			return;
		}
		select_.nodes.at(copy.node).completing--;
		kick();
	});
}

void ModelSlurm::plan_purge(const SlurmJob &job)
{
	later(min_job_age + dice_.between("slurm/purge", 0, 5 * second), [this, id = job.id, t = job.submit_time] {
		const SlurmJob *ended = find(id);
		if (!ended || ended->live() || ended->completing || ended->submit_time != t)
			return;
		jobs_.erase(id);
		changed();
	});
}

// ---- people ----

bool ModelSlurm::full() const
{
	return jobs_.size() + 2 >= last_id_;
}

// 0: the table is full.
std::uint32_t ModelSlurm::next_id()
{
	if (full())
		return 0;
	do {
		next_ = next_ >= last_id_ ? 1 : next_ + 1;
	} while (jobs_.contains(next_));
	return next_;
}

SlurmJob *ModelSlurm::find(std::uint32_t id)
{
	auto it = jobs_.find(id);
	return it == jobs_.end() ? nullptr : &it->second;
}

void ModelSlurm::sbatch(SlurmJob job)
{
	if (job.cpus > static_cast<std::uint32_t>(select_.cores) || job.memory_mb > select_.memory ||
	    job.gpus > static_cast<std::uint32_t>(select_.gpus))
		return; // refused: it could never start
	if (!(job.id = next_id()))
		return;
	job.submit_time = wall();
	tell(story_, "slurm: sbatch ", job.name, " is job ", std::to_string(job.id));
	jobs_[job.id] = std::move(job);
	changed();
	kick();
}

SlurmJob *ModelSlurm::live_job(const std::string &name)
{
	SlurmJob *found = nullptr;
	for (auto &[id, job] : jobs_)
		if (job.name == name && job.live())
			found = &job;
	return found;
}

} // namespace sk8::sim
