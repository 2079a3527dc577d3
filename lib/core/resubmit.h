// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A bare pod (no controller makes another one) whose job Slurm preempts, or whose node
// fails, is made again under its name when its last process is gone, as Slurm requeues a
// batch job: barePods: resubmit in slurm-k8s.yaml. The values for that, and what is pure
// of it; who does it: resubmits.h.
#ifndef SK8_CORE_RESUBMIT_H
#define SK8_CORE_RESUBMIT_H

#include <string>
#include <string_view>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/core/job.h"
#include "lib/core/pod_key.h"
#include "lib/core/settings.h"
#include "lib/kube/objects.h"

namespace sk8::core {

struct Resubmit {
	PodKey key; // the pod that goes
	Age age;    // of its job
	// wanted: we have deleted it because of its job. kept: its object goes, and what the new one
	// is made from is manifest (JSON). made: the new one is there, and is still to get the age.
	enum class Step { wanted, kept, made } step = Step::wanted;
	std::string manifest; // empty unless kept
	// Wall clock, seconds: our DELETE was sent then, and no answer has told that it is what
	// deletes the pod. 0: one has.
	std::int64_t unsure_since = 0;

	// As long as a pod's own object may be, but for who has written which field and its status.
	static constexpr std::size_t max_manifest = 512 * 1024;
	static constexpr std::size_t max_count = 10'000;        // of a cluster
	static constexpr std::size_t max_bytes = 64 * 1024 * 1024; // of all manifests of a cluster

	bool operator==(const Resubmit &) const = default;
};

const char *name(Resubmit::Step step);
bool parse_step(std::string_view text, Resubmit::Step &step);

// No controller makes another one.
bool is_bare(const kube::Pod &pod);

// May this pod be made again, if Slurm takes it its node? Its namespace's barePods, unless the
// pod itself does not want it (slurm-k8s.io/requeue: "false").
bool may_be_resubmitted(const kube::Pod &pod, const ClusterSettings &settings);

// The new pod, from the old one's object as the API server has it: the same but for what the
// server, the kubelet and we have written there. It says whose place it takes. Error: it is too
// large, or no pod of this uid.
Result<std::string> resubmitted_manifest(const Json &object, const PodKey &old);

// Its DELETE was left without an answer, and the pod is being deleted: did others ask for that
// before we did? The API server's clock tells (whole seconds) against ours.
bool deleted_by_others_first(const Resubmit &r, const kube::Pod &pod);

// Uid of the pod whose place it takes, by its own words; empty: of none.
std::string resubmitted_from(const kube::Pod &pod);

} // namespace sk8::core

#endif
