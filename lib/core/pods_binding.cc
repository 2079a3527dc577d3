// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// From "its job runs" to "the pod is bound": hold on disk, finalizer, Binding.
//
// What makes it safe at every point where slurmctld may die:
//   1. hold in the ledger, on disk   a restart without Kubernetes keeps the cores
//   2. Binding with the pod's uid    a pod is bound once, by the API server's word
//   3. finalizer on the pod          nobody can make the object vanish from now on
// The Bindings of all jobs that start together go before the first finalizer, which the
// table's `protect` sets on a pod that is bound: sent together they share the server, and
// pods start later. Who deletes a pod by force between 2 and 3 leaves a hold that stays.
#include "lib/core/pods_controller.h"
#include "lib/core/pods_then.h"

#include <algorithm>

#include "lib/base/log_limit.h"
#include "lib/base/node_list.h"
#include "lib/base/text.h"
#include "lib/core/annotations.h"
#include "lib/core/metrics.h"
#include "lib/core/names.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

// Slurm gives nobody masked cores. But a slurmctld that was killed comes back with jobs as
// they were some seconds before: one that had ended in truth runs again, where another pod
// has been bound since.
std::string PodsController::cores_held_by_others(const Entry &e) const
{
	GresList gres = e.job->gres;
	const GresList claimed = ports_.dra && e.pod ? ports_.dra->held(e.key.ns, e.pod->resource_claims, e.key.uid, e.job->node) : GresList();
	for (Gres &g : gres) // of what its claims have others may have a part
		std::erase_if(g.devices, [&](std::uint16_t d) { return std::ranges::binary_search(devices_named(claimed, g.name), d); });
	const auto other = ports_.holds.masked_by_other(e.key, e.job->node, e.job->cores, gres);
	return other ? "node " + e.job->node + ": pod " + other->ns + "/" + other->name + " still holds its cores or devices" : "";
}

// A Binding that was sent, or one that etcd has forgotten.
bool PodsController::may_arrive(const Entry &e)
{
	return e.binding_unsure || e.lost_node;
}

// Its Bindings were refused: it need not be bound to be deleted.
bool PodsController::is_preempted_unbound(const Entry &e)
{
	return e.job->preempted() && !may_arrive(e);
}

// Since bind() its job may have ended, or the pod may be gone.
bool PodsController::can_be_bound(const Entry &e)
{
	return e.pod && !e.pod->meta.deleting && e.job && e.job->running() && !is_preempted_unbound(e);
}

// By what is known now: the list that its job has may be older, even in this turn.
bool PodsController::forbids(Entry &e, const std::string &node)
{
	if (!nodes_.fits(*e.pod, e.volumes, node))
		return true;
	if (e.pod->resource_claims.empty())
		return false;
	if (const auto claims = claims_of(e); claims)
		e.excluded_by_claims = claim_nodes(*claims).excluded;
	return e.excluded_by_claims.contains(node);
}

// Whoever gave its job another list of excluded nodes than ours, or more nodes, may have made Slurm choose what the pod must not
// have: taints and volumes no kubelet looks at. So may Slurm, where it does not heed the list that it shows (sk8_exclude()).
std::string PodsController::node_not_allowed(Entry &e)
{
	const std::string &node = e.job->node, &list = e.job->excluded_nodes;
	if (!nodes_.synced())
		return "";
	if (!nodes_.in_slurm(node))
		return "its job is not on one node, but on " + one_line(node, 64);
	const bool in_force = !list.empty() && list == e.excluded && are_our_excluded_nodes(list) && !e.exclusion_refused;
	const bool listed = in_force && has_node(list, node);
	return listed || forbids(e, node) ? "node " + node + " is none that its pod may have" : "";
}

// Why not, or empty. Two that want the same port can be started together: the second one goes back.
std::string PodsController::not_to_be_bound(Entry &e)
{
	if (outgrows_its_job(e) && !may_arrive(e))
		return outgrown_text;
	if (std::string why = may_arrive(e) ? "" : node_not_allowed(e); !why.empty())
		return why;
	if (std::string why = use_.objection(e.key.uid, *e.pod, e.job->node); !why.empty())
		return "node " + e.job->node + ": " + why;
	return cores_held_by_others(e);
}

// Where a Binding may still take effect another job would start at once, and be refused again.
void PodsController::refuse_start(Entry &e, const std::string &why)
{
	if (!may_arrive(e))
		return queue_anew(e, why);
	back_off(e, "cannot be bound: " + why);
	plan_retry(e);
}

// Nobody wants the pod to end.
void PodsController::queue_anew(Entry &e, const std::string &why)
{
	keep_only_if_unsure(e);
	e.age = e.job->age;
	end_job(e, {SK8_JOB_CANCELLED, 0, why});
}

