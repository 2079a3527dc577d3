// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Every name that we put into Kubernetes, or read from pods, in one place.
// Users' manifests depend on them.
#ifndef SK8_CORE_NAMES_H
#define SK8_CORE_NAMES_H

#include <initializer_list>
#include <string_view>

namespace sk8::core::names {

// Keeps the object of a bound pod until its containers are proven gone, so that
// neither `kubectl delete --force` nor a garbage collector can hide running
// processes from us. Put on just before the Binding, taken off by us only.
inline constexpr std::string_view finalizer = "slurm-k8s.io/job";

// Annotations that the Binding sets on the pod.
inline constexpr std::string_view job_id = "slurm-k8s.io/job-id";
inline constexpr std::string_view job_submit_time = "slurm-k8s.io/job-submit-time";
inline constexpr std::string_view job_node = "slurm-k8s.io/node";
inline constexpr std::string_view job_cores = "slurm-k8s.io/cores";
inline constexpr std::string_view job_gres = "slurm-k8s.io/gres-devices"; // if it has any
inline constexpr std::initializer_list<std::string_view> of_binding = {job_id, job_submit_time, job_node, job_cores, job_gres};
// On a pod that was made again: uid of the one whose place it takes.
inline constexpr std::string_view resubmitted_from = "slurm-k8s.io/resubmitted-from";

// On a node. drain-owner: slurm says that spec.unschedulable is set for as long as Slurm
// gives the node no jobs; the others why and by whom. kubernetes: an administrator has
// taken that cordon away, so what is done from then on is his, for as long as that reason holds.
inline constexpr std::string_view drain_owner = "slurm-k8s.io/drain-owner";
inline constexpr std::string_view drain_owner_slurm = "slurm";
inline constexpr std::string_view drain_owner_kubernetes = "kubernetes";
inline constexpr std::string_view drain_reason = "slurm-k8s.io/drain-reason";
inline constexpr std::string_view drain_by = "slurm-k8s.io/drain-by";
// Why Slurm would drain the node, and an administrator of Slurm has resumed it: words, comma list.
inline constexpr std::string_view resumed_in_slurm = "slurm-k8s.io/resumed-in-slurm";
// Read, not written: what people want to read in Slurm's reason for a cordon.
inline constexpr std::string_view cordon_reason = "slurm-k8s.io/cordon-reason";
// Written by the agent there, as the kubelet: pinned_cores.h.
inline constexpr std::string_view pinned_cores = "slurm-k8s.io/pinned-cores";
inline constexpr std::string_view devices = "slurm-k8s.io/devices"; // pod_devices.h
inline constexpr std::string_view numa = "slurm-k8s.io/numa";       // numa_cores.h
// lost_pods.h: what the agent is asked, and what it answers.
inline constexpr std::string_view lost = "slurm-k8s.io/lost";
inline constexpr std::string_view gone = "slurm-k8s.io/gone";
// The node's condition: True as soon as no job of Slurm is left.
inline constexpr std::string_view drained_condition = "SlurmDrained";

// Labels of reservation pods: kubectl get pods -l slurm-k8s.io/job is squeue, but for jobs that share a pod.
inline constexpr std::string_view reservation_job = "slurm-k8s.io/job";
inline constexpr std::string_view reservation_user = "slurm-k8s.io/user";
inline constexpr std::string_view reservation_account = "slurm-k8s.io/account";
// Label of a pod that the small jobs of a node share (its value is that node), and its annotation:
// their ids, comma list.
inline constexpr std::string_view shared_reservation = "slurm-k8s.io/shared-reservation";
inline constexpr std::string_view reservation_job_shared = "shared"; // its reservation_job: no job id
inline constexpr std::string_view reservation_jobs = "slurm-k8s.io/jobs";

// Who places a reservation pod that has no node at first, for its container claims devices: we do, and no scheduler looks at it.
inline constexpr std::string_view reservation_scheduler = "slurm-k8s-jobs";

// On a reservation pod: the extended resources, comma list, of whose devices the job's steps are told by the agent of its node.
inline constexpr std::string_view step_devices = "slurm-k8s.io/step-devices";

// The same, whose containers claim devices: so many times its kubelet was to look at it again.
inline constexpr std::string_view look_again = "slurm-k8s.io/look-again";

// The taint of nodes that only pods that go through Slurm may use; its effect is NoSchedule.
inline constexpr std::string_view dedicated_taint = "slurm-k8s.io/dedicated";
inline constexpr std::string_view dedicated_taint_value = "slurm";

// The taint of nodes that a job has without others' pods, as long as it may; the same effect.
inline constexpr std::string_view exclusive_taint = "slurm-k8s.io/exclusive";
inline constexpr std::string_view exclusive_taint_value = "slurm";
// What such a node has in Slurm.
inline constexpr std::string_view exclusive_feature = "k8s.exclusive";
inline constexpr std::string_view shared_feature = "k8s.shared";

// What the reason of a node that we drained in Slurm begins with.
inline constexpr std::string_view slurm_mark = "k8s: ";

// Reasons of the PodScheduled condition. Never "Unschedulable": autoscalers react to it.
inline constexpr std::string_view pending_reason = "SlurmPending";
inline constexpr std::string_view refused_reason = "SlurmRefused";

// Reasons of events.
inline constexpr std::string_view event_queued = "SlurmQueued";
inline constexpr std::string_view event_refused = "SlurmRefused";
inline constexpr std::string_view event_never_runs = "SlurmNeverRuns";
inline constexpr std::string_view event_scheduled = "Scheduled"; // as kube-scheduler says it
inline constexpr std::string_view event_bind_failed = "FailedScheduling";
inline constexpr std::string_view event_denied = "SlurmMissingRight";
inline constexpr std::string_view event_job_ended = "SlurmJobEnded";
inline constexpr std::string_view event_preempted = "SlurmPreempted";
inline constexpr std::string_view event_resubmitted = "SlurmResubmitted";
inline constexpr std::string_view event_not_resubmitted = "SlurmNotResubmitted";
inline constexpr std::string_view event_adopted = "SlurmAdopted";
inline constexpr std::string_view event_devices = "SlurmOtherDevices";
inline constexpr std::string_view event_unproven = "SlurmContainersUnproven";
inline constexpr std::string_view component = "slurm-k8s";

} // namespace sk8::core::names

#endif
