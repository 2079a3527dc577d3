// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the watches and the Slurm thread tell of pods, nodes and jobs: it is written down,
// and pods_controller.cc decides what follows.
#include "lib/core/pods_controller.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/core/foreign_pod.h"
#include "lib/core/placement.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

// ---- Kubernetes ----

void PodsController::set_pod(Entry &e, const kube::PodPtr &pod)
{
	e.absent = e.doubted = false;
	const bool other_volumes = e.pod && e.pod->claims != pod->claims;
	if (other_volumes)
		e.volumes_known = false;
	// A new version may mend what was refused; the settings' part stays.
	if (e.pod && e.pod->meta.resource_version != pod->meta.resource_version &&
	    e.op == Op::none && e.pod->meta.annotations != pod->meta.annotations)
		e.refusal.clear();
	e.pod = pod;
	e.mirror |= is_mirror(*pod);
	e.made_from = resubmitted_from(*pod);
	resubmits_.seen(e.key, e.made_from);
	see_deletion(e);
	if (e.deleted_alive_at == 0 && deleted_alive(*pod))
		e.deleted_alive_at = deletion_asked_at(*pod);
	if (!pod->node_name.empty()) {
		e.proved_over |= kubelet_reports_over(*pod); // also before the start, where sync() decides nothing
		e.bound_node = pod->node_name;
		e.binding.overdue = false;
		e.lost_node = false;
		resubmits_.settled(e.key, e.made_from); // its job runs
	}
	if (e.bound_node.empty())
		forget_release(e); // what it gets from now on was not what the person meant
}

void PodsController::pods_replaced(const std::string &scheduler_name, const std::vector<kube::PodPtr> &pods)
{
	std::set<std::string> listed;
	for (const auto &pod : pods) {
		listed.insert(pod->meta.uid);
		Entry &e = entry(key_of(settings_.name, pod->meta));
		const bool runs_again = older_than_known(e, *pod);
		set_pod(e, pod);
		e.watched = true;
		if (runs_again || (pod->node_name.empty() && !e.bound_node.empty()) || comes_back(*pod))
			doubt(e); // the list is older than its end or its Binding, or etcd is: sync() looks
		e.delete_sent &= pod->meta.deleting; // or older than our DELETE, which may come twice
	}
	for (auto &[uid, e] : entries_)
		if (e.pod && e.pod->scheduler_name == scheduler_name && !listed.contains(uid)) {
			e.pod.reset(); // not in the list is no proof: sync() looks
			e.watched = false;
		}
	vanished_.clear();
	lists_.insert(scheduler_name);
	maybe_start();
	sync_all();
}

// The watch may be behind what a GET has told, even from before the Binding: that nothing of it runs any
// more stays true. What a backup of etcd brings back comes in a list first.
bool PodsController::older_than_known(const Entry &e, const kube::Pod &news)
{
	return e.proved_over && e.pod && kubelet_reports_over(*e.pod) && !kubelet_reports_over(news);
}

void PodsController::pod_changed(const kube::PodPtr &pod)
{
	Entry &e = entry(key_of(settings_.name, pod->meta));
	e.watched = true;
	const bool still_doubted = e.doubted && pod->node_name.empty() && !e.bound_node.empty();
	if (still_doubted || vanished_.contains(pod->meta.uid)) {
		e.absent = false;
		doubt(e); // news from before that GET would bring back what it held
	} else if (!older_than_known(e, *pod)) {
		set_pod(e, pod);
	}
	sync(pod->meta.uid);
}

void PodsController::pod_removed(const kube::PodPtr &last)
{
	Entry &e = entry(key_of(settings_.name, last->meta));
	e.watched = false;
	e.outdated = e.op == Op::looking;
	// A GET said so before, and whatever it held has been settled.
	const bool settled = vanished_.erase(last->meta.uid) > 0 && !ports_.holds.held(e.key);
	set_pod(e, last);
	// Its last state may prove that it is over (release) or never ran (gone); if
	// not, the absence is checked and then it is lost.
	const bool over = kubelet_reports_over(*last);
	// Without node at its end, no Binding that was sent did arrive or can. Of an
	// object that was rescued only the name is known, and that proves nothing.
	const bool never_bound = last->node_name.empty() && !last->scheduler_name.empty() && !e.lost_node;
	const bool had_node = !e.bound_node.empty() || (ports_.holds.held(e.key) && !never_bound);
	if (over || settled || !had_node) {
		free_hold(e);
		e.bound_node.clear();
		e.absent = true;
		if (!over)
			e.pod.reset();
	} else {
		e.pod.reset();
	}
	sync(e.key.uid);
}

