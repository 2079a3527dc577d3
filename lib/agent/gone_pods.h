// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Of which pods that slurmctld's engine has lost (lib/core/lost_pods.h) nothing runs here, or will run. Pure; one thread.
//
// A kubelet makes a pod's cgroup before anything of it runs, and removes it when it has done with it for ever, not sooner
// (kubelet.go, SyncPod() and SyncTerminatedPod()). So of a pod that was seen to run here, a cgroup that is gone says all.
//
// Of others it does not: their kubelet may have heard of them and wait, for the network of pods before it makes the cgroup,
// for volumes after that, and one that is cut off from the API server does not hear that they are deleted. One that
// renews its lease hears it, of its own watch within the minute in which that may be without connection. So they are gone if
// their kubelet has renewed its lease all the time for as long as such a start may go on, and there was never a process.
// And only if pods have cgroups where we look: some pod that the API server has on this node must have been found there.
//
// What nobody can tell in this way: processes that a privileged container has moved out of its pod's cgroup.
#ifndef SK8_AGENT_GONE_PODS_H
#define SK8_AGENT_GONE_PODS_H

#include <map>
#include <optional>
#include <set>
#include <string>

#include "lib/base/clock.h"

namespace sk8::agent {

// The lease of this node's kubelet (kube-node-lease).
struct KubeletLease {
	std::string renewed; // its renewTime, of which only matters whether it is another one
	Millis lasts{0};
};

// What is found at one moment.
struct GoneLook {
	Millis at{0};                        // monotonic
	std::map<std::string, bool> cgroups; // by uid of all pods that have one: a process is in it
	std::set<std::string> objects;       // uids of those that the API server has on this node
	std::optional<KubeletLease> lease;   // nothing: it could not be read
};

class GonePods {
public:
	// All that is asked, core::lost_word() each. What was seen counts for the same words only.
	void ask(const std::set<std::string> &words);
	bool asked() const { return !pods_.empty(); }
	void look(const GoneLook &found);
	void blind(); // cgroups could not be read: nothing is known of what happens meanwhile
	// Of those that are asked.
	std::set<std::string> gone() const { return those(&Pod::gone); }
	std::set<std::string> running() const { return those(&Pod::runs); } // at the last look

private:
	struct Pod {
		bool runs = false, ran = false;    // now, and since it is asked for
		std::optional<Millis> quiet_since; // without a process and object
		bool gone = false;
	};
	std::set<std::string> those(bool Pod::*is) const;
	void hear(const GoneLook &found);
	bool judge(const Pod &pod, bool has_cgroup, Millis now) const;

	std::map<std::string, Pod> pods_; // by word
	bool place_ = false;              // pods have their cgroups where we look
	std::string renewed_;             // as read last
	Millis renewed_at_{0};            // when that was read first
	std::optional<Millis> heard_since_; // the kubelet, without a gap
};

} // namespace sk8::agent

#endif
