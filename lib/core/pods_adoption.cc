// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods that run, or have run, without a running job: somebody else bound them, or
// slurmctld was killed and Slurm's saved state does not know of their job, or not
// that it had started.
#include "lib/core/pods_controller.h"

#include <algorithm>
#include <iterator>

#include "lib/base/text.h"
#include "lib/core/annotations.h"
#include "lib/core/names.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

const char *const PodsController::outgrown_text = "its pod requests more than before";

// Where it runs, or may do so soon.
std::string PodsController::node_of(const Entry &e) const
{
	return e.bound_node.empty() ? ports_.holds.node_of(e.key) : e.bound_node;
}

// Whole ones, of so many hardware threads.
static std::uint32_t cores_for(std::uint32_t cpus, const NodeView &nodes, const std::string &node)
{
	const std::uint32_t tpc = nodes.threads_per_core(node);
	return (cpus + tpc - 1) / tpc;
}

// What a mask that stands for nothing any more still hides is free for jobs from the next pass of the scheduler on.
void PodsController::wake_if_masks_can_go()
{
	if (ports_.holds.masks_can_go())
		ports_.slurm.wake_scheduler();
}

// It has no node, and may get this one by a Binding that nobody knows the end of. What its owner has made of it since may not fit beside
// others that are kept there, for ever: he alone can end that.
void PodsController::tell_kept(const Entry &e, const std::string &why)
{
	if (!e.pod || !e.bound_node.empty() || e.failures <= 3)
		return;
	reports_.condition(e.pod, {std::string(names::pending_reason),
				   "it may have been bound to node " + one_line(node_of(e), 64) + ", so its job can start only there, and now it cannot: " +
					   one_line(why, 128) + "; who deletes the pod frees what it holds"});
}

// What the pod holds where it runs, as well as that can be told without its job.
Hold PodsController::hold_of_running(const Entry &e, const Result<JobRequest> &request) const
{
	Hold h;
	h.key = e.key;
	h.node = node_of(e);
	h.more_cores = cores_for(request ? request->cpus : whole_cpus(e.pod->request.milli_cpu), nodes_, h.node);
	h.memory_mb = request ? request->memory_mb : whole_mib(e.pod->request.memory_bytes);
	h.gres = gres_of(e.pod->request.extended, settings_.resources);
	std::ranges::move(claimed_there(e, Whose::own), std::back_inserter(h.gres));
	h.shared = claimed_there(e, Whose::shared);
	return h;
}

// A pod that may have processes holds what they use, whoever bound it and whatever
// became of the saved ledger: it counts when its job ends before it does.
void PodsController::hold_what_runs(Entry &e)
{
	const auto known = ports_.holds.held_by(e.key);
	const std::string held = known ? known->hold.node : "";
	const bool as_foreign = known && known->hold.foreign; // of a time when its scheduler was none of ours: it is the other controller's
	if (held == e.bound_node && !as_foreign) {
		save_what_its_job_got(e);
		return hold_what_it_asks_for(e);
	}
	std::optional<Hold> hold;
	if (e.job && e.job->running() && e.job->node == e.bound_node)
		hold = ports_.holds.place(e.key, e.job->ref);
	if (!hold) {
		hold = hold_of_running(e, make_request(e.key, *e.pod, settings_, ports_.lookup));
		ports_.holds.adopt(*hold);
		log_pod(warning, e.key, job_id(e), "is on node %s without a running Slurm job: masked",
			e.bound_node.c_str());
	}
	ports_.journal.hold(*hold);
	hold_what_it_asks_for(e);
	if (!held.empty())
		ports_.slurm.wake_scheduler(); // what it held elsewhere is free, and may have been a mask
}

// What may have changed since its job was made.
void PodsController::hold_what_it_asks_for(Entry &e)
{
	hold_what_it_claims(e);
	hold_what_it_requests(e);
}

// Of its hold, which is where its job is, or it is itself.
std::optional<Hold> PodsController::set_request(const Entry &e)
{
	const std::uint32_t cores = cores_for(whole_cpus(e.pod->request.milli_cpu), nodes_, ports_.holds.node_of(e.key));
	return ports_.holds.set_request(e.key, cores, whole_mib(e.pod->request.memory_bytes));
}

// For who reads the saved ledger when the node's cores have other threads.
std::optional<Hold> PodsController::set_cpus(const Entry &e)
{
	return ports_.holds.set_cpus(e.key, whole_cpus(e.pod->request.milli_cpu));
}