// How it has ended a GET tells, if its object is still there.
void PodsController::over_elsewhere(const PodKey &key)
{
	const auto it = entries_.find(key.uid);
	if (it == entries_.end())
		return;
	it->second.proved_over = true;
	doubt(it->second);
	sync(key.uid);
}

// What NodeUse counts against.
void PodsController::set_limits(const kube::Node &node)
{
	use_changed_ |= use_.set_slots(node.meta.name, node.allocatable_pods);
	use_.set_storage(node.meta.name, ephemeral_storage(node.allocatable));
}

void PodsController::nodes_replaced(const std::vector<kube::NodePtr> &nodes)
{
	for (const auto &n : nodes)
		set_limits(*n);
	std::vector<std::string> others; // have other devices
	for (const auto &n : nodes)
		if (devices_.read(*n))
			others.push_back(n->meta.name);
	if (nodes_.replace(nodes))
		nodes_changed();
	for (const auto &name : others)
		sync_node(name);
	for (const auto &n : nodes)
		hear_agent(*n);
}

bool PodsController::node_changed(const kube::NodePtr &node)
{
	set_limits(*node);
	const bool placing = nodes_.change(node);
	if (placing)
		nodes_changed();
	if (devices_.read(*node))
		sync_node(node->meta.name);
	hear_agent(*node);
	return placing;
}

void PodsController::node_removed(const kube::NodePtr &last)
{
	if (nodes_.remove(last->meta.name))
		nodes_changed();
}

void PodsController::nodes_changed()
{
	claim_nodes_.clear();
	nodes_are_news_ = true;
	maybe_start();
}

// Once for all nodes that a turn has told of: every pod that waits is looked at. Whoever asks NodeView before that has the news.
void PodsController::look_at_nodes_again()
{
	for (auto &[uid, e] : entries_) {
		if (e.refusal_by_nodes) {
			e.refusal.clear();
			e.refusal_by_nodes = false;
		}
	}
	use_changed_ = true;
}

// ---- Slurm ----

bool PodsController::slurm_nodes(const std::vector<SlurmNode> &nodes)
{
	const bool others = nodes_.set_slurm(nodes), started = started_;
	if (others)
		nodes_changed();
	if (others && started)
		sync_all(); // what is bound, too: a core may have other threads, so that pods need another number of them
	return others;
}

// Only the hand of an administrator, or two slurmctlds, give a pod a second job. The one
// that runs where the pod is stands for it; else one that runs; else the newer one. Of two
// that run where the pod is the older one: the other came there when the pod was there already.
bool PodsController::stands_before(const Entry &e, const Job &job, const Job &other) const
{
	auto ends = [&e](const Job &j) { return std::ranges::find(e.others_ending, j.ref) != e.others_ending.end(); };
	if (ends(job) != ends(other))
		return ends(other);
	const std::string node = node_of(e);
	auto rank = [&node](const Job &j) { return !j.running() ? 0 : j.node != node ? 1 : 2; };
	if (rank(job) != rank(other))
		return rank(job) > rank(other);
	const bool newer = std::tie(job.ref.submit_time, job.ref.id) > std::tie(other.ref.submit_time, other.ref.id);
	return rank(job) == 2 ? !newer : newer;
}

