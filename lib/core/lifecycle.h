// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The life of a pod placed through Slurm as one table:
// (what the pod is, what its job is) -> the one thing to do next.
//
// Everything that happens (watch events, hooks, scans, restarts, answers) only
// changes one of the two states; pods_controller asks the table again and does
// what it says. So a crash at any step, a lost or a repeated event end in the same
// place. Pure: no I/O, any thread.
#ifndef SK8_CORE_LIFECYCLE_H
#define SK8_CORE_LIFECYCLE_H

#include <string>

#include "lib/core/job.h"
#include "lib/kube/objects.h"

namespace sk8::core {

enum class PodState {
	unknown, // not in our cache; its absence is not proved
	gated,   // has schedulingGates: its owner does not want it placed yet
	refused, // wants a node but must not get one; the reason is known
	waiting, // wants a node
	kept,    // wants a node, and one is kept for it: a Binding there may have been sent
	bound,   // has a node: its processes may run
	stray,   // has a node, but not the one of its running job
	leaving, // being deleted, its processes may still run
	over,    // the kubelet has reported its last process gone, or it never had a node and goes
	gone,    // proved absent, never had a node
	lost,    // proved absent, had a node, nobody has seen its processes end: its node's agent is asked
};
inline constexpr int pod_states = 11;

enum class JobState {
	none,
	submitting, // asked for, no answer yet
	queued,
	running, // suspended included: a suspended job's pod is kept
	preempted, // it runs on for its grace, in which its pod is to end
	ended,
};
inline constexpr int job_states = 6;

enum class Effect {
	nothing,     // wait for the next event
	look,        // GET the pod: absence is proved, never assumed
	refuse,      // tell why, in condition and event
	submit,      // make the job
	mirror,      // tell in the condition what the job waits for; keep its excluded nodes right
	bind,        // hold on disk, then finalizer and Binding
	protect,     // our finalizer, and which job is its own, if they are not there yet
	adopt,       // mask what it holds and make it a job on the node where it is
	end_job,     // with the pod's own end as the job's
	delete_pod,  // the job ended first, or is about to
	again,       // the job ended before the pod had a node: delete the pod, or a new job
	release,     // the last process is gone: drop mask and finalizer
	forget,      // nothing is left to do
};

Effect next_effect(PodState pod, JobState job);

// What the engine knows of a pod beyond its object.
struct PodFacts {
	kube::PodPtr pod;         // latest object, or null
	bool absent = false;      // a GET proved that there is no pod of this uid
	std::string bound_node;   // our Binding was answered with success
	bool lost_node = false;   // it was bound, and etcd from a backup does not know: see looked()
	bool proved_over = false; // it has been over before: only a backup of etcd makes that untrue
	std::string held_node;    // where, by the ledger, it may have processes; empty: nowhere
	bool refused = false;
	bool declared_gone = false; // a person said that no process of it is left
	bool seen_gone = false;     // ... and its node's agent, since it is lost: lost_pods.h
	const Job *job = nullptr; // its live or last job
};
PodState classify(const PodFacts &facts);
JobState classify(const Job *job, bool submitting);

// Has the kubelet reported that no container of this pod runs or will run?
bool kubelet_reports_over(const kube::Pod &pod);

// Does it carry the finalizer that keeps its object until then?
bool has_finalizer(const kube::Pod &pod);

const char *name(PodState s);
const char *name(JobState s);
const char *name(Effect e);

} // namespace sk8::core

#endif
