// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A reservation pod: what one job of Slurm's own holds on one node, as Kubernetes counts
// it. It does nothing; that the kubelet has admitted it says that there was room. Pure.
#ifndef SK8_CORE_RESERVATION_H
#define SK8_CORE_RESERVATION_H

#include <optional>
#include <string>

#include "lib/base/json.h"
#include "lib/core/foreign_pod.h"
#include "lib/core/job_container.h"
#include "lib/core/native_job.h"
#include "lib/core/pod_template.h"
#include "lib/core/settings.h"

namespace sk8::core {

// "slurm-12-692dcb50-n1": one run of one job on one node, for ever.
std::string reservation_name(JobRef job, const std::string &node);
// The job of which a pod of this name is on this node; nothing: of none.
std::optional<JobRef> job_of_reservation(std::string_view name, const std::string &node);
// The node that such a name says; empty: it is none.
std::string node_of_reservation(std::string_view name);
// Whether a pod of ours may have had this name once.
bool is_reservation_name(std::string_view name);

// The object to be created. user: a name, or a uid as text. devices: what it requests of extended resources.
// more: what read_pod_template() has made of the job's; its containers must fit (does_not_fit()).
Json reservation_object(const NativeJob &job, const NativeShare &share, const std::string &user,
			const ReservationSettings &settings, const std::map<std::string, std::int64_t> &devices = {},
			const PodTemplate *more = nullptr, const JobGroups &groups = {});
// One that holds the devices of its job alone, where cores and memory are nobody's to reserve.
Json device_reservation_object(const NativeJob &job, const NativeShare &share, const std::string &user,
			       const ReservationSettings &settings, const std::map<std::string, std::int64_t> &devices);
// The agent tells the job's steps what the device plugins of these resources answered (step_devices() of lib/core/gres.h).
void add_step_devices(Json &object, const std::string &resources);
// Why the containers of a template have no room in what the job has there, as a part of a sentence; empty: they have.
std::string does_not_fit(const PodTemplate &more, const NativeShare &share);

// Of the container in which its tasks run; empty: its user has named none.
const std::string &image_of(const NativeJob &job, const PodTemplate *more);

// Its spec. node: empty, it is bound to one later. resources: of the one container.
Json reservation_spec(const std::string &node, const Json &resources, const ReservationSettings &settings);

inline constexpr std::string_view reservation_container = "reservation";

// A label's value from any text: what is not allowed there becomes '_'.
std::string label_value(std::string_view text);

// Does this pod hold no more than the share, where the share is? Only then it takes nothing that
// the job does not have.
bool fits_share(const ForeignPod &pod, const NativeShare &share, const std::vector<ResourceSettings> &resources = {});

// What is known of the object that is there, as a job sees it.
struct ReservationState {
	std::string uid; // empty: none
	bool fits = false, admitted = false, over = false, deleting = false;
	bool was_admitted = false, by_us = false; // by_us: we have asked for its deletion
	bool found_deleting = false; // when we first heard of it
	JobContainerState container;
	std::string reason;
	kube::Disruption disruption = kube::Disruption::none;
	std::string trouble; // why there is none; empty: nothing has gone wrong
};
enum class Gone { no, seen, unseen }; // the object

// So long after the start of an engine a request of the one before it may take effect: kube::ClientSettings.
inline constexpr Millis longest_request{30'000};

struct ReservationFacts {
	bool wanted = false;  // the job uses the node
	bool exists = false;  // there is an object
	bool over = false;    // its kubelet has refused it, or has ended it
	bool deleting = false;
	bool busy = false;    // an answer is awaited
	bool unbound = false; // it has no node yet, and is to get one now
	bool doubtful = false; // nobody knows whether it has one, or is there at all
};
enum class ReservationStep { none, create, remove, place, look };
ReservationStep next_step(const ReservationFacts &facts);

} // namespace sk8::core

#endif
