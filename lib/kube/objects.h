// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The few Kubernetes objects we read, as plain values: only the fields that are
// used, decoded once when the object arrives, then immutable and shared between
// threads. Everything in them is hostile input: strings are bounded, numbers
// checked, lists cut at the limits below; what was refused is said in `problem`.
#ifndef SK8_KUBE_OBJECTS_H
#define SK8_KUBE_OBJECTS_H

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/result.h"

namespace sk8::kube {

// Fields every object has.
struct Meta {
	std::string ns; // empty for cluster-wide kinds
	std::string name;
	std::string uid;
	std::string resource_version; // opaque
	std::map<std::string, std::string> labels;
	std::map<std::string, std::string> annotations;
	std::vector<std::string> finalizers;
	bool deleting = false;                   // metadata.deletionTimestamp is set
	std::int64_t deletion_time = 0;          // that timestamp, seconds since 1970
	std::int64_t deletion_grace_seconds = 0; // deletionGracePeriodSeconds
	std::int64_t creation_time = 0;          // seconds since 1970
	std::string controller_kind;             // of the owner with controller: true, or empty
	std::string controller_name;
};

// One term of nodeSelectorTerms[].matchExpressions / matchFields, or a label selector.
struct NodeRequirement {
	std::string key;
	std::string op; // In, NotIn, Exists, DoesNotExist, Gt, Lt
	std::vector<std::string> values;
	bool field = false; // matchFields: key is metadata.name
};
using NodeTerm = std::vector<NodeRequirement>; // all must hold

// Each pod has two tolerations at least (admission plugin DefaultTolerationSeconds): they
// are to be small. other: one that we do not know; nothing tolerates it, and it tolerates nothing.
enum class TaintEffect : std::uint8_t { all, no_schedule, prefer_no_schedule, no_execute, other };
enum class TolerationOperator : std::uint8_t { equal, exists, other };

struct Toleration {
	std::string key, value; // key empty: of every taint, if it exists
	TolerationOperator op = TolerationOperator::equal;
	TaintEffect effect = TaintEffect::all;
};

struct Taint {
	std::string key, value;
	TaintEffect effect = TaintEffect::no_schedule;

	bool operator==(const Taint &) const = default;
};

struct HostPort {
	std::string ip; // empty = all
	std::string protocol;
	std::int32_t port = 0;
};

// Amounts a container or pod asks for.
struct Resources {
	std::int64_t milli_cpu = 0;
	std::int64_t memory_bytes = 0;
	std::map<std::string, std::int64_t> extended; // nvidia.com/gpu -> 2, hugepages-2Mi -> bytes
};

struct ContainerStatus {
	std::string name;
	enum class State { waiting, running, terminated } state = State::waiting;
	std::string id;              // by its runtime, without its scheme; empty: it has none, or an odd one
	std::string reason, message; // of the waiting or terminated state
	std::int32_t exit_code = 0;  // terminated
	std::int32_t signal = 0;     // terminated, if the runtime said so
	std::int64_t finished_at = 0; // seconds since 1970
	bool init = false;
	bool started_ever = false; // has a containerID: the kubelet created it once
};

// A claim for devices (Dynamic Resource Allocation) of a pod.
struct PodResourceClaim {
	std::string name;  // in the pod
	std::string claim; // the ResourceClaim; empty: it is to be made from a template, and is not there yet

	bool operator==(const PodResourceClaim &) const = default;
};

// The reason of a pod's condition DisruptionTarget (Kubernetes 1.26 and later, "Pod disruption
// conditions"): who ends it, and not its own containers.
enum class Disruption : std::uint8_t { none, eviction, preemption, taint, garbage, kubelet, other };

struct Pod {
	Meta meta;

