// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/job_container.h"

#include <algorithm>
#include <array>

namespace sk8::core {

static constexpr std::string_view pause_in_container = "/.slurm-k8s/pause";

std::string bad_image(std::string_view image)
{
	const auto good = [](unsigned char c) {
		return std::isalnum(c) || std::string_view("._-/:@+").find(static_cast<char>(c)) != std::string_view::npos;
	};
	if (image.empty())
		return "is empty, use for example registry.example.com/team/app:1.2";
	if (image.size() > longest_image)
		return "is longer than " + std::to_string(longest_image) + " characters";
	if (!std::ranges::all_of(image, good) || !std::isalnum(static_cast<unsigned char>(image.front())))
		return "is no image's name, use for example registry.example.com/team/app:1.2";
	return "";
}

static Json container(const JobContainerWish &wish, const Json &resources)
{
	Json drop = Json::array(), mounts = Json::array(), command = Json::array();
	drop.append(Json::string("ALL"));
	Json mount = Json::object();
	mount.set("name", "pause").set("mountPath", pause_in_container).set("readOnly", Json::boolean(true));
	mounts.append(mount);
	command.append(Json::string(pause_in_container));
	Json context = Json::object();
	context.set("allowPrivilegeEscalation", Json::boolean(false)).set("capabilities", Json::object().set("drop", drop));
	Json out = Json::object();
	out.set("name", job_container).set("image", wish.image).set("imagePullPolicy", "IfNotPresent");
	out.set("command", command).set("args", Json::array()).set("resources", resources);
	return out.set("securityContext", context).set("volumeMounts", mounts);
}

// hostPID: its /proc is the node's, in which tasks of Slurm, which are no processes of the container's, find themselves.
void add_job_container(Json &spec, const JobContainerWish &wish, const Json &resources)
{
	Json containers = Json::array(), volumes = Json::array();
	containers.append(container(wish, resources));
	Json host = Json::object();
	host.set("path", wish.pause).set("type", "File");
	volumes.append(Json::object().set("name", "pause").set("hostPath", host));
	Json context = Json::object();
	context.set("runAsUser", Json::integer(wish.uid)).set("runAsGroup", Json::integer(wish.gid));
	context.set("seccompProfile", Json::object().set("type", "RuntimeDefault"));
	spec.set("containers", containers).set("volumes", volumes).set("hostPID", Json::boolean(true));
	spec.set("securityContext", context);
}

// Reasons for which a kubelet waits that do not go by themselves (pkg/kubelet/images/types.go,
// pkg/kubelet/kuberuntime/kuberuntime_container.go). Of ErrImagePull it is the next that tells: it is tried again.
static bool is_final(std::string_view reason)
{
	static constexpr std::array<std::string_view, 9> known{
		"ImagePullBackOff",  "ErrImageNeverPull",    "InvalidImageName",   "ImageInspectError", "SignatureValidationFailed",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"};
	return std::ranges::find(known, reason) != known.end();
}

const kube::ContainerStatus *find_job_container(const std::vector<kube::ContainerStatus> &containers)
{
	const auto c = std::ranges::find(containers, job_container, &kube::ContainerStatus::name);
	return c == containers.end() ? nullptr : &*c;
}

JobContainerState state_of_job_container(const std::vector<kube::ContainerStatus> &containers)
{
	using State = kube::ContainerStatus::State;
	const auto *c = find_job_container(containers);
	if (!c)
		return {};
	if (c->state == State::running)
		return {.runs = true};
	if (c->state == State::waiting && !is_final(c->reason))
		return {};
	return {.trouble = "its container does not start: " + (c->reason.empty() ? "it has ended" : c->reason) +
			   (c->message.empty() ? "" : ": " + c->message)};
}

} // namespace sk8::core
