// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the table's effects do until a pod has its job: look, refuse, submit, and while the
// job waits. Then: pods_binding.cc, pods_adoption.cc, pods_ends.cc.
#include "lib/core/pods_controller.h"
#include "lib/core/pods_then.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/pod_log.h"
#include "lib/kube/resource_version.h"

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
		if (e.pod && kube::is_older(r.pod->meta.resource_version, e.pod->meta.resource_version))
			return; // the watch has told of a newer one meanwhile
		// Only etcd restored from a backup takes a node from a pod. Its kubelet ends what runs
		// there without a word: what it holds stays, and it can be bound there anew.
		if (r.pod->node_name.empty() && !std::exchange(e.bound_node, "").empty())
			lose_node(e);
		else if (!r.pod->node_name.empty())
			e.proved_over &= kubelet_reports_over(*r.pod); // only such a backup makes that untrue
		vanished_.erase(e.key.uid);
		set_pod(e, r.pod);
		see_back(e);
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
	e.refusal_by_room = false;
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
	if (lacks_volumes(e))
		return read_volumes(e);
	const auto &choice = nodes_.choose(*e.pod, e.volumes);
	if (!choice.none.empty()) {
		refuse_because(e, choice.none, true);
		return refuse(e);
	}
	if (!e.pod->resource_claims.empty() && !add_claims(e, *request))
		return;
	const Excluded excluded = nodes_excluded(e);
	// Slurm would refuse it for good. What makes room leads here again.
	if (!e.taken.empty() && excluded.everywhere)
		return reports_.condition(e.pod, {std::string(names::pending_reason), "no node has room for it now" + taken_text(e, ": ")});
	request->excluded_nodes = excluded.list;
	request->age = age_of(e);
	send_submit(e, std::move(*request));
}

// Empty: all have room.
std::string PodsController::taken_text(const Entry &e, const char *before)
{
	if (e.taken.empty())
		return "";
	return before + std::to_string(e.taken.size()) + (e.taken.size() == 1 ? " node lacks" : " nodes lack") +
	       (e.pod->host_ports.empty() ? " ephemeral-storage" : " its host ports or ephemeral-storage");
}

// Pods are on nodes that Slurm has never heard of, too.
std::set<std::string> PodsController::nodes_taken(const Entry &e)
{
	std::set<std::string> out = use_.excluded(e.key.uid, *e.pod);
	std::erase_if(out, [this](const std::string &node) { return !nodes_.in_slurm(node); });
	return out;
}

// Where ports or storage are taken, and where other devices are than it claims.
std::set<std::string> PodsController::nodes_without_room(Entry &e)
{
	e.taken = nodes_taken(e);
	std::set<std::string> all = e.taken;
	if (!e.pod->resource_claims.empty()) {
		if (const auto claims = claims_of(e); claims)
			e.excluded_by_claims = claim_nodes(*claims).excluded;
		all.insert(e.excluded_by_claims.begin(), e.excluded_by_claims.end());
	}
	return all;
}

// These, and what Kubernetes forbids: for most pods there are no others, and all that are alike have one list.
PodsController::Excluded PodsController::nodes_excluded(Entry &e)
{
	std::set<std::string> all = nodes_without_room(e);
	const NodeView::Choice &choice = nodes_.choose(*e.pod, e.volumes);
	if (all.empty())
		return {choice.ours, false};
	for (auto name : split(choice.excluded, ','))
		all.emplace(name);
	return {our_excluded_nodes(all), all.size() == nodes_.slurm_nodes()};
}

// A slurmctld that has started knows its job, but not where they are: the list of nodes that the job has would lose those.
bool PodsController::lacks_volumes(const Entry &e)
{
	return e.pod && !e.pod->claims.empty() && !e.volumes_known;
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
		e.binding.since = Millis(0); // nothing has been sent before they are known
		succeeded(e);
	} else if (v.retry || (e.job && !e.job->ended())) {
		back_off_from_server(e, v.error, {});
		if (e.pod)
			reports_.condition(e.pod, {std::string(names::pending_reason), v.error});
		if (!v.retry)
			bind_later(e);
	} else {
		refuse_because(e, v.error, false);
	}
}

void PodsController::send_submit(Entry &e, JobRequest request)
{
	e.op = Op::submitting;
	e.excluded = request.excluded_nodes;
	e.asked = {request.cpus, request.memory_mb};
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
			if (const auto hold = ports_.holds.place(e.key, r.job->ref)) {
				ports_.journal.hold(*hold);
				if (e.pod)
					hold_what_it_claims(e);
				wake_if_masks_can_go();
			}
		set_job(e, r.job, ports_.timer.now());
		return;
	}
	if (e.adopting) {
		back_off(e, "no job could be made where it runs: " + r.text);
		return tell_kept(e, r.text);
	}
	if (r.fatal) {
		refuse_because(e, "Slurm refused the job: " + r.text + (e.pod ? taken_text(e, "; ") : ""), false);
		e.refusal_by_room = !e.taken.empty(); // its partition may have no other nodes
		return;
	}
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
	if (wants_other_devices(e))
		return queue_anew(e, "its resource claims want other devices now");
	if (free_late_claims(e))
		return;
	if (outgrows_its_job(e) && !e.job->held) // the next one would not be held
		return queue_anew(e, outgrown_text);
	if (lacks_volumes(e))
		return read_volumes(e);
	std::string excluded = nodes_excluded(e).list;
	reports_.condition(e.pod, {std::string(names::pending_reason), waiting_text(*e.job) + taken_text(e, "; ")});
	warn_of_waiting_for_ever(e);

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
	if (!r.ok && !e.exclusion_refused)
		log_pod(warning, e.key, job_id(e), "the nodes that its job must avoid cannot be told to Slurm: %s", r.text.c_str());
	e.exclusion_refused = !r.ok;
	if (!r.ok) {
		e.excluded = e.job->excluded_nodes; // tried again
		return;
	}
	Job job = *e.job;
	job.excluded_nodes = e.excluded;
	e.job = share(std::move(job));
}

} // namespace sk8::core