void PodsController::end_others(Entry &e)
{
	if (e.others.empty())
		return;
	// Since they came the one that stood for the pod may have ended, Slurm may have forgotten it,
	// or Kubernetes may have told where the pod is.
	if (!e.job || e.job->ended())
		drop_job(e);
	for (const JobPtr &job : std::exchange(e.others, {}))
		set_job(e, job, ports_.timer.now());
	for (const JobPtr &job : std::exchange(e.others, {})) {
		const JobRef ref = job->ref;
		if (e.job->ref == ref)
			continue;
		if (std::ranges::find(e.others_ending, ref) != e.others_ending.end())
			continue;
		e.others_ending.push_back(ref);
		log_pod(warning, e.key, job_id(e), "job %u is another one for this pod and is ended", ref.id);
		ports_.slurm.end(e.key, ref, {SK8_JOB_CANCELLED, 0, "job " + std::to_string(job_id(e)) + " stands for this pod"},
				 [this, uid = e.key.uid, job](const SlurmReply &r) {
					 auto it = entries_.find(uid);
					 if (it == entries_.end() || r.ok || r.fatal)
						 return;
					 std::erase(it->second.others_ending, job->ref);
					 it->second.others.push_back(job); // asked again when anything happens to the pod
				 });
	}
}

void PodsController::set_job(Entry &e, const JobPtr &job, Millis seen_at)
{
	const bool other = e.job && e.job->ref != job->ref;
	std::erase_if(e.others, [&](const JobPtr &known) { return known->ref == job->ref; });
	if (job->ended())
		std::erase(e.others_ending, job->ref);
	// Late news of an older job: a live one is never replaced by a dead one, nor
	// a newer one by an older one.
	if (other && !job->ended() && !e.job->ended()) {
		const bool better = stands_before(e, *job, *e.job);
		e.others.push_back(better ? e.job : job);
		if (!better)
			return;
	} else if (other && job->ended() && !e.job->ended()) {
		return;
	}
	if (e.job && !other && (e.job->ended() || (e.job->running() && job->state == SK8_JOB_PENDING)))
		return; // states only go forward; a hook may overtake an answer
	if (!e.job || other || classify(e.job.get(), false) != classify(job.get(), false)) {
		e.job_seen_at = seen_at;
		e.delete_sent = false;
		e.delete_latency_told = false;
		e.binding = {};
	}
	if (!e.job || other) {
		e.excluded = job->excluded_nodes;
		e.exclusion_refused = false;
	}
	const bool starts = started_ && job->running() && (!e.job || other || !e.job->running());
	// A job that has ended keeps the node it had.
	if (job->ended() && job->node.empty() && e.job && !other) {
		Job ended = *job;
		ended.node = e.job->node;
		e.job = share(std::move(ended));
	} else {
		e.job = job;
	}
	if (!starts)
		return;
	log_pod(info, e.key, job_id(e), "started on node %s", job->node.c_str());
	if (e.op != Op::none)
		return;
	// What adopt() was to try again has come about by itself, also where it could not ask for a job yet: what comes next with this
	// one, its preemption or its end, is not to wait for that.
	if (std::exchange(e.adopting, false) || has_its_job_there(e))
		succeeded(e);
}

void PodsController::jobs_replaced(const std::vector<std::pair<PodKey, JobPtr>> &jobs)
{
	std::set<std::pair<std::string, std::uint32_t>> listed; // an id may be another pod's by now
	for (const auto &[key, job] : jobs) {
		if (key.cluster != settings_.name)
			continue;
		listed.emplace(key.uid, job->ref.id);
		set_job(entry(key), job, ports_.timer.now());
	}
	for (auto &[uid, e] : entries_) {
		if (e.job && !e.job->ended() && !listed.contains({uid, e.job->ref.id}))
			drop_job(e); // as job_purged()
	}
	jobs_synced_ = true;
	maybe_start();
	sync_all();
}

void PodsController::job_changed(const PodKey &key, const JobPtr &job, Millis seen_at)
{
	set_job(entry(key), job, seen_at);
	sync(key.uid);
}

void PodsController::job_purged(const PodKey &key, JobRef ref)
{
	auto it = entries_.find(key.uid);
	if (it == entries_.end() || !it->second.job || it->second.job->ref != ref)
		return;
	// That Slurm has forgotten a job is no order to end its pod: a waiting pod gets
	// another job, a bound one is adopted.
	if (!it->second.job->ended())
		drop_job(it->second);
	sync(key.uid);
}

} // namespace sk8::core