void PodsController::bind(Entry &e)
{
	if (e.binding.overdue)
		return end_unbound(e);
	if (is_preempted_unbound(e)) {
		free_hold(e);
		e.age = e.job->age;
		return end_job(e, end_because_of(e, PodState::waiting));
	}
	if (lacks_volumes(e) && !may_arrive(e))
		return read_volumes(e);
	if (std::string why = not_to_be_bound(e); !why.empty())
		return refuse_start(e, why);
	// Kept where a later job was, its job asks for other devices than its claims want: the next one does not.
	if (std::string why = claims_not_met(e); !why.empty()) {
		const auto claims = claims_of(e);
		const bool can_be_had = claims && (claims->node.empty() || claims->node == e.job->node);
		return can_be_had ? queue_anew(e, why) : refuse_start(e, why);
	}
	if (gets_its_devices(e))
		return;
	take_use(e, e.job->node);
	reports_.stop(e.key.uid);
	if (e.binding.since == Millis(0))
		e.binding.since = ports_.timer.now();
	e.op = Op::binding; // end_of_turn() goes on
	to_place_.push_back(e.key.uid);
}

// Beside whatever else is going on with the pod, and with tries of its own: that it
// fails must delay no DELETE. Nobody may add a finalizer to what is being deleted.
void PodsController::protect(Entry &e)
{
	if (e.protecting || !e.pod || e.pod->meta.deleting || has_finalizer(*e.pod))
		return;
	e.protecting = true;
	ports_.kube.set_finalizer(e.key, true,
				  [this, uid = e.key.uid](const KubeReply &r) { finalizer_set(uid, r); });
}

void PodsController::finalizer_set(const std::string &uid, const KubeReply &r)
{
	auto it = entries_.find(uid);
	if (it == entries_.end())
		return;
	Entry &e = it->second;
	if (!r.ok()) {
		log_pod(verbose, e.key, job_id(e), "finalizer could not be set: %s", r.error.c_str());
		tell_denied(e, r);
		const Millis delay = std::max(retry_delay(e.protect_failures++), r.retry_after.value_or(Millis(0)));
		e.protect_hurries = !r.retry_after;
		return protect_later(e, delay);
	}
	e.protecting = false;
	e.protect_failures = 0;
	forget_passing_denials(e);
	assume_finalizer(e, true);
	sync(uid);
}

void PodsController::protect_later(Entry &e, Millis delay)
{
	e.protect_at = ports_.timer.now() + delay;
	ports_.timer.after(delay, [this, uid = e.key.uid, at = e.protect_at] {
		auto it = entries_.find(uid);
		if (it == entries_.end() || it->second.protect_at != at)
			return; // it was brought forward
		it->second.protecting = it->second.protect_hurries = false;
		sync(uid);
	});
}

// Does not wait for the watch to say so: the same patch would follow.
void PodsController::assume_finalizer(Entry &e, bool present)
{
	if (!e.pod || has_finalizer(*e.pod) == present)
		return;
	auto copy = std::make_shared<kube::Pod>(*e.pod);
	std::erase(copy->meta.finalizers, names::finalizer);
	if (present)
		copy->meta.finalizers.emplace_back(names::finalizer);
	e.pod = std::move(copy);
}

void PodsController::end_of_turn()
{
	if (std::exchange(nodes_are_news_, false))
		look_at_nodes_again();
	// Ports or slots were taken or came free, or nodes are others: waiting pods may avoid other nodes.
	if (std::exchange(use_changed_, false))
		sync_unbound();
	if (use_.room_changed())
		look_for_room();
	// Before the lists are known nothing has changed but the ledger's own file, if it
	// was lost or damaged: that must not look as if no pod held anything.
	if (!started_)
		return;
	if (unblock_due_)
		unblock_nodes();
	place_and_bind();
	let_go(save_journal()); // it has said what is wrong, and what is not on disk stays in memory
}