// A pod can be resized in place, which its job cannot: that is in Slurm what was asked for it. Its kubelet asks nobody.
void PodsController::hold_what_it_requests(Entry &e)
{
	const auto hold = set_request(e), with_cpus = set_cpus(e);
	if (with_cpus || hold)
		ports_.journal.hold(with_cpus ? *with_cpus : *hold);
	if (!hold)
		return;
	log_pod(info, e.key, job_id(e), "requests other resources than before: on node %s it holds %zu cores and %llu MiB",
		hold->node.c_str(), static_cast<std::size_t>(hold->core_count()), static_cast<unsigned long long>(hold->memory_mb));
	wake_if_masks_can_go();
}

// Before it runs: its job can be made anew. Of a job that an administrator or a plugin of the site makes smaller than it was
// asked for they know why.
bool PodsController::outgrows_its_job(const Entry &e) const
{
	if (!e.asked.cpus && !e.job->running())
		return false;
	const auto threads = static_cast<std::uint32_t>(e.job->cores.size()) * nodes_.threads_per_core(e.job->node);
	const std::uint64_t memory_mb = std::max(e.asked.memory_mb, e.job->memory_mb); // 0: Slurm does not count it
	return whole_cpus(e.pod->request.milli_cpu) > std::max(e.asked.cpus, threads) ||
	       (memory_mb && whole_mib(e.pod->request.memory_bytes) > memory_mb);
}

// Its claims may be heard of after the pod; and its job may have other devices, which correct_devices() sees to, or none, if
// Slurm has forgotten all but one from before the claims had any.
void PodsController::hold_what_it_claims(Entry &e)
{
	if (e.pod->resource_claims.empty())
		return;
	if (const auto hold = ports_.holds.add_devices(e.key, claimed_there(e, Whose::own)))
		ports_.journal.hold(*hold);
	if (const auto hold = ports_.holds.add_shared(e.key, claimed_there(e, Whose::shared)))
		ports_.journal.hold(*hold);
}

// An adopted pod's job may start when nobody waits for the answer any more, on other cores than the
// saved ledger says: a slurmctld that starts when that job has ended would mask those.
void PodsController::save_what_its_job_got(const Entry &e)
{
	if (!e.job || !e.job->running())
		return;
	const auto hold = ports_.holds.settle(e.key, e.job->ref, !all_devices_known(e)); // its driver may be away
	if (!hold)
		return;
	ports_.journal.hold(*hold);
	wake_if_masks_can_go();
}

// It runs, and its owner would look for its job in vain: the log is the administrator's.
void PodsController::tell_jobless(Entry &e, const std::string &why)
{
	if (e.bound_node.empty())
		return;
	const std::string text = "it runs on node " + e.bound_node + " without a Slurm job: " + why;
	if (e.told == text)
		return;
	e.told = text;
	reports_.event(e.key, {true, std::string(names::event_refused), text});
}

// It was about to share devices, and who had them is gone: kube-controller-manager has freed its claim. That it holds them must
// not keep the job away that its claims want now.
void PodsController::hold_alone(const Entry &e)
{
	const auto claims = e.bound_node.empty() && !e.pod->resource_claims.empty() ? claims_of(e) : Result<PodClaims>(Error{});
	if (!claims)
		return;
	if (const auto hold = ports_.holds.keep_alone(e.key, claims->devices))
		ports_.journal.hold(*hold);
}

// Of a job that waited before slurmctld ended nobody knows what it asks for, and where that is not what the claims have now it
// would never start where its pod is.
static bool may_ask_for_other_devices(const kube::Pod &pod, const Job &job, bool known)
{
	return job.state == SK8_JOB_PENDING && !pod.resource_claims.empty() && !known;
}

// Where it is kept no job can be made: another pod that was about to be bound there when slurmctld ended may be kept with the same
// devices, and each of the two would wait for the other.
void PodsController::keep_no_longer(Entry &e)
{
	log_pod(info, e.key, job_id(e), "it cannot have been bound to node %s: its resource claims have no devices for it", node_of(e).c_str());
	free_hold(e);
	succeeded(e);
	if (e.job && !e.job->ended())
		return queue_anew(e, "its pod was not bound");
	sync(e.key.uid);
}

// Times; by then a kubelet has ended what a restored etcd, unknown to a slurmctld that was not there, took the node from.
static constexpr int tries_to_keep = 6;

