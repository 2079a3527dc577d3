// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/job_container.h"

#include <algorithm>
#include <array>

#include "lib/core/kube_port.h"
#include "lib/core/pod_template.h"
#include "lib/core/service_account.h"

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

Json without_privileges()
{
	Json drop = Json::array();
	drop.append(Json::string("ALL"));
	Json out = Json::object();
	return out.set("allowPrivilegeEscalation", Json::boolean(false)).set("capabilities", Json::object().set("drop", drop));
}

static Json with_claims(const Json &resources, const Json &claims)
{
	Json out = Json::object();
	resources.each_member([&](std::string_view key, const Json &value) { out.set(key, value); });
	return claims.size() > 0 ? out.set("claims", claims) : out;
}

static Json container(const JobContainerWish &wish, const Json &resources)
{
	Json mounts = Json::array(), command = Json::array();
	Json mount = Json::object();
	mount.set("name", pause_volume).set("mountPath", pause_in_container).set("readOnly", Json::boolean(true));
	mounts.append(mount);
	if (wish.more)
		wish.more->job_mounts.each_item([&](const Json &more) { mounts.append(more); });
	if (!wish.service_account.empty())
		mounts.append(token_mount());
	command.append(Json::string(pause_in_container));
	const bool says_when = wish.more && wish.more->pull_policy.is_string();
	Json out = Json::object();
	out.set("name", job_container).set("image", wish.image);
	out.set("imagePullPolicy", says_when ? wish.more->pull_policy : Json::string("IfNotPresent"));
	// The folder of the image a runtime would make, as root, also in a claim or host path. Tasks do not begin there.
	out.set("command", command).set("args", Json::array()).set("workingDir", "/");
	out.set("resources", with_claims(resources, wish.more ? wish.more->job_claims : Json()));
	return out.set("securityContext", without_privileges()).set("volumeMounts", mounts);
}

// What it may use is a part of what the job has. One that ends before the job starts uses what the job has not yet.
static Json with_requests(const Json &container, const JobContainerWish &wish, bool lasts)
{
	const Json limits = container["resources"]["limits"];
	Json requests = Json::object(), out = Json::object();
	requests.set("cpu", lasts && limits["cpu"].is_string() ? limits["cpu"] : Json::string("0"));
	requests.set("memory", lasts && wish.counts_memory ? limits["memory"] : Json::string("0"));
	container.each_member([&](std::string_view key, const Json &value) { out.set(key, value); });
	return out.set("resources", with_claims(Json::object().set("requests", requests).set("limits", limits), container["resources"]["claims"]));
}

// Its containers have their process IDs together, and see no other process of the node: an image gives its user what groups it
// likes, and by /proc/PID/root of a process of the user's outside these would be groups of the node. Tasks of Slurm, which are no
// processes of it, have the node's /proc (plugins/spank/mounts.h).
void add_job_container(Json &spec, const JobContainerWish &wish, const Json &resources)
{
	Json containers = Json::array(), volumes = Json::array();
	containers.append(container(wish, resources));
	Json host = Json::object();
	host.set("path", wish.pause).set("type", "File");
	volumes.append(Json::object().set("name", pause_volume).set("hostPath", host));
	if (wish.more) {
		Json first = Json::array();
		wish.more->containers.each_item([&](const Json &more) { containers.append(with_requests(more, wish, true)); });
		wish.more->init_containers.each_item([&](const Json &more) { first.append(with_requests(more, wish, more["restartPolicy"].is_string())); });
		wish.more->volumes.each_item([&](const Json &more) { volumes.append(more); });
		spec.set("initContainers", first).set("imagePullSecrets", wish.more->pull_secrets);
		if (claims_devices(*wish.more))
			spec.set("resourceClaims", wish.more->device_claims);
	}
	Json context = Json::object();
	context.set("runAsUser", Json::integer(wish.uid)).set("runAsGroup", Json::integer(wish.gid));
	if (!wish.groups.ids.empty()) {
		Json ids = Json::array();
		for (const std::uint32_t id : wish.groups.ids)
			ids.append(Json::integer(id));
		context.set("supplementalGroups", ids);
	}
	if (wish.groups.strict) // a kubelet that cannot do it refuses the pod
		context.set("supplementalGroupsPolicy", "Strict");
	context.set("seccompProfile", Json::object().set("type", "RuntimeDefault"));
	if (!wish.service_account.empty()) {
		volumes.append(token_volume());
		spec.set("serviceAccountName", wish.service_account);
	}
	spec.set("containers", containers).set("volumes", volumes).set("shareProcessNamespace", Json::boolean(true));
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

static std::string text_of(const kube::ContainerStatus &c)
{
	return (c.reason.empty() ? "it has ended" : c.reason) + (c.message.empty() ? "" : ": " + c.message);
}

JobContainerState state_of_job_container(const std::vector<kube::ContainerStatus> &containers)
{
	using State = kube::ContainerStatus::State;
	const auto *job = find_job_container(containers);
	if (!job)
		return {};
	bool wait = job->state == State::waiting;
	for (const auto &c : containers) {
		wait |= c.state == State::waiting;
		if (c.state == State::waiting && is_final(c.reason) && &c != job)
			return {.trouble = "its container " + c.name + " does not start: " + text_of(c)};
	}
	if (job->state == State::terminated || (job->state == State::waiting && is_final(job->reason)))
		return {.trouble = "its container does not start: " + text_of(*job)};
	return {.runs = !wait};
}

bool is_lasting_mount_trouble(std::string_view message)
{
	return message.find("not found") != message.npos || message.find(bound_when_placed) != message.npos;
}

// desired_state_of_world_populator.go: "error processing PVC NAMESPACE/NAME: PVC is not bound"
std::string unbound_claim(std::string_view ns, std::string_view message)
{
	const std::string begins = "PVC " + std::string(ns) + "/";
	const auto end = message.find(": PVC is not bound");
	const auto begin = end == message.npos ? end : message.rfind(begins, end);
	return begin == message.npos ? "" : std::string(message.substr(begin + begins.size(), end - begin - begins.size()));
}

} // namespace sk8::core
