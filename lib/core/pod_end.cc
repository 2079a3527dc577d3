// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pod_end.h"

#include "lib/base/text.h"

namespace sk8::core {

using Container = kube::ContainerStatus;

static constexpr int exit_sigkill = 128 + 9;
static constexpr int exit_sigterm = 128 + 15;

static std::uint32_t wait_status(const Container &c)
{
	if (c.signal > 0 && c.signal < 128)
		return static_cast<std::uint32_t>(c.signal);
	return static_cast<std::uint32_t>(c.exit_code & 0xff) << 8;
}

static bool failed(const Container &c)
{
	return c.state == Container::State::terminated && (c.exit_code != 0 || c.signal != 0);
}

// The one that failed first is the cause; the others were ended because of it.
static const Container *first_failure(const kube::Pod &pod)
{
	const Container *first = nullptr;
	for (const auto &c : pod.containers)
		if (failed(c) && (!first || c.finished_at < first->finished_at))
			first = &c;
	return first;
}

static const Container *killed_for_memory(const kube::Pod &pod)
{
	for (const auto &c : pod.containers)
		if (failed(c) && c.reason == "OOMKilled")
			return &c;
	return nullptr;
}

std::int64_t deletion_asked_at(const kube::Pod &pod)
{
	return pod.meta.deletion_time - pod.meta.deletion_grace_seconds;
}

bool deleted_alive(const kube::Pod &pod)
{
	if (!pod.meta.deleting)
		return false;
	for (const auto &c : pod.containers)
		if (c.state == Container::State::running)
			return true;
	return false;
}

static bool terminated_by_signal(const Container &c)
{
	return c.reason != "OOMKilled" && (c.exit_code == exit_sigkill || c.exit_code == exit_sigterm);
}

// Did the containers end because somebody deleted the pod, or before that?
// Both times have a resolution of one second. In the same second it tells that we
// saw them run while it was being deleted (a server ends with 0 at SIGTERM); if we
// were not there to see it, the exit code of a terminated process does.
static bool ended_by_deletion(const kube::Pod &pod, std::int64_t deleted_alive_at)
{
	if (!pod.meta.deleting)
		return false;
	const bool was_deleted_alive = deleted_alive_at != 0;
	const std::int64_t asked = was_deleted_alive ? deleted_alive_at : deletion_asked_at(pod);
	// The kubelet's last delete, with grace 0, overwrites the time: of who was away
	// meanwhile only the exit code is left to tell.
	const bool overwritten = !was_deleted_alive && pod.meta.deletion_grace_seconds == 0;
	bool any = false;
	for (const auto &c : pod.containers) {
		if (c.state != Container::State::terminated || c.init)
			continue;
		any = true;
		if (c.finished_at > asked)
			return true;
		if ((c.finished_at == asked || overwritten) &&
		    (was_deleted_alive || terminated_by_signal(c)))
			return true;
	}
	return !any; // never started, or never reported
}

bool ended_with_its_node(const kube::Pod &pod)
{
	// kubelet: kuberuntime, "ContainerStatusUnknown"; containerd: UnknownExitStatus 255, "Unknown"
	for (const auto &c : pod.containers)
		if (failed(c) && (c.reason == "ContainerStatusUnknown" || (c.reason == "Unknown" && c.exit_code == 255)))
			return true;
	return false;
}

static constexpr std::size_t max_comment = 512;

// For the job's comment, which scontrol prints as it is: one line.
static std::string detail(const kube::Pod &pod, const Container *c)
{
	std::string text = pod.reason;
	if (!pod.message.empty())
		text += (text.empty() ? "" : ": ") + pod.message;
	if (c && text.empty()) {
		text = "container " + c->name + ": " + (c->reason.empty() ? "Error" : c->reason);
		text += ", exit code " + std::to_string(c->exit_code);
	}
	return one_line(text, max_comment);
}

static JobEnd end_of_failed(const kube::Pod &pod)
{
	if (pod.reason == "DeadlineExceeded")
		return {SK8_JOB_TIMEOUT, 0, detail(pod, nullptr)};
	if (const Container *c = killed_for_memory(pod))
		return {SK8_JOB_OUT_OF_MEMORY, wait_status(*c), detail(pod, c)};
	if (const Container *c = first_failure(pod))
		return {SK8_JOB_FAILED, wait_status(*c), detail(pod, c)};
	// Its kubelet rejected it: no container ever was, and none will be told of. Only a kubelet that
	// starts anew makes exit code 137 of that (ContainerStatusUnknown).
	return {SK8_JOB_FAILED, 1 << 8, detail(pod, nullptr)};
}

JobEnd end_of_pod(const kube::Pod *pod, PodState state, const std::string &refusal,
		  std::int64_t deleted_alive_at)
{
	switch (state) {
	case PodState::gated:
		return {SK8_JOB_CANCELLED, 0, "the pod has scheduling gates"};
	case PodState::refused:
		return {SK8_JOB_CANCELLED, 0, refusal};
	case PodState::stray:
		return {SK8_JOB_CANCELLED, 0, "the pod runs, or is about to run, on another node"};
	case PodState::over:
		break;
	default:
		return {SK8_JOB_CANCELLED, 0, "the pod was deleted"};
	}
	if (ended_by_deletion(*pod, deleted_alive_at))
		return {SK8_JOB_CANCELLED, 0, "the pod was deleted"};
	if (pod->phase == "Failed")
		return end_of_failed(*pod);
	if (pod->phase == "Succeeded")
		return {SK8_JOB_COMPLETED, 0, ""};
	return {SK8_JOB_CANCELLED, 0, "the pod was deleted"};
}

JobEnd end_of_preempted(JobEnd end, PodState state)
{
	const bool other_reason = state == PodState::gated || state == PodState::refused || state == PodState::stray;
	if (end.state != SK8_JOB_CANCELLED || other_reason)
		return end;
	return {SK8_JOB_PREEMPTED, 0,
		state == PodState::waiting ? "preempted before its pod was bound" : "preempted, and its pod has ended"};
}

} // namespace sk8::core
