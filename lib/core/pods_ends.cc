// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the table's effects do when a pod or its job has ended: the other one ends, what the
// pod held is free, and the object may go.
#include "lib/core/pods_controller.h"
#include "lib/core/pods_then.h"

#include <algorithm>
#include <utility>

#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

// ---- ends ----

JobEnd PodsController::end_because_of(Entry &e, PodState state)
{
	if (!e.declared.empty())
		return {SK8_JOB_CANCELLED, 0, "released by hand by " + e.declared};
	JobEnd end = end_of_pod(e.pod.get(), state, e.refusal, e.deleted_alive_at);
	if (e.job->preempted())
		end = end_of_preempted(std::move(end), state);
	return end_where_it_ran(e, std::move(end));
}

void PodsController::end_job(Entry &e, JobEnd end)
{
	e.op = Op::ending;
	e.ending = e.job->ref;
	reports_.stop(e.key.uid);
	log_pod(info, e.key, job_id(e), "its job is ended as %s, exit code %u:%u%s%s", job_state_name(end.state),
		end.exit_code >> 8 & 0xff, end.exit_code & 0x7f, end.comment.empty() ? "" : ": ",
		end.comment.c_str());
	ports_.slurm.end(e.key, e.job->ref, std::move(end),
			 then<SlurmReply>(e, Op::ending, &PodsController::ended));
}

void PodsController::ended(Entry &e, const SlurmReply &r)
{
	// fatal: Slurm has no such job (any more), which is what was wanted.
	if (!r.ok && !r.fatal)
		return back_off(e, "Slurm job could not be ended: " + r.text);
	if (e.failures == 0 || e.binding.since == Millis(0))
		succeeded(e);
	if (!e.job || e.job->ref != e.ending)
		return;
	// The hook has told of the end already; what is left is that it was our doing.
	Job over = *e.job;
	drop_job(e);
	if (!over.ended())
		over.state = SK8_JOB_CANCELLED;
	over.ended_by_us = true;
	e.job = share(std::move(over));
}

void PodsController::drop_job(Entry &e)
{
	if (e.bound_node.empty() && !may_arrive(e))
		use_changed_ |= use_.remove(e.key.uid);
	e.job.reset();
	e.excluded.clear();
	e.exclusion_refused = false;
	e.ending_since = Millis(0);
	e.binding = {};
	e.delete_sent = false;
}

static std::string how_ended(const Job &job)
{
	std::string text = job_state_name(job.state);
	if (job.state == SK8_JOB_CANCELLED && job.ended_by != SK8_NO_UID)
		text += " by " + user_text(job.ended_by);
	if (!job.reason.empty() && job.reason != "None")
		text += ", reason " + one_line(job.reason, 128);
	return text;
}

static std::string end_text(const Job &job)
{
	return "Slurm job " + std::to_string(job.ref.id) + " ended: " + how_ended(job);
}

// Seconds. A preempted job has what its partition or QOS gives (GraceTime), and so has its
// pod, whatever it asked for itself; the job of others has ended already.
std::int64_t PodsController::grace_of(const Entry &e) const
{
	const std::int64_t grace = e.job->preempted()
					   ? e.job->preempt_end - ports_.timer.wall_seconds()
					   : std::min(e.pod->grace_seconds, settings_.pods.kill_grace.count() / 1000);
	return std::max<std::int64_t>(1, grace); // 0 would be a force delete
}

// It is being deleted and has no longer than that. What is left of a preempted job's grace shrinks: a
// pod that is gone with it (or within what Slurm leaves a kubelet beyond it) is not deleted once more
// by an engine that starts in between. That would overwrite when it was asked to end, and what it
// ended of would seem to be its own doing.
static bool goes_in_time(const kube::Pod &pod, const Job &job, std::int64_t grace)
{
	static constexpr std::int64_t beyond = 5; // seconds
	return pod.meta.deleting && (pod.meta.deletion_grace_seconds <= grace ||
				     (job.preempted() && pod.meta.deletion_time <= job.preempt_end + beyond));
}

void PodsController::delete_pod(Entry &e)
{
	const kube::Pod &pod = *e.pod;
	const std::int64_t grace = grace_of(e);
	if (e.delete_sent || goes_in_time(pod, *e.job, grace))
		return;
	send_delete(e, grace, want_again(e));
	if (e.delete_latency_told)
		return;
	e.delete_latency_told = true;
	if (e.job->preempted())
		return tell_preemption(e, grace);
	metrics().fini_to_delete_ms.record(elapsed_ms(e.job_seen_at));
	log_pod(info, e.key, job_id(e), "deleted because its job ended: %s", how_ended(*e.job).c_str());
	reports_.event(e.key, {e.job->state != SK8_JOB_COMPLETED, std::string(names::event_job_ended),
			       end_text(*e.job) + "; the pod is deleted"});
}

// again: it is to be made again. An owner who has deleted it meanwhile, unseen by us, does not want that.
void PodsController::send_delete(Entry &e, std::int64_t grace, bool again)
{
	e.op = Op::deleting;
	e.delete_sent = true;
	ports_.kube.delete_pod(e.key, {grace, again ? e.pod->meta.resource_version : ""},
			       then<KubeReply>(e, Op::deleting, &PodsController::deleted));
}

void PodsController::tell_preemption(Entry &e, std::int64_t grace)
{
	const std::string text = "Slurm job " + std::to_string(e.job->ref.id) + " is preempted; the pod is deleted and has " +
				 std::to_string(grace) + " s to end";
	log_pod(info, e.key, job_id(e), "%s", text.c_str());
	reports_.event(e.key, {true, std::string(names::event_preempted), text});
}

