// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The engine's only way to the Kubernetes API. Real: kube_link; in tests a model.
// All calls return at once; `done` runs later on the engine's thread, once.
// Every write is safe alone: it carries the uid of the pod it is meant for.
#ifndef SK8_CORE_KUBE_PORT_H
#define SK8_CORE_KUBE_PORT_H

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/core/annotations.h"
#include "lib/core/pod_key.h"
#include "lib/kube/dra_objects.h"
#include "lib/kube/objects.h"

namespace sk8::core {

// The volumeBindingMode of claims that wait for kube-scheduler, and of none of ours.
inline constexpr std::string_view bound_when_placed = "WaitForFirstConsumer";

inline PodKey key_of(const std::string &cluster, const kube::Meta &pod)
{
	return {cluster, pod.ns, pod.name, pod.uid};
}

// A kube-apiserver that has just started refuses (403) for some seconds what it allows
// afterwards: a right is missing if it is refused so long after the first time.
inline constexpr Millis denial_lasts{10'000};

struct KubeReply {
	int status = 0; // HTTP; 0: no answer, the request may or may not have had its effect
	bool not_sent = false; // with status 0: it had no effect and cannot have one any more
	std::string error; // one sentence, empty if status is 2xx
	std::optional<Millis> retry_after;
	kube::PodPtr pod; // of get_pod and create_pod
	kube::ResourceClaimPtr claim; // of patch_claim

	bool ok() const { return status >= 200 && status < 300; }
	// Nobody knows whether the request had its effect, or will have it yet.
	bool unsure() const { return (status == 0 && !not_sent) || status >= 500; }
};

struct PodCondition {
	std::string reason, message;

	bool operator==(const PodCondition &) const = default;
};

struct PodEvent {
	bool warning = false;
	std::string reason, message;
	// Unix time in microseconds; a repeated request with the same one makes no second event.
	std::int64_t time_us = 0;
};

struct Deletion {
	std::int64_t grace_seconds = 30; // >= 1: 0 would remove the object while its containers live
	std::string if_version;          // not empty: refused (409) if the object has changed since
};

class KubePort {
public:
	virtual ~KubePort() = default;
	using Done = std::function<void(const KubeReply &)>;

	virtual void get_pod(const PodKey &key, Done done) = 0;
	// Adds or removes our finalizer; 409 if the uid is another.
	virtual void set_finalizer(const PodKey &key, bool present, Done done) = 0;
	virtual void bind(const PodKey &key, const std::string &node,
			  const std::map<std::string, std::string> &annotations, Done done) = 0;
	// 409 if the uid is another.
	virtual void annotate_pod(const PodKey &key, const AnnotationChanges &changes, Done done) = 0;
	virtual void delete_pod(const PodKey &key, const Deletion &how, Done done) = 0;
	// PodScheduled=False. Refused by the server (409) if resource_version is old.
	virtual void set_condition(const PodKey &key, const std::string &resource_version,
				   const PodCondition &condition, Done done) = 0;
	// The object as the API server has it; null unless the reply is ok.
	using Manifest = std::function<void(const KubeReply &, const Json &object)>;
	virtual void get_manifest(const PodKey &key, Manifest done) = 0;
	// The reply has the new pod.
	virtual void create_pod(const std::string &ns, const Json &object, Done done) = 0;
	virtual void create_event(const PodKey &key, const PodEvent &event, Done done) = 0;

	// A merge patch of a ResourceClaim, or of its status, which names uid and version (dra_claims.h): 409 if it is another by
	// now. The reply has the claim as it is then.
	virtual void patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, Done done) = 0;

	// What volumes say about nodes. ok: terms; else the sentence for the pod's owner.
	struct Volumes {
		bool retry = false; // not decided yet (no answer, claim not bound yet)
		std::string error;
		std::vector<std::vector<kube::NodeTerm>> terms; // one entry per volume
	};
	virtual void get_volumes(const PodKey &key, const std::vector<std::string> &claims,
				 std::function<void(const Volumes &)> done) = 0;
};

} // namespace sk8::core

#endif
