// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the table's effects do, but for binding (pods_binding.cc).
#include "lib/core/pods_controller.h"
#include "lib/core/pods_then.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

// ---- look ----

void PodsController::look(Entry &e)
{
	e.op = Op::looking;
	ports_.kube.get_pod(e.key, then<KubeReply>(e, Op::looking, &PodsController::looked));
}

// An answer does not fit what we know of the pod.
void PodsController::doubt(Entry &e)
{
	e.pod.reset();
	e.doubted = true;
}

void PodsController::lose_node(Entry &e)
{
	e.lost_node = true;
	if (const auto hold = ports_.holds.lose_node(e.key))
		ports_.journal.hold(*hold); // a slurmctld that starts could not tell it from one never bound
}

void PodsController::looked(Entry &e, const KubeReply &r)
{
	if (std::exchange(e.outdated, false) && r.ok())
		return; // it was there when it was looked at
	if (r.ok() && r.pod && r.pod->meta.uid == e.key.uid) {
		// Only etcd restored from a backup takes a node from a pod. Its kubelet ends what runs
		// there without a word: what it holds stays, and it can be bound there anew.
		if (r.pod->node_name.empty() && !std::exchange(e.bound_node, "").empty())
			lose_node(e);
		vanished_.erase(e.key.uid);
		set_pod(e, r.pod);
	} else if (r.ok() || r.status == 404) {
		e.pod.reset(); // none of this name, or another pod of the same name
		e.absent = true;
		e.doubted = false;
		if (e.watched)
			vanished_.insert(e.key.uid);
		if (e.bound_node.empty())
			keep_only_if_unsure(e); // it never had a node
	} else {
		refused(e, "", r);
	}
}

// ---- refuse ----

void PodsController::refuse_because(Entry &e, std::string why, bool by_nodes)
{
	e.refusal = std::move(why);
	e.refusal_by_nodes = by_nodes;
}

