// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The files in which the kubelet keeps what it has given to pods alone. It replaces them whenever that changes, so one that is
// the same file as before is not read again.
#ifndef SK8_AGENT_KUBELET_FILES_H
#define SK8_AGENT_KUBELET_FILES_H

#include <optional>
#include <string>
#include <sys/types.h>
#include <time.h>
#include <utility>

#include "lib/agent/cpu_manager.h"
#include "lib/agent/device_manager.h"

namespace sk8::agent {

// One file of a few MiB at most, that others write.
class ReplacedFile {
public:
	explicit ReplacedFile(std::string path) : path_(std::move(path)) {}
	// Its text, empty if it is not there; nothing: it is the same as at the last call, or cannot be read, which is tried again.
	std::optional<std::string> news();
	unsigned reads() const { return reads_; } // so often its text was read

private:
	struct Stamp {
		dev_t device = 0;
		ino_t inode = 0;
		off_t size = -1; // no file
		time_t seconds = 0;
		long nanoseconds = 0;

		bool operator==(const Stamp &) const = default;
	};
	Stamp look() const;

	const std::string path_;
	std::optional<Stamp> seen_;
	unsigned reads_ = 0;
};

class KubeletFiles {
public:
	// device_plugin_dir: where device plugins find the kubelet.
	KubeletFiles(const std::string &root_dir, const std::string &device_plugin_dir);

	void look(); // reads files
	const CpuManager &cpus() const { return cpus_; }
	const DeviceManager &devices() const { return devices_; }

private:
	ReplacedFile cpu_file_, device_file_;
	CpuManager cpus_;
	DeviceManager devices_;
};

} // namespace sk8::agent

#endif
