// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/engine/model_slurmctld.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <set>

#include "lib/base/node_list.h"

namespace sk8::test {

static ModelSlurmctld *the = nullptr;

ModelSlurmctld::ModelSlurmctld(std::vector<std::string> nodes, int cores)
	: nodes_(std::move(nodes)), cores_(cores)
{
	std::sort(nodes_.begin(), nodes_.end());
	for (const auto &n : nodes_)
		used_[n].assign(static_cast<std::size_t>(cores), false);
	the = this;
}

ModelSlurmctld::~ModelSlurmctld()
{
	{
		std::lock_guard lock(mutex_);
		stop_ = true;
	}
	changed_.notify_all();
	if (scheduler_.joinable())
		scheduler_.join();
}

void ModelSlurmctld::start()
{
	std::lock_guard lock(mutex_);
	sk8_on_node_init(false);
	active_ = true;
	sk8_on_reconfigure();
	scheduler_ = std::thread([this] { schedule(); });
}

void ModelSlurmctld::shutdown()
{
	active_ = false;
	sk8_on_shutdown();
}

sk8_node ModelSlurmctld::view(const std::string &node)
{
	sk8_node n{};
	n.name = node.c_str();
	n.cpus = n.cores = static_cast<std::uint32_t>(cores_);
	n.threads_per_core = 1;
	n.memory_mb = 1 << 20;
	n.usable = true;
	n.reason = drained_[node].c_str();
	n.reason_uid = *n.reason ? 0 : SK8_NO_UID; // SlurmUser is root here
	n.drain = *n.reason;
	n.features = n.active_features = features_[node].c_str();
	return n;
}

sk8_job ModelSlurmctld::view(const ModelJob &job) const
{
	sk8_job v{};
	v.job_id = job.id;
	v.submit_time = job.submit_time;
	v.mark = job.mark.c_str();
	v.state = job.state;
	v.reason = job.reason.c_str();
	v.partition = "batch";
	v.excluded_nodes = job.excluded.c_str();
	v.priority = 1000 - job.id % 1000;
	v.ended_by = job.ended_by;
	v.ended_by_us = job.by_us;
	v.node = job.node.c_str();
	v.core_count = static_cast<std::uint32_t>(job.cores.size());
	v.cores = job.cores.data();
	v.memory_mb = job.memory_mb;
	return v;
}

// ---- scheduling ----

bool ModelSlurmctld::try_start(ModelJob &job, const std::string &node)
{
	std::vector<bool> busy = used_.at(node);
	if (const sk8_masks *masks = sk8_masks_get()) {
		for (std::size_t i = 0; i < masks->count; i++) {
			const sk8_mask &m = masks->mask[i];
			if (node != m.node)
				continue;
			for (std::uint32_t c = 0; c < m.core_count; c++)
				busy[m.cores[c]] = true;
			std::uint32_t more = m.whole ? static_cast<std::uint32_t>(cores_) : m.more_cores;
			for (std::size_t c = busy.size(); more > 0 && c-- > 0;) {
				if (!busy[c]) {
					busy[c] = true;
					more--;
				}
			}
		}
		sk8_masks_put(masks);
	}
	std::vector<std::uint16_t> take;
	for (std::size_t c = 0; c < busy.size() && take.size() < job.cpus; c++)
		if (!busy[c])
			take.push_back(static_cast<std::uint16_t>(c));
	if (take.size() < job.cpus)
		return false;
	for (auto c : take)
		used_.at(node)[c] = true;
	job.cores = std::move(take);
	job.node = node;
	job.state = SK8_JOB_RUNNING;
	updated_ = time(nullptr);
	const sk8_job v = view(job);
	sk8_on_job_start(&v);
	return true;
}

void ModelSlurmctld::schedule()
{
	std::unique_lock lock(mutex_);
	while (!stop_) {
		for (auto &[id, job] : jobs_) {
			if (job.state != SK8_JOB_PENDING)
				continue;
			for (const auto &node : nodes_)
				if ((job.pinned.empty() || job.pinned == node) &&
				    !has_node(job.excluded, node) && try_start(job, node))
					break;
		}
		changed_.wait(lock, [this] { return stop_ || wake_; });
		wake_ = false;
	}
}

void ModelSlurmctld::finish(ModelJob &job, sk8_job_state state)
{
	const bool ran = job.state == SK8_JOB_RUNNING;
	job.state = state;
	updated_ = time(nullptr);
	if (ran) {
		const sk8_job v = view(job);
		sk8_on_job_fini(&v); // before anything is free
		for (auto c : job.cores)
			used_.at(job.node)[c] = false;
	}
	wake_ = true;
	changed_.notify_all();
}

void ModelSlurmctld::cancel_one(std::mt19937 &random)
{
	std::lock_guard lock(mutex_);
	std::vector<ModelJob *> live;
	for (auto &[id, job] : jobs_)
		if (job.state < SK8_JOB_COMPLETED)
			live.push_back(&job);
	if (live.empty())
		return;
	ModelJob &job = *live[random() % live.size()];
	job.ended_by = 1000;
	finish(job, SK8_JOB_CANCELLED);
}

// ---- what the engine calls ----

static void busy(sk8_outcome &out)
{
	out.rc = 1;
	std::strcpy(out.text, "Requested nodes are busy");
}

void ModelSlurmctld::submit(const sk8_submit &s, sk8_outcome &out)
{
	out = {};
	ModelJob job;
	job.id = next_++;
	job.mark = s.mark;
	job.excluded = s.excluded_nodes;
	job.cpus = s.cpus;
	job.memory_mb = s.memory_mb;
	job.submit_time = time(nullptr);
	job.reason = "Resources";
	if (s.required_node[0] && !try_start(job, s.required_node)) {
		return busy(out);
	}
	out.job_id = job.id;
	out.submit_time = job.submit_time;
	out.running = job.state == SK8_JOB_RUNNING;
	jobs_[job.id] = std::move(job);
}

void ModelSlurmctld::start_there(std::uint32_t id, const char *node, sk8_outcome &out)
{
	out = {};
	ModelJob &job = jobs_.at(id);
	job.pinned = node;
	if (!try_start(job, node))
		busy(out);
}

void ModelSlurmctld::end(const sk8_end &e, sk8_outcome &out)
{
	out = {};
	auto it = jobs_.find(e.job_id);
	if (it == jobs_.end() || it->second.mark != e.mark || it->second.submit_time != e.submit_time ||
	    it->second.state >= SK8_JOB_COMPLETED) {
		out.rc = 1;
		out.fatal = true;
		std::strcpy(out.text, "Invalid job id specified");
		return;
	}
	if (it->second.state == SK8_JOB_PENDING && e.node[0] && !try_start(it->second, e.node))
		return busy(out);
	it->second.by_us = true;
	finish(it->second, e.state);
}

const sk8_slurm_ops &ModelSlurmctld::ops()
{
	static const sk8_slurm_ops table = {
		.active = [] { return the->active_.load(); },
		.last_job_update = [] { return the->updated_.load(); },
		.last_node_update = [] { return the->masked_.load(); },
		.lock = [](bool) { the->mutex_.lock(); },
		.unlock = [](bool, bool changed, bool masks) {
			if (changed)
				the->wake_ = true;
			if (masks)
				the->masked_ = time(nullptr);
			the->mutex_.unlock();
			if (changed)
				the->changed_.notify_all();
		},
		.in_backfill = [] { return false; },
		.submit = [](const sk8_submit *s, sk8_outcome *out) { the->submit(*s, *out); },
		.start = [](std::uint32_t id, std::int64_t, const char *, const char *node, sk8_outcome *out) {
			the->start_there(id, node, *out);
		},
		.end = [](const sk8_end *e, sk8_outcome *out) { the->end(*e, *out); },
		.exclude = [](std::uint32_t id, std::int64_t, const char *, const char *nodes, sk8_outcome *out) {
			*out = {};
			the->jobs_.at(id).excluded = nodes;
		},
		.spare = [](std::uint32_t, std::int64_t, const char *, sk8_outcome *out) { *out = {}; }, // it preempts nobody
		.find = [](std::uint32_t id, sk8_job *job) {
			auto it = the->jobs_.find(id);
			if (it == the->jobs_.end())
				return false;
			*job = the->view(it->second);
			return true;
		},
		.each_job = [](void (*f)(void *, const sk8_job *), void *arg) {
			for (const auto &[id, job] : the->jobs_) {
				const sk8_job v = the->view(job);
				f(arg, &v);
			}
		},
		.each_node = [](void (*f)(void *, const sk8_node *), void *arg) {
			for (const auto &name : the->nodes_) {
				const sk8_node n = the->view(name);
				f(arg, &n);
			}
		},
		.find_node = [](const char *name, sk8_node *node) {
			const auto it = std::ranges::find(the->nodes_, name);
			if (it == the->nodes_.end())
				return false;
			*node = the->view(*it);
			return true;
		},
		.saves_power = [] { return false; },
		.keep_masked_nodes_up = [] {},
		.change_node = [](const sk8_node_change *c, sk8_outcome *out) {
			*out = {};
			out->rc = the->drained_[c->node] != c->expected;
			if (!out->rc)
				the->drained_[c->node] = c->action == SK8_NODE_RESUME ? "" : c->reason;
			the->updated_ = time(nullptr);
		},
		.change_features = [](const sk8_feature_change *c, sk8_outcome *out) {
			*out = {};
			out->rc = the->features_[c->node] != c->expected;
			if (!out->rc)
				the->features_[c->node] = c->features;
			the->updated_ = time(nullptr);
		},
	};
	return table;
}

// ---- what tests look at ----

// mutex_ is held.
std::size_t ModelSlurmctld::ended_pods()
{
	std::set<std::string> ended;
	for (const auto &[id, job] : jobs_)
		if (job.state >= SK8_JOB_COMPLETED)
			ended.insert(job.mark);
	for (const auto &[id, job] : jobs_)
		if (job.state < SK8_JOB_COMPLETED)
			ended.erase(job.mark);
	return ended.size();
}

std::size_t ModelSlurmctld::completed()
{
	std::lock_guard lock(mutex_);
	return static_cast<std::size_t>(std::count_if(
		jobs_.begin(), jobs_.end(), [](const auto &j) { return j.second.state == SK8_JOB_COMPLETED; }));
}

bool ModelSlurmctld::wait_submitted(int seconds)
{
	std::unique_lock lock(mutex_);
	return changed_.wait_for(lock, std::chrono::seconds(seconds), [&] { return !jobs_.empty(); });
}

bool ModelSlurmctld::wait_ended(std::size_t pods, int seconds)
{
	std::unique_lock lock(mutex_);
	return changed_.wait_for(lock, std::chrono::seconds(seconds), [&] { return ended_pods() >= pods; });
}

} // namespace sk8::test
