// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Has somebody taken the reservation pod of a job that runs? What we did ourselves, perhaps in
// a slurmctld before this one (which may have forgotten the end of the job), a kubelet
// that came back and did not take it again, and a node that is not heard of are nobody. Pure.
#ifndef SK8_CORE_EVICTION_H
#define SK8_CORE_EVICTION_H

#include <string>

#include "lib/kube/objects.h"

namespace sk8::core {

struct EvictionFacts {
	bool runs = false;     // the job, and nobody has begun to end it
	bool admitted = false; // the pod, at some time
	bool by_us = false;    // we have asked for its deletion
	bool heard_of = false; // the node's kubelet
	bool over = false;     // its phase is a final one
	bool deleting = false;
	bool found_deleting = false; // when we first heard of it
	bool deleted = false;  // and the watch told so: that it is missing in a list proves nothing
	std::string reason;    // of the phase
	kube::Disruption disruption = kube::Disruption::none;
};

// "was evicted by its kubelet"; empty: nobody has.
std::string eviction_of(const EvictionFacts &facts);

} // namespace sk8::core

#endif
