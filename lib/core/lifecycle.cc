// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/lifecycle.h"

#include <algorithm>

#include "lib/core/names.h"

namespace sk8::core {

using enum Effect;

// Rows in the order of PodState, columns in the order of JobState.
static constexpr Effect table[pod_states][job_states] = {
	//            none      submitting  queued    running   preempted   ended
	/* unknown */ {look,    nothing,    look,     look,     look,       look},
	/* gated   */ {nothing, nothing,    end_job,  end_job,  end_job,    nothing},
	/* refused */ {refuse,  nothing,    end_job,  end_job,  end_job,    refuse},
	/* waiting */ {submit,  nothing,    mirror,   bind,     end_job,    again},
	/* kept    */ {adopt,   nothing,    adopt,    bind,     bind,       again},
	/* bound   */ {adopt,   nothing,    adopt,    protect,  delete_pod, delete_pod},
	/* stray   */ {adopt,   nothing,    adopt,    end_job,  end_job,    adopt},
	/* leaving */ {nothing, nothing,    end_job,  nothing,  delete_pod, delete_pod},
	/* over    */ {release, nothing,    end_job,  end_job,  end_job,    release},
	/* gone    */ {forget,  nothing,    end_job,  end_job,  end_job,    forget},
	/* lost    */ {nothing, nothing,    end_job,  end_job,  end_job,    nothing},
};

Effect next_effect(PodState pod, JobState job)
{
	return table[static_cast<int>(pod)][static_cast<int>(job)];
}

// A container that waits and was never created cannot have a process.
static bool no_process(const kube::ContainerStatus &c)
{
	using State = kube::ContainerStatus::State;
	return c.state == State::terminated || (c.state == State::waiting && !c.started_ever);
}

bool kubelet_reports_over(const kube::Pod &pod)
{
	// startTime is the kubelet's signature: others (pod garbage collector) can
	// set a final phase on a pod whose kubelet they cannot reach.
	if (pod.started_at == 0)
		return false;
	for (const auto &c : pod.containers)
		if (!no_process(c))
			return false;
	// After the garbage collector's phase, what waited when the kubelet was last heard of
	// may have started since.
	if (!pod.garbage_collected && (pod.phase == "Succeeded" || pod.phase == "Failed"))
		return true;
	// A deleted pod that is empty but not yet over for its kubelet still counts there, which
	// would reject (OutOfcpu) the pod that gets its cores. Before Kubernetes 1.27 it could go
	// without a final phase.
	const bool last_word = pod.garbage_collected || (pod.meta.deleting && !pod.gets_final_phase);
	if (!last_word || pod.containers.empty())
		return false;
	for (const auto &c : pod.containers)
		if (c.state != kube::ContainerStatus::State::terminated)
			return false;
	return true;
}

bool has_finalizer(const kube::Pod &pod)
{
	return std::ranges::find(pod.meta.finalizers, names::finalizer) != pod.meta.finalizers.end();
}

PodState classify(const PodFacts &f)
{
	using enum PodState;
	const bool had_node = f.lost_node || !f.held_node.empty() || !f.bound_node.empty() || (f.pod && !f.pod->node_name.empty());

	if (f.pod && (had_node ? kubelet_reports_over(*f.pod) : f.pod->meta.deleting))
		return over;
	if (f.pod && had_node && f.declared_gone)
		return over;
	if (f.absent)
		return had_node && !f.declared_gone && !f.seen_gone && !f.proved_over ? lost : gone;
	if (!f.pod)
		return unknown;

	const kube::Pod &pod = *f.pod;
	const std::string &node = pod.node_name.empty() ? f.bound_node : pod.node_name;
	if (!node.empty()) {
		if (pod.meta.deleting)
			return leaving;
		if (f.job && f.job->running() && f.job->node != node)
			return stray;
		return bound;
	}
	// Nothing that is being deleted can be bound any more.
	if (pod.meta.deleting)
		return f.lost_node ? leaving : over;
	if (pod.phase == "Succeeded" || pod.phase == "Failed")
		return over;
	if (pod.scheduling_gated)
		return gated;
	// Not bound in this object, but a Binding may have been sent that arrives yet: it
	// can only run where it is kept, and its own mask keeps an ordinary job away there.
	if (!f.held_node.empty())
		return f.job && f.job->running() && f.job->node != f.held_node ? stray : kept;
	return f.refused ? refused : waiting;
}

JobState classify(const Job *job, bool submitting)
{
	if (submitting)
		return JobState::submitting;
	if (!job)
		return JobState::none;
	if (job->ended())
		return JobState::ended;
	if (job->preempted())
		return JobState::preempted;
	return job->running() ? JobState::running : JobState::queued;
}

const char *name(PodState s)
{
	static const char *const names[pod_states] = {"unknown", "gated",   "refused", "waiting",
						      "kept",    "bound",   "stray",   "leaving", "over",
						      "gone",    "lost"};
	return names[static_cast<int>(s)];
}

const char *name(JobState s)
{
	static const char *const names[job_states] = {"none",	 "submitting", "queued",
						      "running", "preempted",  "ended"};
	return names[static_cast<int>(s)];
}

const char *name(Effect e)
{
	static const char *const names[] = {"nothing", "look",  "refuse",  "submit",     "mirror",
					    "bind",    "protect", "adopt", "end_job",    "delete_pod",
					    "again",   "release", "forget"};
	return names[static_cast<int>(e)];
}

} // namespace sk8::core
