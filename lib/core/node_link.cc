// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_link.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/kube_link.h"
#include "lib/core/names.h"
#include "lib/core/placement.h"

namespace sk8::core {

using kube::resource_path;

static kube::Client::Done answer(NodeKubePort::Done done)
{
	return [done = std::move(done)](kube::Reply r) {
		NodeKubeReply out;
		static_cast<KubeReply &>(out) = kube_reply(r);
		if (r.ok())
			if (auto now = kube::decode_node(r.body); now)
				out.node = std::move(*now);
		done(out);
	};
}

void NodeLink::send(const std::string &path, kube::PatchType type, const kube::Meta &node, Json patch, Done done)
{
	Json meta = patch["metadata"].is_object() ? patch["metadata"] : Json::object();
	meta.set("uid", node.uid).set("resourceVersion", node.resource_version);
	patch.set("metadata", meta);
	client_.patch(path, type, patch, answer(std::move(done)));
}

void NodeLink::patch_node(const kube::Meta &node, const NodePatch &patch, Done done)
{
	Json body = Json::object();
	if (!patch.annotations.empty())
		body.set("metadata", Json::object().set("annotations", annotations_patch(patch.annotations)));
	if (patch.unschedulable)
		body.set("spec", Json::object().set("unschedulable", *patch.unschedulable ? Json::boolean(true) : Json::null()));
	send(resource_path(kube::nodes_resource, {}, node.name), kube::PatchType::merge, node, body, std::move(done));
}

static Json operation(const char *op, const std::string &path, Json value)
{
	return Json::object().set("op", op).set("path", path).set("value", std::move(value));
}

// A merge would write the others' taints again, and without what we do not read of them.
void NodeLink::set_our_taint(const kube::Node &node, OurTaint which, bool on, Done done)
{
	Json patch = Json::array();
	patch.append(operation("test", "/metadata/uid", Json::string(node.meta.uid)));
	patch.append(operation("test", "/metadata/resourceVersion", Json::string(node.meta.resource_version)));
	if (on) {
		Json taint = Json::object();
		taint.set("key", taint_key(which)).set("value", taint_value(which));
		taint.set("effect", "NoSchedule");
		if (node.taints.empty())
			patch.append(operation("add", "/spec/taints", Json::array()));
		patch.append(operation("add", "/spec/taints/-", taint));
	} else {
		const auto at = std::ranges::find_if(node.taints, [which](const kube::Taint &t) { return is_our_taint(t, which); }) -
				node.taints.begin();
		patch.append(Json::object().set("op", "remove").set("path", "/spec/taints/" + std::to_string(at)));
	}
	client_.patch(resource_path(kube::nodes_resource, {}, node.meta.name), kube::PatchType::json, patch,
		      answer(std::move(done)));
}

// Strategic merge: conditions are joined by their type there, so those of others stay.
void NodeLink::set_node_condition(const kube::Meta &node, const kube::NodeCondition &condition,
				  std::optional<std::int64_t> transition, Done done)
{
	Json c = Json::object();
	c.set("type", condition.type).set("status", condition.status);
	c.set("reason", condition.reason).set("message", condition.message);
	if (transition)
		c.set("lastTransitionTime", format_rfc3339(*transition));
	Json list = Json::array();
	list.append(c);
	Json body = Json::object();
	body.set("status", Json::object().set("conditions", list));
	send(resource_path(kube::nodes_resource, {}, node.name, "status"), kube::PatchType::strategic, node, body,
	     std::move(done));
}

} // namespace sk8::core
