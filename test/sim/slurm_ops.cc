// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What our Slurm thread calls of the model: lib/slurm/submit.c, end.c, jobs.c, view.c.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "test/sim/model_slurm.h"

namespace sk8::sim {

static ModelSlurm *the = nullptr; // one at a time in a process

ModelSlurm::ModelSlurm(Schedule &time, Dice &dice, Story &story, SlurmWatcher &watcher, int nodes, int cores,
		       std::int64_t memory, int job_ids, int gpus)
	: time_(time), dice_(dice), story_(story), watcher_(watcher),
	  select_(nodes, cores, static_cast<std::uint64_t>(memory), gpus), last_id_(static_cast<std::uint32_t>(job_ids))
{
	the = this;
}

ModelSlurm::~ModelSlurm()
{
	the = nullptr;
}

static void fail(sk8_outcome &out, bool fatal, const char *text)
{
	out.rc = 1;
	out.fatal = fatal;
	std::snprintf(out.text, sizeof(out.text), "%s", text);
}

sk8_job ModelSlurm::view(const SlurmJob &job) const
{
	sk8_job v{};
	v.job_id = job.id;
	v.submit_time = job.submit_time;
	v.mark = job.mark.c_str();
	v.state = job.state;
	v.held = job.pending() && job.priority == 0;
	v.reason = job.pending() ? (v.held ? "JobHeldAdmin" : "Resources") : "None";
	v.partition = "batch";
	v.excluded_nodes = job.excluded.c_str();
	v.priority = job.priority;
	v.start_time = job.start_time;
	v.end_time = job.end_time;
	v.accrue_time = job.accrue_time;
	v.exit_code = job.exit_code;
	v.preempt_end = job.in_grace() ? std::min(job.kill_at, job.preempt_time + job.grace) : SK8_NO_TIME;
	v.ended_by = job.state == SK8_JOB_PREEMPTED ? SK8_NO_UID : job.ended_by;
	v.ended_by_us = job.by_us;
	v.node = job.pending() ? "" : job.node.c_str();
	if (!job.pending()) { // until the stock job_fini has freed them
		v.core_count = static_cast<std::uint32_t>(job.cores.size());
		v.cores = job.cores.data();
		v.memory_mb = job.memory_mb;
		if (!job.devices.empty()) {
			gres_of_view_ = {"gpu", "", job.devices.size(), static_cast<std::uint32_t>(job.devices.size()), job.devices.data()};
			v.gres_count = 1;
			v.gres = &gres_of_view_;
		}
	}
	return v;
}

void ModelSlurm::submit(const sk8_submit &s, sk8_outcome &out)
{
	out = {};
	if (dice_.chance("slurm/busy", busy))
		return fail(out, false, "Slurm temporarily unable to accept job, sleeping and retrying");
	SlurmJob job;
	if (!(job.id = next_id()))
		return fail(out, false, "Slurm temporarily unable to accept job, sleeping and retrying");
	job.submit_time = wall();
	job.accrue_time = s.accrue_time != SK8_NO_TIME ? s.accrue_time : job.submit_time;
	job.mark = s.mark;
	job.name = s.job_name;
	job.user = s.uid;
	job.cpus = s.cpus;
	job.memory_mb = s.memory_mb;
	if (std::sscanf(s.tres_per_node, "gpu:%u", &job.gpus) != 1 && s.tres_per_node[0])
		return fail(out, true, "Invalid generic resource (gres) specification");
	job.excluded = s.excluded_nodes;
	job.required = s.required_node;
	job.high = tier_of(s.partition);
	job.qos = s.qos;
	const std::uint32_t id = job.id;
	SlurmJob &made = jobs_[id] = std::move(job);
	// job_allocate() tries to start it, if nothing is before it
	const bool first = pending() == 1 && dice_.chance("slurm/at once", tries_at_once);
	const bool adoption = !made.required.empty();
	const bool started = (adoption || first) && try_start(made);
	if (adoption && !started) {
		jobs_.erase(id);
		return fail(out, false, "Requested nodes are busy");
	}
	tell(story_, "slurm: job ", std::to_string(id), " is made for ", made.mark, adoption ? ", adopted" : "");
	out.job_id = id;
	out.submit_time = made.submit_time;
	out.running = made.running();
	watcher_.submitted_by_us(made);
	changed();
}

bool ModelSlurm::start_there(SlurmJob &job, const char *node, sk8_outcome &out)
{
	job.required = node;
	job.excluded.clear();
	watcher_.pinned_by_us(job);
	if (!try_start(job))
		fail(out, false, "Requested nodes are busy");
	changed();
	return out.rc == 0;
}

// The one that id, time and mark all name; else nullptr, and out says so.
SlurmJob *ModelSlurm::find(std::uint32_t id, std::int64_t submit_time, const char *mark, sk8_outcome &out)
{
	SlurmJob *job = find(id);
	if (job && job->submit_time == submit_time && job->mark == mark)
		return job;
	fail(out, true, "Invalid job id specified");
	return nullptr;
}

// The same, and it must be pending.
SlurmJob *ModelSlurm::find_pending(std::uint32_t id, std::int64_t submit_time, const char *mark, sk8_outcome &out)
{
	SlurmJob *job = find(id, submit_time, mark, out);
	if (!job || job->pending())
		return job;
	fail(out, true, "Job is no longer pending execution");
	return nullptr;
}

void ModelSlurm::start(std::uint32_t id, std::int64_t submit_time, const char *mark, const char *node, sk8_outcome &out)
{
	out = {};
	SlurmJob *job = find_pending(id, submit_time, mark, out);
	if (!job)
		return;
	tell(story_, "slurm: job ", std::to_string(id), " is to start on ", node);
	out.running = start_there(*job, node, out);
}

void ModelSlurm::end(const sk8_end &e, sk8_outcome &out)
{
	out = {};
	out.job_id = e.job_id;
	out.submit_time = e.submit_time;
	SlurmJob *job = find(e.job_id, e.submit_time, e.mark, out);
	if (!job)
		return;
	if (!job->live())
		return fail(out, true, "Job/step already completing or completed");
	if (job->pending() && e.node[0] && !start_there(*job, e.node, out))
		return;
	watcher_.job_ended_by_us(*job, e);
	job->by_us = true;
	std::uint32_t status = e.exit_code;
	if (e.state == SK8_JOB_FAILED && status == 0)
		status = 1 << 8;
	finish(*job, e.state, status, 0);
}

void ModelSlurm::exclude(std::uint32_t id, std::int64_t submit_time, const char *mark, const char *nodes,
			 sk8_outcome &out)
{
	out = {};
	SlurmJob *job = find_pending(id, submit_time, mark, out);
	if (!job)
		return;
	job->excluded = nodes;
	changed();
}

struct Ops {
	static const sk8_slurm_ops table;
};

const sk8_slurm_ops Ops::table = {
	.active = [] { return the && the->up(); },
	.last_job_update = [] { return the->jobs_stamp_; },
	.last_node_update = [] { return the->nodes_stamp_; },
	.lock = [](bool) { the->locked_ = true; },
	.unlock = [](bool, bool changed, bool masks) {
		the->locked_ = false;
		if (masks)
			the->nodes_stamp_ = the->wall();
		if (changed)
			the->updated();
	},
	.in_backfill = [] { return false; },
	.submit = [](const sk8_submit *s, sk8_outcome *out) { the->submit(*s, *out); },
	.start = [](std::uint32_t id, std::int64_t t, const char *mark, const char *node,
		    sk8_outcome *out) { the->start(id, t, mark, node, *out); },
	.end = [](const sk8_end *e, sk8_outcome *out) { the->end(*e, *out); },
	.exclude = [](std::uint32_t id, std::int64_t t, const char *mark, const char *nodes,
		      sk8_outcome *out) { the->exclude(id, t, mark, nodes, *out); },
	.spare = [](std::uint32_t id, std::int64_t t, const char *mark, sk8_outcome *out) { the->spare(id, t, mark, *out); },
	.find = [](std::uint32_t id, sk8_job *job) {
		const SlurmJob *found = the->find(id);
		if (found)
			*job = the->view(*found);
		return found != nullptr;
	},
	.each_job = [](void (*f)(void *, const sk8_job *), void *arg) {
		for (const auto &[id, job] : the->jobs_) {
			const sk8_job v = the->view(job);
			if (!job.batch())
				f(arg, &v);
		}
	},
	.each_node = [](void (*f)(void *, const sk8_node *), void *arg) {
		for (const auto &[name, n] : the->select_.nodes) {
			const sk8_node node = the->view(name, n);
			f(arg, &node);
		}
	},
	.find_node = [](const char *name, sk8_node *node) {
		auto it = the->select_.nodes.find(name);
		if (it != the->select_.nodes.end())
			*node = the->view(it->first, it->second);
		return it != the->select_.nodes.end();
	},
	.saves_power = [] { return false; },
	.keep_masked_nodes_up = [] {},
	.change_node = [](const sk8_node_change *c, sk8_outcome *out) { the->change_node(*c, *out); },
	.change_features = [](const sk8_feature_change *c, sk8_outcome *out) { the->change_features(*c, *out); },
	.each_native = [](void (*f)(void *, const sk8_native_job *), void *arg) {
		for (const auto &[id, job] : the->jobs_)
			if (job.batch() && (job.running() || job.completing)) {
				const sk8_native_job v = the->native_view(job);
				f(arg, &v);
			}
	},
	.with_native = [](std::uint32_t id, void (*f)(void *, const sk8_native_job *), void *arg) {
		const SlurmJob *job = the->find(id);
		if (!job || !job->batch() || !(job->running() || job->completing))
			return;
		const sk8_native_job v = the->native_view(*job);
		f(arg, &v);
	},
	.nodes_registered = [](std::uint32_t) { return true; },
	.end_native = [](const sk8_native_end *e, sk8_outcome *out) { the->end_native(*e, *out); },
	.set_devices = [](const sk8_device_change *c, sk8_outcome *out) {
		*out = {};
		if (const char *problem = the->set_devices(*c))
			fail(*out, true, problem);
	},
	.tell_refusal = [](const sk8_gate_answer *a) { return the->tell_refusal(*a); },
	.answer_gate = [](const sk8_gate_answer *a) { the->answer_gate(*a); },
};

const sk8_slurm_ops &ModelSlurm::ops()
{
	return Ops::table;
}

} // namespace sk8::sim
