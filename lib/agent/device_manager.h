// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which devices the kubelet has given to pods, of the file that its device manager keeps
// (pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go, kubelet_internal_checkpoint).
#ifndef SK8_AGENT_DEVICE_MANAGER_H
#define SK8_AGENT_DEVICE_MANAGER_H

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "lib/agent/allocate_response.h"
#include "lib/agent/device_order.h"
#include "lib/core/pod_devices.h"

namespace sk8::agent {

using IdsByResource = std::map<std::string, std::set<std::string>>;

struct DeviceManager {
	IdsByResource healthy;                     // of device plugins that are or were there
	std::map<std::string, IdsByResource> pods; // by uid
	// By uid and resource: what its plugin answered, of all containers of the pod together. Of what says nothing to a step no entry.
	std::map<std::string, std::map<std::string, DeviceAnswer>> answers{};

	bool operator==(const DeviceManager &) const = default;
};

// What makes no sense counts as nothing. Pure.
DeviceManager parse_device_manager(std::string_view checkpoint);

// What of it slurmctld is told. former: what it has been told: a device that is ill now is none of the healthy ones, and those
// behind it must not get other numbers. capacity: of the node, ill devices included: of a resource of which not all devices are
// known it is told that there is no device that it knows (numbers would be wrong). Pure but for order.
core::NodeDevices devices_to_tell(const DeviceManager &now, const core::NodeDevices &former,
				  const std::map<std::string, std::int64_t> &capacity, DeviceOrder &order);

} // namespace sk8::agent

#endif
