// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s.yaml as a value. The table of keys is in settings.cc; the man page
// slurm-k8s.yaml(5) is printed from it.
#ifndef SK8_CORE_SETTINGS_H
#define SK8_CORE_SETTINGS_H

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/config.h"

namespace sk8::core {

// What a namespace may ask for beyond its mapping; empty = nothing but the mapping's own.
struct AllowSettings {
	std::vector<std::string> account, partition, qos, reservation, licenses;

	bool operator==(const AllowSettings &) const = default;
};

struct NamespaceSettings {
	enum class BarePods { fail, resubmit };
	std::string match; // glob: * and ?
	std::string user;
	std::string account, partition, qos; // empty: Slurm's default for the user
	AllowSettings allow;
	BarePods bare_pods = BarePods::fail;

	bool operator==(const NamespaceSettings &) const = default;
};

// How Kubernetes is kept from giving others what Slurm's jobs use, see doc/sharing.md.
enum class Sharing { none, dedicated, mixed };

// Of the shared nodes.
struct NodeGroupSettings {
	std::string selector; // not empty
	Sharing sharing = Sharing::none;

	bool operator==(const NodeGroupSettings &) const = default;
};

// Nodes that a job may have without others' pods (--constraint=k8s.exclusive).
struct ExclusiveSettings {
	std::string selector; // of shared nodes; empty: none
	Millis timeout{300'000}; // pods that are in the way have so long to go
	Millis idle{300'000};    // without such a job, until the node takes pods again
	bool bare_pods = false;  // those without a controller go, too

	bool on() const { return !selector.empty(); }
	bool operator==(const ExclusiveSettings &) const = default;
};

struct NodeSettings {
	std::string selector;           // Kubernetes label selector of the shared nodes; empty = all
	std::vector<std::string> names; // Slurm names of shared nodes that take no job while their
	                                // pods are not known (no saved ledger, no list yet)
	Sharing sharing = Sharing::none; // of a node that no group has
	std::vector<NodeGroupSettings> groups; // the first that has a node counts
	std::vector<std::string> features; // keys of labels, * and ? match; see node_features.h
	Millis gate_timeout{60'000};
	ExclusiveSettings exclusive;

	bool any(Sharing wanted) const // may a node have it?
	{
		return sharing == wanted || std::ranges::any_of(groups, [wanted](const auto &g) { return g.sharing == wanted; });
	}

	bool operator==(const NodeSettings &) const = default;
};

// Small jobs in one pod.
struct SharedReservationSettings {
	std::uint32_t max_cpus = 0; // of a job on the node, hardware threads; 0: none shares

	bool operator==(const SharedReservationSettings &) const = default;
};

// What --k8s-template may have. Names: see takes_name().
struct TemplateSettings {
	bool allow = false;
	std::vector<std::string> config_maps, secrets, claims, resource_claims; // names
	std::vector<std::string> host_paths; // these, and what is below

	bool operator==(const TemplateSettings &) const = default;
};

// The pods of Slurm's own jobs.
struct ReservationSettings {
	enum class OnEviction { ignore, requeue, cancel };
	std::string ns = "slurm-k8s-jobs";
	std::string image = "registry.k8s.io/pause:3.10";
	std::string priority_class; // empty: none
	Millis image_timeout{600'000};
	std::string pause_path = "/usr/lib/slurm-k8s/pause";
	bool devices = true; // where it is not mixed, pods that hold devices alone
	OnEviction eviction = OnEviction::ignore;
	SharedReservationSettings shared;
	TemplateSettings templates;
	std::vector<std::string> service_accounts; // names, see takes_name()

	bool operator==(const ReservationSettings &) const = default;
};

struct PriorityClassSettings {
	std::string name;
	std::int64_t nice = 0;

	bool operator==(const PriorityClassSettings &) const = default;
};

struct PodSettings {
	std::int64_t default_milli_cpu = 1000;
	std::int64_t default_memory_bytes = 256 << 20; // 0: the partition's DefMemPerCPU or DefMemPerNode
	Millis bind_timeout{60'000};
	Millis kill_grace{30'000};
	std::vector<PriorityClassSettings> priority_classes;

	bool operator==(const PodSettings &) const = default;
};

// What becomes of one side's node when the other's takes no more work.
struct NotReadySettings {
	enum class Action { drain, down, ignore };
	Millis after{40'000};
	Action action = Action::drain;

	bool operator==(const NotReadySettings &) const = default;
};

struct StateSettings {
	enum class OnCordon { drain, ignore };
	enum class OnSlurm { cordon, ignore };
	OnCordon cordon = OnCordon::drain;
	NotReadySettings not_ready;
	std::vector<std::string> conditions; // types
	OnSlurm slurm = OnSlurm::cordon;

	bool operator==(const StateSettings &) const = default;
};

// How much the engine may ask of the API server; see kube::RequestLimits.
struct ApiSettings {
	std::int64_t in_flight = 32;
	std::int64_t requests_per_second = 500;

	bool operator==(const ApiSettings &) const = default;
};

// Which of Slurm's devices those are that a device plugin hands out on these nodes.
struct DeviceSettings {
	std::string selector;         // empty: all nodes
	std::uint32_t first = 0;      // Slurm's index of the first one
	std::vector<std::string> ids; // in the order of Slurm's indices; empty: as the agent tells them

	bool operator==(const DeviceSettings &) const = default;
};

// The GRES for devices that only Kubernetes knows, by type: numbers in Slurm, without a plugin of type gres.
inline constexpr auto k8s_gres = "k8s";

inline constexpr char no_device_file[] = "none";

// An extended resource of Kubernetes, or a class of devices, is this GRES of Slurm, one for one.
struct ResourceSettings {
	enum class Missing { mask, all, ignore }; // of two for one GRES the last counts
	std::string kubernetes; // nvidia.com/gpu; empty: it is device_class
	std::string gres;       // gpu
	std::string type;       // a100; empty: any
	std::vector<DeviceSettings> devices{}; // the first that takes a node counts; else all begins at 0
	std::string type_label{}; // of a node: its value is the type of what the node has
	Missing missing = Missing::mask; // what Slurm has more than the kubelet
	std::string device_class{}; // gpu.nvidia.com, of Dynamic Resource Allocation; empty: it is kubernetes
	std::string type_attribute{}; // of device_class: the attribute whose value is a device's type; empty: type
	std::string index{};        // of device_class: the attribute that is Slurm's index; empty: see dra_inventory.h
	std::string file{};         // of device_class: "/dev/nvidia%d", %d is the index; no_device_file; empty: see device_file_of()

	bool operator==(const ResourceSettings &) const = default;
};

// Does one of them name a deviceClass?
bool has_device_class(const std::vector<ResourceSettings> &resources);

struct ClusterSettings {
	std::string name;
	std::string kubeconfig; // empty: in-cluster service account
	std::string context;    // empty: the kubeconfig's current one
	std::vector<std::string> scheduler_names{"slurm"};
	std::vector<NamespaceSettings> namespaces;
	NodeSettings nodes;
	ReservationSettings reservations;
	std::vector<ResourceSettings> resources; // besides those that find_resource() has
	PodSettings pods;
	StateSettings state;
	ApiSettings api;

	// May a job of Slurm's own have reservation pods: for devices where it is not mixed, for its container alone, or any?
	bool reserves_devices() const { return reservations.devices && !resources.empty(); }
	// ... for those, too, that no resources name? mixed: its node is (Reservations::requested_on()).
	bool reserves_unnamed_devices(bool mixed) const { return reserves_devices() || (reservations.devices && mixed); }
	bool reserves() const { return nodes.any(Sharing::mixed) || reserves_devices(); }
	bool has_containers() const { return nodes.any(Sharing::mixed) || nodes.any(Sharing::dedicated); }
	// Does the gate matter, of which jobs of Slurm's own have to be known?
	bool wants_natives() const { return reserves() || has_containers() || nodes.exclusive.on(); }

	bool operator==(const ClusterSettings &) const = default;
};

struct MetricsSettings {
	std::string listen; // "127.0.0.1:9410", see parse_loopback(); empty: off

	bool operator==(const MetricsSettings &) const = default;
};

// k8scpu and k8smemory of jobs, see doc/gres.md.
struct TokenSettings {
	std::vector<std::string> partitions; // globs: jobs of these get what their CPUs and memory make

	bool operator==(const TokenSettings &) const = default;
};

struct Settings {
	std::vector<ClusterSettings> clusters;
	MetricsSettings metrics;
	TokenSettings tokens;

	bool operator==(const Settings &) const = default;
};

// All mistakes at once, each "file:line: key: what is wrong, what would be right".
Result<Settings> load_settings(const std::string &path, std::uint32_t slurm_uid);
Result<Settings> parse_settings(const std::string &text, const std::string &file_name);

// The rows of slurm-k8s.yaml(5).
std::vector<FieldDoc> describe_settings();

} // namespace sk8::core

#endif
