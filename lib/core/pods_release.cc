// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a pod holds, freed by hand: a person takes the place of the kubelet's report
// where that will never come. The pod is then over (lifecycle.cc), as if it had been
// reported; there is no other way out of the table. The ledger remembers it for as long
// as the object is there: that may say for ever that the pod runs, and a slurmctld that
// starts would mask it again.
#include "lib/core/pods_controller.h"

#include <utility>

#include "lib/base/log.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

// Why a person should not say that no process of it is left; empty: there is no
// reason that we know of.
std::string PodsController::objection(const Entry &e) const
{
	const Job *job = relevant_job(e);
	if (job && job->running())
		return "its Slurm job " + std::to_string(job->ref.id) + " is running; end that with scancel " +
		       std::to_string(job->ref.id);
	if (!started_)
		return "Kubernetes has not told yet which pods there are, so it may run";
	if (e.absent)
		return "";
	if (!e.pod)
		return "it is not known yet whether Kubernetes has it; try again in a minute";
	if (e.bound_node.empty())
		return "Kubernetes has it without a node, and a Binding to one may still arrive; delete the pod";
	if (nodes_.kubelet(e.bound_node) != NodeView::Kubelet::ready)
		return "";
	return "Kubernetes has it (phase " + (e.pod->phase.empty() ? "unknown" : e.pod->phase) + ") on node " + e.bound_node +
	       ", whose kubelet reports; delete the pod";
}

Result<std::string> PodsController::release_by_hand(const std::string &uid, const std::string &by, bool force)
{
	auto it = entries_.find(uid);
	if (it == entries_.end())
		return Error{"no pod with the uid " + uid + " is known"};
	Entry &e = it->second;
	const std::string pod = pod_text(e.key, e.job ? e.job->ref.id : 0);
	const auto held = ports_.holds.held_by(e.key);
	if (!held)
		return Error{pod + " holds nothing"};
	const std::string why_not = objection(e);
	if (!why_not.empty() && !force)
		return Error{pod + " is not released: " + why_not + " (--force releases it all the same)"};

	const std::string done = "what " + pod + " holds on node " + held->hold.node + " is free";
	// Never suppressed: a person's word stands for the kubelet's from here on.
	log_warning("%s: what it holds on node %s is released by hand by %s%s%s", pod.c_str(),
		    held->hold.node.c_str(), by.c_str(), why_not.empty() ? "" : ", though ", why_not.c_str());
	e.retry_at = Millis(0);
	free_hold(e);
	// Of a pod without a node there is nothing to be said: once it has one it holds it.
	if (!e.pod || !e.bound_node.empty())
		remember_release(e, by);
	e.adopting |= e.bound_node.empty(); // perhaps by a slurmctld that died: see mirror()
	sync(uid);
	end_of_turn();
	if (auto saved = save_journal(); !saved) // also before Kubernetes has been listed
		return done + " until slurmctld starts again: " + saved.error().message;
	return done;
}

void PodsController::remember_release(Entry &e, const std::string &by)
{
	e.declared = by;
	ports_.holds.remember_release({e.key, by});
	ports_.journal.released({e.key, by});
}

// Its object is gone, or has no node after all.
void PodsController::forget_release(Entry &e)
{
	if (std::exchange(e.declared, "").empty())
		return;
	ports_.holds.forget_release(e.key);
	ports_.journal.free(e.key);
}

} // namespace sk8::core
