// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Every name that we put into Kubernetes, or read from pods, in one place.
// Users' manifests depend on them.
#ifndef SK8_CORE_NAMES_H
#define SK8_CORE_NAMES_H

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
inline constexpr std::string_view event_adopted = "SlurmAdopted";
inline constexpr std::string_view event_unproven = "SlurmContainersUnproven";
inline constexpr std::string_view component = "slurm-k8s";

} // namespace sk8::core::names

#endif
