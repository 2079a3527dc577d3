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
	// All of them, each once: by their minor numbers if each has one, else by_id(). Reads files for IDs that it was not asked
	// for before.
	const std::vector<std::string> &operator()(const std::set<std::string> &ids);

private:
	std::vector<std::string> sorted(const std::set<std::string> &ids) const;

	const std::string nvidia_folder_;
	std::map<std::set<std::string>, std::vector<std::string>> known_;
};

} // namespace sk8::agent

#endif
