// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a device plugin answered when the kubelet asked it for devices of a container: ContainerAllocateResponse
// (pkg/deviceplugin in k8s.io/kubelet, deviceplugin/v1beta1/api.proto), in base64 as the kubelet's device manager keeps it. Pure.
#ifndef SK8_AGENT_ALLOCATE_RESPONSE_H
#define SK8_AGENT_ALLOCATE_RESPONSE_H

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace sk8::agent {

struct DeviceAnswer {
	std::map<std::string, std::string> variables; // that a step may be given
	std::set<std::string> nodes;                  // of the host, all below /dev

	bool operator==(const DeviceAnswer &) const = default;
};

inline constexpr std::size_t max_answer = 65'536; // bytes
inline constexpr std::size_t max_variables = 64, max_value = 4096, max_device_nodes = 256;

// May a step be given a variable of this name? None that says what its programs load or run, who and where its user is, or
// what Slurm, MPI and Kubernetes tell.
bool may_be_given(std::string_view variable);

// What is no such message counts as nothing, and of a message the variables and nodes that may not be given, or are too many.
// Its mounts, annotations and CDI devices are not for steps, which are on the host already.
DeviceAnswer parse_allocate_response(std::string_view base64);

} // namespace sk8::agent

#endif