void PodsController::adopt(Entry &e)
{
	if (e.failures >= tries_to_keep && cannot_have_been_bound(e))
		return keep_no_longer(e);
	hold_alone(e);
	auto request = make_request(e.key, *e.pod, settings_, ports_.lookup);
	if (!e.job || e.job->ended())
		drop_job(e);
	else if (e.bound_node.empty() && e.failures > 3 && may_ask_for_other_devices(*e.pod, *e.job, e.asked_for_claims.has_value())) {
		e.age = e.job->age;
		return end_job(e, {SK8_JOB_CANCELLED, 0, "its resource claims may want other devices now"});
	}

	if (!request) {
		tell_jobless(e, request.error().message);
		back_off(e, request.error().message, Millis(30'000));
		return plan_retry(e);
	}
	if (auto gres = adopted_gres(e, request->gres); gres) {
		request->gres = std::move(*gres);
		request->devices = claimed_there(e, Whose::own);
	} else {
		back_off(e, gres.error().message, Millis(30'000)); // a change of a claim leads here at once
		return plan_retry(e);
	}
	request->required_node = node_of(e);
	request->age = age_of(e);
	send_submit(e, std::move(*request)); // starts the pending job, if it has one
}

static AnnotationChanges untrue_annotations(const kube::Pod &pod, const Job &job)
{
	const auto value = [](const std::map<std::string, std::string> &of, const std::string &name) {
		const auto it = of.find(name);
		return it == of.end() ? std::nullopt : std::optional(it->second);
	};
	const std::map<std::string, std::string> truth = job_annotations(job);
	AnnotationChanges out;
	for (const std::string_view known : names::of_binding) {
		const std::string name(known);
		if (auto wanted = value(truth, name); wanted != value(pod.meta.annotations, name))
			out.emplace(name, std::move(wanted));
	}
	return out;
}

// What its Binding said is true no more when it was adopted, or was bound by somebody else: people
// look for its job there, and so does the agent of its node for its cores. An annotation that
// somebody goes on changing is put right more and more seldom.
void PodsController::annotate(Entry &e)
{
	if (e.annotating.under_way || !e.pod || e.pod->node_name.empty() || e.pod->meta.deleting)
		return;
	const AnnotationChanges changes = untrue_annotations(*e.pod, *e.job);
	if (changes.empty())
		return;
	e.annotating.under_way = true;
	ports_.kube.annotate_pod(e.key, changes, [this, uid = e.key.uid, changes](const KubeReply &r) {
		annotated(uid, changes, r);
	});
}

static kube::PodPtr with_annotations(const kube::Pod &pod, const AnnotationChanges &changes)
{
	auto out = std::make_shared<kube::Pod>(pod);
	for (const auto &[name, value] : changes)
		if (value)
			out->meta.annotations[name] = *value;
		else
			out->meta.annotations.erase(name);
	return out;
}

void PodsController::annotated(const std::string &uid, const AnnotationChanges &changes, const KubeReply &r)
{
	auto it = entries_.find(uid);
	if (it == entries_.end())
		return;
	Entry &e = it->second;
	if (r.ok()) {
		forget_passing_denials(e);
		if (e.pod)
			e.pod = with_annotations(*e.pod, changes); // the watch will say so later
	} else {
		log_pod(verbose, e.key, job_id(e), "its annotations cannot be put right: %s", r.error.c_str());
		tell_denied(e, r);
	}
	ports_.timer.after(std::max(retry_delay(e.annotating.times++), r.retry_after.value_or(Millis(0))), [this, uid] {
		auto found = entries_.find(uid);
		if (found == entries_.end())
			return;
		found->second.annotating.under_way = false;
		sync(uid);
	});
}

// A node that has just come back registers within seconds.
static constexpr Millis longest_wait_for_node{60'000};

// A pod that has run and whose job never did, as far as Slurm knows: only a job that
// ran can have the pod's exit code, so it starts where the pod was, and ends. After a
// while without success the truth is said in its comment.
JobEnd PodsController::end_where_it_ran(Entry &e, JobEnd end)
{
	if (e.bound_node.empty() || e.job->running() || end.state == SK8_JOB_CANCELLED)
		return end;
	if (e.ending_since == Millis(0))
		e.ending_since = ports_.timer.now();
	if (ports_.timer.now() - e.ending_since < longest_wait_for_node) {
		end.node = e.bound_node;
		return end;
	}
	if (end.comment.empty())
		end.comment = "the pod ended with exit code 0";
	log_pod(warning, e.key, job_id(e), "Slurm has forgotten that its job ran on node %s and cannot start it there "
		"again: it is cancelled, with a comment that says how the pod ended", e.bound_node.c_str());
	return end;
}

} // namespace sk8::core
