// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The cgroups that a kubelet makes for its pods, and on which CPUs they run.
//
// kubelet (pkg/kubelet/cm/pod_container_manager_linux.go) calls them, below its cgroup root,
//	kubepods/pod<uid>, kubepods/burstable/pod<uid>, kubepods/besteffort/pod<uid>
// and with the systemd driver (cgroup_manager_linux.go; '-' of a uid becomes '_')
//	kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice
// and below them a runtime one for each container, <id> or <runtime>-<id>.scope (containerd, internal/cri/server/
// helpers.go; cri-o, internal/config/cgmgr).
// In version 1 of cgroups a folder's CPUs are always some of its parent's, and each folder names its own; in
// version 2 a folder that names none has its parent's, and what it names is cut to those
// (Documentation/admin-guide/cgroup-v1/cpusets.rst, cgroup-v2.rst).
//
// One thread. All functions read and write files below the mount.
#ifndef SK8_AGENT_POD_CGROUPS_H
#define SK8_AGENT_POD_CGROUPS_H

#include <map>
#include <string>

#include "lib/agent/cpus.h"

namespace sk8::agent {

class PodCgroups {
public:
	// mount: /sys/fs/cgroup. root: the folder below it in which kubepods or kubepods.slice is: the kubelet's
	// cgroupRoot, "/" or "/kube", and with the systemd driver "/" or "/kube.slice".
	PodCgroups(std::string mount, std::string root) : mount_(std::move(mount)), root_(std::move(root)) {}

	// By uid. Error: there is no cpuset controller.
	Result<std::map<std::string, std::string>> find() const;
	// By uid: is a process in it, or in a cgroup within it? All that there are: error if anything there cannot be read, or if no
	// kubelet has made any here.
	Result<std::map<std::string, bool>> processes() const;
	// Of a container by its id in its runtime, below the pod's; empty: it is not there (yet).
	std::string folder_of_container(const std::string &pod_folder, const std::string &id) const;
	// All of the pod runs on these CPUs from now on, also containers that come later.
	// True: something was changed. Error also if the folder names them already, and the kernel gives it others.
	Result<bool> set_cpus(const std::string &folder, const CpuSet &cpus) const;
	// The CPUs that the folder has now, as the kernel gives them. Version 2: which need not be those that it names.
	Result<CpuSet> cpus(const std::string &folder) const;
	// The CPUs that the folder's parent has: what the pod had before somebody took it some.
	Result<CpuSet> cpus_of_parent(const std::string &folder) const;

private:
	bool is_v2() const;
	std::string root_folder() const;
	Result<bool> has_process(const std::string &folder, int depth) const;
	Result<bool> set_tree(const std::string &folder, const CpuSet &cpus, int depth) const;

	const std::string mount_, root_;
};

// The uid in the name of such a folder; empty: it is none.
std::string pod_uid_of_folder(std::string_view name);

} // namespace sk8::agent

#endif