// A full or broken disk is not asked again in every turn, and has one line in the log.
static constexpr Millis save_again{1'000};

Result<void> PodsController::save_journal()
{
	const Millis now = ports_.timer.now();
	if (!unsaved_.empty() && now < save_at_)
		return Error{unsaved_};
	auto r = ports_.journal.flush();
	if (r) {
		if (!unsaved_.empty())
			log_info("cluster %s: the saved ledger can be written again", settings_.name.c_str());
		unsaved_.clear();
		return r;
	}
	if (unsaved_.empty())
		log_error("cluster %s: the saved ledger cannot be written: %s; until it can no pod is bound",
			  settings_.name.c_str(), r.error().message.c_str());
	unsaved_ = r.error().message;
	save_at_ = now + save_again;
	return r;
}

void PodsController::place_and_bind()
{
	std::vector<std::pair<std::string, Hold>> placed;
	for (const auto &uid : std::exchange(to_place_, {})) {
		auto it = entries_.find(uid);
		if (it == entries_.end())
			continue;
		Entry &e = it->second;
		e.op = Op::none;
		// Since bind() this turn may have told of a taint there.
		if (std::string why = can_be_bound(e) && !may_arrive(e) ? node_not_allowed(e) : ""; !why.empty()) {
			use_changed_ |= use_.remove(uid);
			refuse_start(e, why);
			continue;
		}
		// A hold that is made after the proof that nothing runs would be freed by nothing.
		std::optional<Hold> hold;
		if (can_be_bound(e))
			hold = ports_.holds.place(e.key, e.job->ref);
		if (hold)
			hold = set_request(e).value_or(*hold);
		if (hold)
			hold = set_cpus(e).value_or(*hold);
		if (hold)
			hold = share_devices(e).value_or(*hold);
		if (hold && node_of_devices(e) == hold->node) // it may use these already, whatever its new job has
			hold = ports_.holds.add_devices(e.key, claimed_there(e, Whose::own)).value_or(*hold);
		if (!hold) {
			sync(uid);
			continue;
		}
		e.op = Op::binding;
		e.proved_over = false; // etcd from a backup may have brought it back from that
		ports_.journal.hold(*hold);
		placed.emplace_back(uid, std::move(*hold));
	}
	if (placed.empty())
		return;
	wake_if_masks_can_go();
	auto saved = save_journal(); // once for all that start together
	for (const auto &[uid, hold] : placed) {
		Entry &e = entries_.at(uid);
		if (saved) {
			if (e.pod->resource_claims.empty())
				send_binding(e, hold);
			else
				allocate_claims(e, hold);
			continue;
		}
		e.op = Op::none;
		keep_only_if_unsure(e); // in the ledger too: it may be written later
		back_off(e, "cannot be bound: the saved ledger cannot be written: " + saved.error().message);
		end_if_overdue(e);
		sync(uid);
	}
}

void PodsController::send_binding(Entry &e, const Hold &hold)
{
	if (e.failures == 0)
		metrics().start_to_binding_ms.record(elapsed_ms(e.job_seen_at));
	ports_.kube.bind(e.key, hold.node, job_annotations(*e.job),
			 [this, uid = e.key.uid, node = hold.node](const KubeReply &r) {
				 auto it = entries_.find(uid);
				 if (it == entries_.end() || it->second.op != Op::binding)
					 return;
				 it->second.op = Op::none;
				 binding_answered(it->second, node, r);
				 sync(uid);
			 });
}

void PodsController::binding_answered(Entry &e, const std::string &node, const KubeReply &r)
{
	if (r.ok()) {
		succeeded(e);
		e.bound_node = node;
		metrics().pods_bound.add();
		metrics().created_to_bound_ms.record(elapsed_ms(e.seen_at));
		log_pod(info, e.key, job_id(e), "bound to node %s", node.c_str());
		reports_.event(e.key, {false, std::string(names::event_scheduled),
				       "Successfully assigned " + e.key.ns + "/" + e.key.name + " to " + node +
					       (e.job ? " by Slurm job " + std::to_string(e.job->ref.id) : "")});
		return;
	}
	// No answer may mean that it happened, unless no byte of it left us; 409 also
	// answers our own earlier Binding; 404 may be another pod by now. The pod's object tells.
	if (r.unsure())
		e.binding_unsure = true;
	if (e.binding_unsure || r.status == 404 || r.status == 409)
		doubt(e);
	if (r.status == 404)
		keep_only_if_unsure(e); // there is no such pod: this Binding did nothing
	tell_denied(e, r);
	back_off_from_server(e, "cannot be bound: " + r.error, r.retry_after);
	// Nobody refuses it: that Kubernetes cannot be reached ends no job, its pod may run.
	if (r.status != 0)
		end_if_overdue(e);
}

// What its Binding waits for counts as a Binding that is refused.
void PodsController::bind_later(Entry &e)
{
	if (!e.job || !e.job->running())
		return;
	if (e.binding.since == Millis(0))
		e.binding.since = ports_.timer.now();
	end_if_overdue(e);
}

void PodsController::end_if_overdue(Entry &e)
{
	if (!e.job || !e.job->running() || ports_.timer.now() - e.binding.since <= settings_.pods.bind_timeout)
		return;
	e.binding.overdue = e.doubted; // it may be bound: the table looks, and comes to bind() only if it is not
	if (!e.doubted)
		end_unbound(e);
}

void PodsController::end_unbound(Entry &e)
{
	log_pod(error, e.key, job_id(e), "%s; its job ends after bindTimeout", e.trouble.c_str());
	reports_.event(e.key, {true, std::string(names::event_bind_failed), e.trouble});
	queue_anew(e, e.trouble);
}

} // namespace sk8::core
