// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// In which order Slurm most likely has the devices that a device plugin hands out: gres.conf has files in the order of their
// numbers, and slurmd's AutoDetect, too. The IDs of NVIDIA's GPUs are random; its driver knows the number of each.
#ifndef SK8_AGENT_DEVICE_ORDER_H
#define SK8_AGENT_DEVICE_ORDER_H

#include <map>
#include <set>
#include <string>
#include <vector>

namespace sk8::agent {

// By their letters, numbers in them by value. Pure.
std::vector<std::string> by_id(const std::set<std::string> &ids);

// By uuid: n of /dev/nvidia<n>. folder: /proc/driver/nvidia. Reads files; what they do not say is not there.
std::map<std::string, unsigned> nvidia_minors(const std::string &folder);

class DeviceOrder {
public:
	explicit DeviceOrder(std::string nvidia_folder) : nvidia_folder_(std::move(nvidia_folder)) {}
	// All of them, each once: by their minor numbers if each has one. The driver may not tell all of them yet, or for a while: then
	// as in former, which was told of the same ones before, or else by_id(). Reads files until it has had the numbers.
	std::vector<std::string> operator()(const std::set<std::string> &ids, const std::vector<std::string> &former = {});

private:
	const std::string nvidia_folder_;
	std::map<std::set<std::string>, std::vector<std::string>> known_; // by their numbers
};

} // namespace sk8::agent

#endif
