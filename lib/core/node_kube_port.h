// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The nodes controller's only way to the Kubernetes API; as KubePort. Every write is
// refused (409) if the node is not the very version that it was decided for.
#ifndef SK8_CORE_NODE_KUBE_PORT_H
#define SK8_CORE_NODE_KUBE_PORT_H

#include "lib/core/kube_port.h"
#include "lib/core/node_state.h"
#include "lib/core/placement.h"

namespace sk8::core {

struct NodeKubeReply : KubeReply {
	kube::NodePtr node; // as it is now, if it could be read
};

class NodeKubePort {
public:
	virtual ~NodeKubePort() = default;
	using Done = std::function<void(const NodeKubeReply &)>;

	virtual void patch_node(const kube::Meta &node, const NodePatch &patch, Done done) = 0;
	// This taint of ours is put on the node or taken off it; others stay.
	virtual void set_our_taint(const kube::Node &node, OurTaint which, bool on, Done done) = 0;
	// transition: seconds since 1970 if its status changes with this; else it stays.
	virtual void set_node_condition(const kube::Meta &node, const kube::NodeCondition &condition,
					std::optional<std::int64_t> transition, Done done) = 0;
};

} // namespace sk8::core

#endif
