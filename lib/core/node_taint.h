// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which nodes have our taints (sharing: dedicated; those that a job has without others' pods), and how often one is put
// back. Pure.
#ifndef SK8_CORE_NODE_TAINT_H
#define SK8_CORE_NODE_TAINT_H

#include <optional>

#include "lib/base/clock.h"
#include "lib/core/placement.h"
#include "lib/kube/objects.h"

namespace sk8::core {

// true: to be put on, false: to be taken off, nothing: it is as it should be.
// in_slurm: Slurm has a node of this name. A node that is not Slurm's is left alone: who has tainted it is another Slurm
// that shares this Kubernetes, or a person.
std::optional<bool> taint_change(const kube::Node &node, bool in_slurm, OurTaint which, bool wanted);
bool has_taint(const kube::Node &node, OurTaint which);

// Somebody who takes the taint off gets it back at once. Something that takes it off
// again and again does so with growing pauses: two who never stop would only load the
// API server.
struct TaintPace {
	Millis next{0}; // monotonic: not before

	void put_on(Millis now);

private:
	Millis pause_{0};
};

} // namespace sk8::core

#endif
