// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which nodes of Kubernetes a pod may run on, as far as Kubernetes decides:
// nodeSelector, required node affinity, taints, cordon, volumes' nodes, host
// ports. Slurm gets the rest as excluded nodes; which of the others it takes, and
// when, is Slurm's decision. Pure.
#ifndef SK8_CORE_PLACEMENT_H
#define SK8_CORE_PLACEMENT_H

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/kube/objects.h"

namespace sk8::core {

// Source: Kubernetes API reference, v1.NodeSelectorRequirement: Gt and Lt compare
// integers; NotIn and DoesNotExist hold for a missing label.
bool matches(const kube::NodeTerm &term, const kube::Node &node);
bool tolerates(const std::vector<kube::Toleration> &tolerations, const kube::Taint &taint);
// Ours (sharing: dedicated, and nodes.exclusive): they keep off what others place, not what Slurm places.
enum class OurTaint { dedicated, exclusive };
bool is_our_taint(const kube::Taint &taint, OurTaint which);
std::string_view taint_key(OurTaint which);
std::string_view taint_value(OurTaint which);

// Has its kubelet ever told of this extended resource, be it that there is none now?
bool knows_resource(const kube::Node &node, const std::string &name);

// By us, because Slurm gives the node no jobs: that keeps off what others place. To whom Slurm gives it nevertheless (a
// reservation for maintenance) is its own decision.
bool is_cordoned_for_slurm(const kube::Node &node);

// What a pod requests of it, or a node has altogether, bytes; nothing: it says nothing.
std::optional<std::int64_t> ephemeral_storage(const kube::Resources &of);

// Empty: the node will do. Else the reason, a few words ("taint gpu=yes").
std::string objection(const kube::Pod &pod, const std::vector<std::vector<kube::NodeTerm>> &volumes,
		      const kube::Node &node);

// A label selector as in `kubectl -l`: "a=b,c!=d,e in (f,g),h,!i".
Result<kube::NodeTerm> parse_selector(const std::string &text);

} // namespace sk8::core

#endif