// What refused it may be mended outside the pod: an account, a user, a partition.
static constexpr Millis recheck_delay{60'000};

void PodsController::plan_recheck(Entry &e)
{
	if (e.recheck_planned)
		return;
	e.recheck_planned = true;
	ports_.timer.after(recheck_delay, [this, uid = e.key.uid] {
		auto it = entries_.find(uid);
		if (it == entries_.end())
			return;
		it->second.recheck_planned = false;
		it->second.refusal.clear();
		it->second.refusal_by_nodes = false;
		sync(uid);
	});
}

void PodsController::refuse(Entry &e)
{
	plan_recheck(e);
	reports_.condition(e.pod, {std::string(names::refused_reason), e.refusal});
	if (e.told == e.refusal)
		return;
	e.told = e.refusal;
	log_pod(info, e.key, job_id(e), "refused: %s", e.refusal.c_str());
	reports_.event(e.key, {true, std::string(names::event_refused), e.refusal});
}

// ---- submit ----

void PodsController::submit(Entry &e)
{
	auto request = make_request(e.key, *e.pod, settings_, ports_.lookup);
	if (!request) {
		refuse_because(e, request.error().message, false);
		return refuse(e);
	}
	if (!e.pod->claims.empty() && !e.volumes_known)
		return read_volumes(e);
	const auto &choice = nodes_.choose(*e.pod, e.volumes);
	if (!choice.none.empty()) {
		refuse_because(e, choice.none, true);
		return refuse(e);
	}
	request->excluded_nodes = excluded_nodes(e);
	send_submit(e, std::move(*request));
}

// What Kubernetes forbids, and where ports or slots are taken; sorted.
std::string PodsController::excluded_nodes(const Entry &e)
{
	std::set<std::string> all = use_.excluded(e.key.uid, *e.pod);
	for (auto name : split(nodes_.choose(*e.pod, e.volumes).excluded, ','))
		all.emplace(name);
	return our_excluded_nodes(all);
}

void PodsController::read_volumes(Entry &e)
{
	e.op = Op::volumes;
	ports_.kube.get_volumes(e.key, e.pod->claims,
				then<KubePort::Volumes>(e, Op::volumes, &PodsController::volumes_read));
}

void PodsController::volumes_read(Entry &e, const KubePort::Volumes &v)
{
	if (v.error.empty()) {
		e.volumes = v.terms;
		e.volumes_known = true;
		succeeded(e);
	} else if (v.retry) {
		back_off(e, v.error);
		e.waits_for_server = true;
		if (e.pod)
			reports_.condition(e.pod, {std::string(names::pending_reason), v.error});
	} else {
		refuse_because(e, v.error, false);
	}
}

void PodsController::send_submit(Entry &e, JobRequest request)
{
	e.op = Op::submitting;
	e.excluded = request.excluded_nodes;
	e.adopting = !request.required_node.empty();
	ports_.slurm.submit(std::move(request), then<SlurmReply>(e, Op::submitting, &PodsController::submitted));
}

void PodsController::submitted(Entry &e, const SlurmReply &r)
{
	if (r.ok) {
		succeeded(e);
		if (e.adopting && r.job->node == e.bound_node)
			reports_.event(e.key, {false, std::string(names::event_adopted),
					       "found running on node " + r.job->node + "; now Slurm job " +
						       std::to_string(r.job->ref.id)});
		else if (!e.adopting)
			reports_.event(e.key, {false, std::string(names::event_queued),
					       "queued as Slurm job " + std::to_string(r.job->ref.id)});
		log_pod(info, e.key, r.job->ref.id, "%s", e.adopting ? "adopted" : "queued");
		// It may have other cores than the hold says, which others may get now. Is there none,
		// the pod has ended meanwhile, and nothing would free what was held from now on.
		if (e.adopting && ports_.holds.held(e.key))
			if (const auto hold = ports_.holds.place(e.key, r.job->ref))
				ports_.journal.hold(*hold);
		set_job(e, r.job, ports_.timer.now());
		return;
	}
	if (e.adopting)
		return back_off(e, "no job could be made where it runs: " + r.text);
	if (r.fatal)
		return refuse_because(e, "Slurm refused the job: " + r.text, false);
	back_off(e, "Slurm takes no job now: " + r.text);
	if (e.pod)
		reports_.condition(e.pod, {std::string(names::pending_reason), e.trouble});
}

// ---- queued ----

// Without seconds: the estimate moves with every scheduling cycle.
static std::string minute(std::int64_t t)
{
	std::string s = format_rfc3339(t);
	return s.substr(0, 16) + "Z";
}

// Slurm's words for jobs that wait for ever, as long as nobody changes something:
// what is wrong. Empty for all others.
static const char *never_runs(const std::string &reason)
{
	static constexpr struct {
		const char *reason, *text;
	} table[] = {
		{"PartitionConfig", " (no node of it is large enough, or its limits forbid the job)"},
		{"PartitionNodeLimit", " (no node of it is large enough, or its limits forbid the job)"},
		{"PartitionTimeLimit", " (the job's time limit exceeds the partition's)"},
		{"BadConstraints", " (no node has what the job asks for)"},
		{"MaxMemPerLimit", " (it asks for more memory than the partition allows)"},
		{"AccountNotAllowed", " (the partition does not allow the job's account)"},
		{"QOSNotAllowed", " (the partition does not allow the job's QOS)"},
		{"InvalidAccount", " (its user may not use the job's account any more)"},
		{"InvalidQOS", " (its user may not use the job's QOS any more)"},
	};
	for (const auto &row : table)
		if (reason == row.reason)
			return row.text;
	return "";
}

static std::string waiting_text(const Job &job)
{
	std::string text = "Slurm job " + std::to_string(job.ref.id) + " is pending in partition " +
			   one_line(job.partition, 64);
	text += job.held ? ", held" : "";
	text += ": " + (job.reason.empty() ? std::string("None") : one_line(job.reason, 128));
	text += never_runs(job.reason);
	if (!job.held)
		text += ", priority " + std::to_string(job.priority);
	if (job.start_time > 0)
		text += ", expected start " + minute(job.start_time);
	return text;
}

// Once for each new sentence: the condition alone is easily overlooked.
void PodsController::warn_of_waiting_for_ever(Entry &e)
{
	const std::string why = never_runs(e.job->reason);
	if (why.empty() || e.job->held)
		return;
	std::string text = "Slurm job " + std::to_string(e.job->ref.id) + " cannot run in partition " +
			   one_line(e.job->partition, 64) + " as it is: " + e.job->reason + why;
	if (e.told == text)
		return;
	log_pod(info, e.key, job_id(e), "%s", text.c_str());
	reports_.event(e.key, {true, std::string(names::event_never_runs), text});
	e.told = std::move(text);
}

void PodsController::mirror(Entry &e)
{
	// It was to start where something was held, and Slurm lets it go nowhere else any more.
	if (e.adopting)
		return end_job(e, {SK8_JOB_CANCELLED, 0, "its pod is bound to no node any more"});
	reports_.condition(e.pod, {std::string(names::pending_reason), waiting_text(*e.job)});
	warn_of_waiting_for_ever(e);

	std::string excluded = excluded_nodes(e);
	// Another list than the one that we gave is an administrator's: it stays.
	if (excluded == e.excluded || e.job->excluded_nodes != e.excluded || !are_our_excluded_nodes(e.excluded))
		return;
	// Even if no node fits now: the job waits, and nodes come back.
	e.excluded = std::move(excluded);
	ports_.slurm.exclude(e.key, *e.job, e.excluded, [this, uid = e.key.uid](const SlurmReply &r) {
		if (auto it = entries_.find(uid); it != entries_.end() && it->second.job)
			exclusion_answered(it->second, r);
	});
}

void PodsController::exclusion_answered(Entry &e, const SlurmReply &r)
{
	if (!r.ok) {
		e.excluded = e.job->excluded_nodes; // tried again
		return;
	}
	Job job = *e.job;
	job.excluded_nodes = e.excluded;
	e.job = share(std::move(job));
}

// ---- ends ----

void PodsController::end_job(Entry &e, JobEnd end)
{
	e.op = Op::ending;
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
	if (e.failures == 0 || e.binding_since == Millis(0))
		succeeded(e);
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
	if (e.bound_node.empty())
		use_changed_ |= use_.remove(e.key.uid);
	e.job.reset();
	e.excluded.clear();
	e.binding_since = e.ending_since = Millis(0);
	e.binding_overdue = false;
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

void PodsController::delete_pod(Entry &e)
{
	const kube::Pod &pod = *e.pod;
	const std::int64_t grace =
		std::max<std::int64_t>(1, std::min(pod.grace_seconds, settings_.pods.kill_grace.count() / 1000));
	if (e.delete_sent || (pod.meta.deleting && pod.meta.deletion_grace_seconds <= grace))
		return;
	e.op = Op::deleting;
	e.delete_sent = true;
	ports_.kube.delete_pod(e.key, grace, then<KubeReply>(e, Op::deleting, &PodsController::deleted));
	if (e.delete_latency_told)
		return;
	e.delete_latency_told = true;
	metrics().fini_to_delete_ms.record(elapsed_ms(e.job_seen_at));
	log_pod(info, e.key, job_id(e), "deleted because its job ended: %s", how_ended(*e.job).c_str());
	reports_.event(e.key, {e.job->state != SK8_JOB_COMPLETED, std::string(names::event_job_ended),
			       end_text(*e.job) + "; the pod is deleted"});
}

void PodsController::deleted(Entry &e, const KubeReply &r)
{
	if (r.ok())
		return succeeded(e);
	e.delete_sent = false;
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
	if (!e.binding_unsure && !e.lost_node)
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

// sync() has freed the hold already.
void PodsController::release(Entry &e)
{
	if (e.absent)
		return forget(e.key.uid);
	// While it is still being put on, the two could arrive in the other order.
	if (e.protecting || !has_finalizer(*e.pod))
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
