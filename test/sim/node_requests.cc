// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the engine writes to Node objects, on the way that all its requests go.
#include "test/sim/kube_requests.h"

#include <algorithm>

namespace sk8::sim {

using core::NodeKubeReply;

// As lib/core/node_link.cc: uid and version are those that it was decided for.
void KubeRequests::send_node(const std::string &what, const kube::Meta &meta, std::function<void(kube::Node &)> edit,
			     NodeKubePort::Done done)
{
	const core::PodKey key{"c", "", meta.name, meta.uid};
	auto now = std::make_shared<kube::NodePtr>();
	send(what, key, true,
	     [this, meta, edit = std::move(edit), now] {
		     core::KubeReply r;
		     auto it = api_.nodes().find(meta.name);
		     r.status = !api_.has_node(meta.name)						      ? 404
				: it->second->meta.uid != meta.uid					      ? 422
				: it->second->meta.resource_version != meta.resource_version ? 409
											      : 200;
		     if (!r.ok()) {
			     r.error = "HTTP status " + std::to_string(r.status);
			     return r;
		     }
		     kube::Node node = *it->second;
		     edit(node);
		     watcher_.node_written(meta.name);
		     api_.set_node(std::move(node));
		     *now = api_.nodes().at(meta.name);
		     return r;
	     },
	     [now, done = std::move(done)](const core::KubeReply &r) {
		     NodeKubeReply out;
		     static_cast<core::KubeReply &>(out) = r;
		     if (r.ok())
			     out.node = *now;
		     done(out);
	     });
}

void KubeRequests::patch_node(const kube::Meta &node, const core::NodePatch &patch, NodeKubePort::Done done)
{
	send_node("patch node", node, [patch](kube::Node &n) {
		if (patch.unschedulable)
			n.unschedulable = *patch.unschedulable;
		for (const auto &[name, value] : patch.annotations) {
			if (value)
				n.meta.annotations[name] = *value;
			else
				n.meta.annotations.erase(name);
		}
	}, std::move(done));
}

// Neither sharing: dedicated nor nodes.exclusive is a part of what is played.
void KubeRequests::set_our_taint(const kube::Node &, core::OurTaint, bool, NodeKubePort::Done)
{
	std::abort();
}

void KubeRequests::set_node_condition(const kube::Meta &node, const kube::NodeCondition &condition,
				      std::optional<std::int64_t>, NodeKubePort::Done done)
{
	send_node("condition of node", node, [condition](kube::Node &n) {
		std::erase_if(n.conditions, [&](const auto &c) { return c.type == condition.type; });
		n.conditions.push_back(condition);
	}, std::move(done));
}

} // namespace sk8::sim
