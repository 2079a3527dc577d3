// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The objects of Dynamic Resource Allocation (resource.k8s.io/v1) as plain values: what drivers say of their devices
// (ResourceSlice), what pods want of them (ResourceClaim) and what both mean (DeviceClass). As lib/kube/objects.h: only
// what is used, hostile, bounded, immutable.
// Source of the rules: Kubernetes API reference v1.35, resource.k8s.io/v1.
#ifndef SK8_KUBE_DRA_OBJECTS_H
#define SK8_KUBE_DRA_OBJECTS_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/kube/objects.h"

namespace sk8::kube {

struct Version {
	std::string text; // semantic, "1.2.3"

	bool operator==(const Version &) const = default;
};
using AttributeValue = std::variant<bool, std::int64_t, std::string, Version>;

struct Device {
	std::string name; // in its pool
	// By full name, "gpu.example.com/model": a name without a domain is one of the driver's.
	std::map<std::string, AttributeValue> attributes;
	std::map<std::string, std::int64_t> capacity; // the same, in thousandths
	bool tainted = false; // NoSchedule or NoExecute: its driver, or somebody else, does not want it to be given away
	// Why it cannot be one of Slurm's devices, a few words: it is a part of another one, several pods have it at once ...
	// Empty: it can.
	std::string odd;

	bool operator==(const Device &) const = default;
};

// One page of what a driver has.
struct ResourceSlice {
	Meta meta;
	std::string driver, pool;
	std::int64_t generation = 0; // of the pool: slices of an older one do not count any more
	std::int64_t slices = 0;     // of the pool, of that generation
	std::string node;            // empty: its devices are not those of one node
	std::vector<Device> devices;
	std::string problem; // one sentence, or empty; such a slice says nothing
};
using ResourceSlicePtr = std::shared_ptr<const ResourceSlice>;

// What a claim wants of one kind.
struct DeviceRequest {
	std::string name;
	std::string device_class;
	std::vector<std::string> selectors; // CEL
	std::int64_t count = 1;
	std::string odd; // why we cannot honour it, a few words; empty: we can
};

struct AllocatedDevice {
	std::string request, driver, pool, device;
	bool shared = false; // by AdminAccess, or a share of it: others may have it as well

	bool operator==(const AllocatedDevice &) const = default;
};

struct ResourceClaim {
	Meta meta;
	std::vector<DeviceRequest> requests;
	std::vector<std::string> matching; // constraints[].matchAttribute: of all devices of the claim the same
	Json config;                       // spec.devices.config, as it is
	bool allocated = false;
	std::vector<AllocatedDevice> devices; // of its allocation
	std::vector<std::string> reserved_for; // uids of pods
	bool reserved_for_other = false;       // ... and of something that is no pod
	Json consumers;                        // status.reservedFor, as it is
	std::string problem; // why we cannot honour it, one sentence; or empty
};
using ResourceClaimPtr = std::shared_ptr<const ResourceClaim>;

struct DeviceClass {
	Meta meta;
	std::vector<std::string> selectors; // CEL
	Json config;                        // spec.config, as it is
	std::string problem;
};
using DeviceClassPtr = std::shared_ptr<const DeviceClass>;

// Of an attribute or a capacity: a name without a domain is one of the driver's.
std::string full_attribute_name(std::string_view name, const std::string &driver);
// Is it one of a pod's?
bool has_claim(const std::vector<PodResourceClaim> &claims, const std::string &claim);

// Errors: as decode_pod()'s. Pure, any thread.
Result<ResourceSlicePtr> decode_resource_slice(const Json &object);
Result<ResourceClaimPtr> decode_resource_claim(const Json &object);
Result<DeviceClassPtr> decode_device_class(const Json &object);

// Kubernetes' own limits.
inline constexpr std::size_t max_slice_devices = 128;
inline constexpr std::size_t max_device_attributes = 32; // and capacities, each
inline constexpr std::size_t max_claim_consumers = 256;
inline constexpr std::size_t max_claim_requests = 32;    // and devices of an allocation
inline constexpr std::size_t max_selectors = 32;
inline constexpr std::size_t max_selector_bytes = 10 * 1024;

} // namespace sk8::kube

#endif
