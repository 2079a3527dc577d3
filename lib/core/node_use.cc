// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_use.h"

namespace sk8::core {

// Kubernetes API reference, v1.ContainerPort: the same port and protocol collide
// unless both name a different address.
static bool collide(const kube::HostPort &a, const kube::HostPort &b)
{
	auto any = [](const std::string &ip) { return ip.empty() || ip == "0.0.0.0" || ip == "::"; };
	auto protocol = [](const kube::HostPort &p) { return p.protocol.empty() ? "TCP" : p.protocol; };
	return a.port == b.port && protocol(a) == protocol(b) && (any(a.ip) || any(b.ip) || a.ip == b.ip);
}

void NodeUse::note(const std::string &node, const OfNode &of)
{
	full_changed_ |= of.full() ? full_.insert(node).second : full_.erase(node) > 0;
}

bool NodeUse::add(const std::string &uid, const std::string &node, const std::vector<kube::HostPort> &ports)
{
	auto known = where_.find(uid);
	if (known != where_.end() && known->second == node)
		return false;
	remove(uid);
	where_[uid] = node;
	OfNode &n = nodes_[node];
	n.pods.insert(uid);
	for (const auto &p : ports)
		n.ports.emplace(p.port, std::make_pair(p, uid));
	note(node, n);
	return n.full() || !ports.empty();
}

bool NodeUse::remove(const std::string &uid)
{
	auto known = where_.find(uid);
	if (known == where_.end())
		return false;
	OfNode &n = nodes_[known->second];
	bool matters = n.full();
	n.pods.erase(uid);
	note(known->second, n);
	matters |= std::erase_if(n.ports, [&](const auto &p) { return p.second.second == uid; }) > 0;
	where_.erase(known);
	return matters;
}

bool NodeUse::set_slots(const std::string &node, std::int64_t slots)
{
	OfNode &n = nodes_[node];
	const bool was = n.full();
	n.slots = slots;
	note(node, n);
	return was != n.full();
}

std::string NodeUse::objection(const std::string &uid, const kube::Pod &pod, const std::string &node) const
{
	auto it = nodes_.find(node);
	if (it == nodes_.end())
		return "";
	const OfNode &n = it->second;
	if (n.full() && !n.pods.contains(uid))
		return "all " + std::to_string(n.slots) + " pod slots are taken";
	return port_taken(uid, pod, n);
}

std::string NodeUse::port_taken(const std::string &uid, const kube::Pod &pod, const OfNode &n)
{
	for (const auto &want : pod.host_ports) {
		auto [from, to] = n.ports.equal_range(want.port);
		for (auto p = from; p != to; ++p)
			if (p->second.second != uid && collide(want, p->second.first))
				return "host port " + std::to_string(want.port) + " is taken";
	}
	return "";
}

std::set<std::string> NodeUse::excluded(const std::string &uid, const kube::Pod &pod) const
{
	std::set<std::string> out;
	for (const auto &[name, n] : nodes_)
		if (!port_taken(uid, pod, n).empty())
			out.insert(name);
	return out;
}

} // namespace sk8::core