	// spec
	std::string scheduler_name;
	std::string node_name; // empty until bound
	bool scheduling_gated = false;
	std::string restart_policy;
	std::string priority_class;
	std::int32_t priority = 0;
	std::int64_t grace_seconds = 30;
	std::optional<std::int64_t> active_deadline_seconds;
	// The pod's effective request: max(containers + sidecars, init) + overhead,
	// or the pod-level resources (Kubernetes: "Resource sharing within containers",
	// KEP-753 sidecars, KEP-2837 pod-level resources, "Pod Overhead").
	Resources request;
	bool has_cpu_request = false, has_memory_request = false;
	std::map<std::string, std::string> node_selector;
	std::vector<NodeTerm> required_node_terms; // any may hold; empty = no affinity
	bool has_required_node_affinity = false;
	bool has_required_pod_affinity = false; // pod affinity or anti-affinity, required
	bool has_topology_spread = false;       // DoNotSchedule
	std::vector<Toleration> tolerations;
	std::vector<HostPort> host_ports;
	std::vector<std::string> claims; // names of PersistentVolumeClaims, ephemeral ones included
	std::vector<PodResourceClaim> resource_claims;
	bool in_pod_group = false; // any gang marker that we know
	std::string service_account;

	// status
	std::string phase;  // Pending, Running, Succeeded, Failed, Unknown
	std::string reason; // DeadlineExceeded, Evicted, NodeAffinity, ...
	std::string message;
	std::vector<ContainerStatus> containers; // init, regular and ephemeral; of more than max_containers one in each state
	std::int64_t started_at = 0; // status.startTime: the kubelet has seen the pod
	bool admitted = false;       // is_admitted()
	bool resize_unheard = false; // is_resize_unheard()
	Disruption disruption = Disruption::none;
	bool garbage_collected = false; // the pod garbage collector wrote the phase, not the kubelet
	// Condition PodReadyToStartContainers is there (by default from Kubernetes 1.29 on): a kubelet
	// that ends every pod with a final phase.
	bool gets_final_phase = false;
	bool scheduled_condition_true = false;
	std::string scheduled_reason, scheduled_message; // of PodScheduled, if present

	// Why this pod cannot be placed whatever happens (absurd request, too many
	// constraints ...): one sentence, or empty.
	std::string problem;
};
using PodPtr = std::shared_ptr<const Pod>;

// Of a node. status: True, False, Unknown.
struct NodeCondition {
	std::string type, status, reason, message; // message: for people, cut when it is long

	bool operator==(const NodeCondition &) const = default;
};

struct Node {
	Meta meta;
	bool unschedulable = false;
	std::string cordoned_by; // the field manager that has set it ("kubectl-cordon"); empty: not known
	std::vector<Taint> taints;
	bool ready = false;
	std::int64_t heartbeat = 0; // of the condition Ready, seconds since 1970 by the kubelet's clock
	std::vector<NodeCondition> conditions;
	Resources allocatable;
	std::int64_t allocatable_pods = 0;
	bool strict_groups = false; // supplementalGroupsPolicy: Strict of its pods has an effect
	std::map<std::string, std::int64_t> capacity; // of extended resources with a domain, as nvidia.com/gpu
};
using NodePtr = std::shared_ptr<const Node>;

// status: of a Pod. Its kubelet has admitted the pod, and has not said that it is over. Such a kubelet tells of its containers, in
// the condition Initialized, from its first status on (generateAPIPodStatus() in kubelet_pods.go). startTime alone says that it has
// seen the pod: in the first seconds after its start a kubelet does not know yet what runs, and of a pod that it refuses it writes
// only that, and the phase Failed later (mergePodStatus() in status_manager.go, Kubernetes 1.35). Pure, any thread.
bool is_admitted(const Json &status);

// Errors: not an object of that kind, no name or no uid. Anything else that is
// odd ends in Pod::problem. Pure, any thread.
Result<PodPtr> decode_pod(const Json &object);
Result<NodePtr> decode_node(const Json &object);
// nodeSelectorTerms, of a pod's affinity or a volume's. What is odd ends in problem.
std::vector<NodeTerm> decode_node_terms(const Json &terms, std::string &problem);

// Limits; more than that is a `problem`, never a crash or a silent cut.
inline constexpr std::size_t max_name = 253;
inline constexpr std::size_t max_label_value = 63;
inline constexpr std::size_t max_terms = 256;
inline constexpr std::size_t max_containers = 512;
inline constexpr std::size_t max_conditions = 256;
inline constexpr std::size_t max_pod_claims = 32;
inline constexpr std::size_t max_annotation_bytes = 256 * 1024;
inline constexpr std::int64_t max_milli_cpu = 1'000'000'000; // a million CPUs
inline constexpr std::int64_t max_grace_seconds = 1'000'000'000; // 30 years: it sums without overflow

} // namespace sk8::kube

#endif
