// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Jobs of Slurm's own in a slurmctld with PrEpPlugins=prep/k8s: they are CONFIGURING until
// somebody answers prolog_slurmctld, and COMPLETING until slurmd has ended what is left of
// them. What of this slurmctld saves, and calls again after its start: prep_slurmctld.c,
// job_scheduler.c prolog_slurmctld(), read_config.c _sync_nodes_to_jobs(), node_scheduler.c
// deallocate_nodes(); our side of it is lib/slurm/gate.c and native_end.c.
#include <algorithm>
#include <cstdio>

#include "test/sim/model_slurm.h"

namespace sk8::sim {

static constexpr std::int64_t wait_of_a_requeued = 121; // seconds: batch_requeue_fini()

// gate.c fill(): of one that ends only the nodes where processes may be left.
sk8_native_job ModelSlurm::native_view(const SlurmJob &job) const
{
	share_of_view_ = {job.node.c_str(), job.cpus, job.memory_mb, 0, nullptr, static_cast<std::uint32_t>(job.cores.size()), job.cores.data()};
	if (!job.devices.empty()) {
		gres_of_view_ = {"gpu", "", job.devices.size(), static_cast<std::uint32_t>(job.devices.size()), job.devices.data()};
		share_of_view_.gres_count = 1;
		share_of_view_.gres = &gres_of_view_;
	}
	return {.job_id = job.id, .submit_time = job.submit_time, .user_id = 1000, .account = "users",
		.requeues = job.requeues && !job.srun, .ending = job.completing, .share_count = 1, .shares = &share_of_view_};
}

// ---- the gate ----

// In a thread of its own, which waits for slurmctld's locks and finds the job by its id.
void ModelSlurm::prolog(SlurmJob &job)
{
	job.configuring = true;
	job.prologs++;
	later(dice_.between("slurm/prolog", 0, 5 * ms), [this, id = job.id] {
		SlurmJob *found = find(id);
		if (!found || !found->batch())
			return;
		const bool native = found->running() || found->completing;
		if (native)
			watcher_.native_arrived(*found);
		if (!native || !hooks_->gate(native_view(*found)))
			prolog_answered(*found);
	});
}

// prolog_running_decr()
void ModelSlurm::prolog_answered(SlurmJob &job)
{
	if (job.prologs > 0 && --job.prologs > 0)
		return;
	if (job.running() && job.configuring)
		launch(job);
	changed();
	kick();
}

// sk8_answer_gate(). Who has ended meanwhile is let out only: Slurm would queue it again.
void ModelSlurm::answer_gate(const sk8_gate_answer &a)
{
	SlurmJob *job = find(a.job_id);
	if (!job)
		return;
	tell(story_, "slurm: the gate is ", a.open ? "open" : "closed", " for job ", std::to_string(a.job_id));
	if (!a.open && job->running())
		end_native(*job, SK8_JOB_CANCELLED, 0, 0, true);
	prolog_answered(*job);
	if (a.open || !job->pending())
		return;
	job->begin_time = std::min(job->begin_time, wall() + a.delay);
	later(a.delay * second, [this] { kick(); });
}

// What a slurmctld had launched that was killed before it had saved that runs already.
void ModelSlurm::launch(SlurmJob &job)
{
	job.configuring = false;
	const bool runs = std::any_of(processes_.begin(), processes_.end(), [&](const BatchProcess &p) {
		return p.job_id == job.id && p.submit_time == job.submit_time;
	});
	if (runs)
		return;
	tell(story_, "slurm: job ", std::to_string(job.id), " (", job.name, ") is launched");
	run_batch(job);
	watcher_.native_launched(job);
}

// ---- its end ----

// requeue: if that is possible. One that was in the gate has left no process: no slurmd is asked.
void ModelSlurm::end_native(SlurmJob &job, sk8_job_state state, std::uint32_t exit_code, std::uint32_t by, bool requeue)
{
	job.launched = job.prologs == 0;
	job.again = requeue && job.requeues && !job.srun;
	job.state = job.again ? SK8_JOB_PENDING : state;
	job.configuring = false;
	job.exit_code = exit_code;
	job.ended_by = by;
	job.end_time = wall();
	tell(story_, "slurm: job ", std::to_string(job.id), " (", job.name, ") ends, state ", std::to_string(job.state));
	watcher_.native_ended(job, state == SK8_JOB_COMPLETED);
	hooks_->native_fini(job.id, job.submit_time);
	select_.give(job);
	if (!job.again)
		watcher_.job_ended(job);
	job.completing = true;
	select_.nodes.at(job.node).completing++;
	if (job.launched && !dead_[job.node])
		return kill_processes(job);
	for (BatchProcess &p : processes_) // its slurmd is told when it registers
		p.forgotten |= p.job_id == job.id && p.submit_time == job.submit_time;
	complete(job.id, job.submit_time);
}

// slurmd: the processes, then the epilog, then its word.
void ModelSlurm::kill_processes(const SlurmJob &job)
{
	changed();
	const auto delay = dice_.between("slurm/kill", 10 * ms, 3 * second);
	time_.after(delay, [this, id = job.id, t = job.submit_time, life = life_] {
		std::erase_if(processes_, [&](const BatchProcess &p) { return p.job_id == id && p.submit_time == t; });
		if (!up())
			return;
		if (life == life_)
			return complete(id, t);
		SlurmJob *known = find(id); // a slurmctld that has forgotten the end hears of it from slurmd
		if (known && known->running() && !known->configuring && known->submit_time == t)
			finish(*known, SK8_JOB_FAILED, 9, SK8_NO_UID);
	});
}

// job_epilog_complete()
void ModelSlurm::complete(std::uint32_t id, std::int64_t submit_time)
{
	SlurmJob *job = find(id);
	if (!job || !job->completing || job->submit_time != submit_time)
		return;
	job->completing = false;
	select_.nodes.at(job->node).completing--;
	job->cores.clear();
	job->devices.clear();
	if (job->again)
		queue_again(*job);
	else
		plan_purge(*job);
	changed();
	kick();
}

// batch_requeue_fini()
void ModelSlurm::queue_again(SlurmJob &job)
{
	job.again = false;
	// One that was in the gate comes here twice in slurmctld: what the first adds the second takes back.
	job.submit_time = std::max(job.submit_time + (job.launched ? 1 : 0), wall());
	job.begin_time = wall() + wait_of_a_requeued;
	job.preempt_time = job.kill_at = job.preempt_start_time = 0;
	job.node.clear();
	later(wait_of_a_requeued * second, [this] { kick(); });
}

// Nobody waits for the slurmd of a node that is down.
void ModelSlurm::complete_on(const std::string &node)
{
	if (!dead_[node])
		return;
	std::vector<std::pair<std::uint32_t, std::int64_t>> all;
	for (const auto &[id, job] : jobs_)
		if (job.completing && job.node == node)
			all.emplace_back(id, job.submit_time);
	for (const auto &[id, submit_time] : all)
		complete(id, submit_time);
}

void ModelSlurm::load_native(SlurmJob &job)
{
	job.prologs = 0;
	if (job.running() && job.configuring)
		prolog(job);
	if (job.begin_time > wall())
		later((job.begin_time - wall()) * second, [this] { kick(); });
	if (!job.completing)
		return;
	select_.nodes.at(job.node).completing++;
	kill_processes(job);
}

// ---- who ends it ----

void ModelSlurm::requeue(SlurmJob &job)
{
	if (gates && job.batch() && job.running() && job.requeues && !job.srun)
		end_native(job, SK8_JOB_CANCELLED, 0, 1000, true);
}

// sk8_tell_refusal()
bool ModelSlurm::tell_refusal(const sk8_gate_answer &a)
{
	const SlurmJob *job = a.why[0] ? find(a.job_id) : nullptr;
	return job && job->srun && job->running() && job->configuring;
}

// sk8_end_native()
void ModelSlurm::end_native(const sk8_native_end &e, sk8_outcome &out)
{
	out = {};
	out.job_id = e.job_id;
	out.submit_time = e.submit_time;
	SlurmJob *job = find(e.job_id);
	out.rc = !job || !job->batch() || job->submit_time != e.submit_time || !job->running();
	if (out.rc) {
		std::snprintf(out.text, sizeof(out.text), "Job/step already completing or completed");
		return;
	}
	out.told = !e.told && job->srun && job->configuring; // srun_user_message()
	if (out.told)
		return;
	tell(story_, "slurm: job ", std::to_string(job->id), " is ended by us: ", e.comment);
	watcher_.native_ended_by_us(*job, e);
	out.running = e.requeue && job->requeues && !job->srun;
	end_native(*job, SK8_JOB_CANCELLED, 0, 0, e.requeue);
}

} // namespace sk8::sim
