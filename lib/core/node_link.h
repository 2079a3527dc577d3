// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// NodeKubePort on a kube::Client: the requests and nothing else.
#ifndef SK8_CORE_NODE_LINK_H
#define SK8_CORE_NODE_LINK_H

#include "lib/core/node_kube_port.h"
#include "lib/kube/client.h"

namespace sk8::core {

class NodeLink final : public NodeKubePort {
public:
	explicit NodeLink(kube::Client &client) : client_(client) {}

	void patch_node(const kube::Meta &node, const NodePatch &patch, Done done) override;
	void set_our_taint(const kube::Node &node, OurTaint which, bool on, Done done) override;
	void set_node_condition(const kube::Meta &node, const kube::NodeCondition &condition,
				std::optional<std::int64_t> transition, Done done) override;

private:
	void send(const std::string &path, kube::PatchType type, const kube::Meta &node, Json patch, Done done);

	kube::Client &client_;
};

} // namespace sk8::core

#endif