void PodsController::deleted(Entry &e, const KubeReply &r)
{
	if (r.ok()) {
		e.delete_arrived = true;
		resubmits_.arrived(e.key.uid);
		return succeeded(e);
	}
	e.delete_sent = false;
	e.delete_arrived |= r.unsure();
	forget_refused_wish(e);
	see_deletion(e);
	if (r.status == 404 || r.status == 409)
		doubt(e); // gone, or another uid, or a collision with another writer
	if (r.status != 404)
		refused(e, "pod could not be deleted: ", r);
}

// The job ended before its pod had a node.
void PodsController::again(Entry &e)
{
	switch (e.job->state) {
	case SK8_JOB_NODE_FAIL:
	case SK8_JOB_PREEMPTED:
	case SK8_JOB_OTHER_END:
		// Nobody wanted the pod to end: it never ran, so it simply queues again.
		reports_.event(e.key, {true, std::string(names::event_job_ended),
				       end_text(*e.job) + "; the pod is queued again"});
		log_pod(info, e.key, job_id(e), "queued again because its job ended: %s", how_ended(*e.job).c_str());
		keep_only_if_unsure(e);
		e.age = e.job->age;
		drop_job(e);
		back_off(e, "queued again");
		return plan_retry(e);
	default:
		delete_pod(e);
	}
}

// ---- release ----

// Nothing of the pod runs any more: called at the moment of the proof.
void PodsController::free_hold(Entry &e)
{
	if (e.bound_node.empty() && !(e.job && e.job->running())) // else it is to be bound there yet
		use_changed_ |= use_.remove(e.key.uid);
	const HoldTable::Cover was = ports_.holds.release(e.key);
	if (was == HoldTable::Cover::none)
		return;
	e.binding_unsure = e.lost_node = false;
	ports_.journal.free(e.key);
	log_pod(info, e.key, job_id(e), "nothing of it runs any more, what it held is free");
	// Not what we know of the job: its end may have masked the hold, and a pass of the
	// scheduler seen the mask, before we hear of that end.
	if (was == HoldTable::Cover::masked)
		ports_.slurm.wake_scheduler();
}

// Its job ended before the pod was bound. What no Binding can reach is free.
void PodsController::keep_only_if_unsure(Entry &e)
{
	if (!may_arrive(e))
		free_hold(e);
}

void PodsController::tell_loss(Entry &e)
{
	if (std::exchange(e.loss_told, true))
		return;
	const std::string text = "the object vanished before the kubelet had reported its containers gone; what it "
				 "holds on node " + ports_.holds.node_of(e.key) + " stays masked";
	log_pod(error, e.key, job_id(e), "%s", text.c_str());
	reports_.event(e.key, {true, std::string(names::event_unproven), text});
}

// Its agent looks for the pod's own uid, which no static pod has there: of that nothing would be found.
void PodsController::ask_agent(Entry &e, PodState state)
{
	const bool wanted = state == PodState::lost && !e.mirror;
	if (state != PodState::lost && state != PodState::gone)
		e.seen_gone = false; // it is there again, or that is not known: what was seen was before
	if (wanted == e.agent_asked)
		return;
	e.agent_asked = wanted;
	if (wanted)
		lost_.add(e.key.uid, node_of(e), ports_.timer.wall_seconds());
	else
		lost_.remove(e.key.uid);
}

void PodsController::hear_agent(const kube::Node &node)
{
	for (const auto &uid : lost_.answered(node)) {
		auto it = entries_.find(uid);
		if (it == entries_.end() || !it->second.agent_asked)
			continue; // a foreign one
		it->second.seen_gone = true;
		log_pod(info, it->second.key, job_id(it->second), "the agent of node %s has seen that nothing of it is left",
			node.meta.name.c_str());
		sync(uid);
	}
}

// sync() has freed the hold already.
void PodsController::release(Entry &e)
{
	if (e.absent)
		return forget(e.key.uid);
	// While it is still being put on, the two could arrive in the other order.
	if (e.protecting || reads_manifest(e) || !(has_finalizer(*e.pod) || is_to_go(e)))
		return;
	e.op = Op::releasing; // end_of_turn() goes on: what it held must be free on disk first,
	to_let_go_.push_back(e.key.uid); // else a crash in between would leave it held for ever
}

void PodsController::let_go(const Result<void> &saved)
{
	for (const auto &uid : std::exchange(to_let_go_, {})) {
		auto it = entries_.find(uid);
		if (it == entries_.end() || it->second.op != Op::releasing)
			continue;
		Entry &e = it->second;
		if (!e.pod || e.absent) { // news of the same turn took it away since: sync() looks, or forgets it
			e.op = Op::none;
			sync(uid);
			continue;
		}
		if (saved && is_to_go(e)) {
			send_delete(e, 1, true);
			continue;
		}
		if (saved) {
			ports_.kube.set_finalizer(e.key, false,
						  then<KubeReply>(e, Op::releasing, &PodsController::finalizer_removed));
			continue;
		}
		e.op = Op::none;
		back_off(e, "the saved ledger cannot be written: " + saved.error().message);
		plan_retry(e);
	}
}

void PodsController::finalizer_removed(Entry &e, const KubeReply &r)
{
	if (r.status == 404) {
		succeeded(e);
		e.pod.reset();
		return;
	}
	if (!r.ok()) {
		refused(e, "finalizer could not be removed: ", r);
		// Another pod of this name, or only a collision with another writer.
		if (r.status == 409 || r.status == 422)
			doubt(e);
		return;
	}
	succeeded(e);
	assume_finalizer(e, false);
}

} // namespace sk8::core
