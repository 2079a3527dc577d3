// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The container that a job of Slurm's own wants by --k8s-image: its kubelet makes it in the job's reservation
// pod. Nothing runs in it by itself: spank_k8s.so lets the tasks of the job's steps into its mount namespace. Pure.
#ifndef SK8_CORE_JOB_CONTAINER_H
#define SK8_CORE_JOB_CONTAINER_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/kube/objects.h"
#include "lib/sk8_container.h"

namespace sk8::core {

struct PodTemplate;

// Its name in the pod.
inline constexpr std::string_view job_container = "job";

inline constexpr std::size_t longest_image = SK8_LONGEST_IMAGE;

// What is wrong with the reference of an image, as a part of a sentence; empty: nothing that one sees.
std::string bad_image(std::string_view image);

// Of the volume that is ours in such a pod.
inline constexpr std::string_view pause_volume = "slurm-k8s";

// The groups of a job's user besides the one of his job, for the processes that are no tasks: those have theirs from Slurm.
struct JobGroups {
	std::vector<std::uint32_t> ids;
	bool strict = false; // the node's runtime can leave out those that an image says its user has
};

struct JobContainerWish {
	std::string image;
	std::string pause;           // on the node: the program that keeps it alive
	std::uint32_t uid = 0, gid = 0; // its job's
	const PodTemplate *more = nullptr; // what its user wants besides
	std::string service_account;       // its user's wish, and allowed; empty: none
	JobGroups groups;
	bool counts_memory = true;         // Slurm does: other containers request what they may use
};
// The securityContext of every container that we make, and of those that users may add: no capability, and no way to any.
Json without_privileges();

// Makes the spec of a reservation pod one with such a container, which requests these resources.
void add_job_container(Json &spec, const JobContainerWish &wish, const Json &resources);

// That one of all containers of a pod; null: it has none.
const kube::ContainerStatus *find_job_container(const std::vector<kube::ContainerStatus> &containers);

// Its state, as its kubelet tells it.
struct JobContainerState {
	bool runs = false;   // and what the template wants beside it has started
	std::string trouble; // why it never will, as a part of a sentence; empty: nothing tells
};
JobContainerState state_of_job_container(const std::vector<kube::ContainerStatus> &containers);

// What is known of a volume that its kubelet cannot mount: will it, by itself, never?
bool is_lasting_mount_trouble(std::string_view message);
// The claim that the kubelet says is not bound; empty: it says something else.
std::string unbound_claim(std::string_view ns, std::string_view message);

} // namespace sk8::core

#endif
