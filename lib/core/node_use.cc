// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_use.h"

#include <algorithm>

#include "lib/core/placement.h"

namespace sk8::core {

// More than any node has, and so little that sums of very many of them are none that overflow.
static constexpr std::int64_t most_storage = std::int64_t{1} << 50;

std::int64_t NodeUse::storage_of(const kube::Resources &request)
{
	return std::clamp<std::int64_t>(ephemeral_storage(request).value_or(0), 0, most_storage);
}

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

void NodeUse::note_room(std::uint64_t before, std::uint64_t now)
{
	room_changed_ |= before != now && std::min(before, now) < largest_wish_;
}

bool NodeUse::add(const std::string &uid, const std::string &node, const std::vector<kube::HostPort> &ports, std::int64_t storage)
{
	auto known = where_.find(uid);
	if (known != where_.end() && known->second.node == node)
		return false;
	remove(uid);
	const auto bytes = static_cast<std::uint64_t>(std::clamp<std::int64_t>(storage, 0, most_storage));
	where_[uid] = {node, bytes};
	OfNode &n = nodes_[node];
	n.pods.insert(uid);
	for (const auto &p : ports)
		n.ports.emplace(p.port, std::make_pair(p, uid));
	const std::uint64_t before = n.room();
	n.storage_used += bytes;
	note_room(before, n.room());
	note(node, n);
	return n.full() || !ports.empty();
}

bool NodeUse::remove(const std::string &uid)
{
	auto known = where_.find(uid);
	if (known == where_.end())
		return false;
	OfNode &n = nodes_[known->second.node];
	bool matters = n.full();
	n.pods.erase(uid);
	const std::uint64_t before = n.room();
	n.storage_used -= known->second.storage;
	note_room(before, n.room());
	note(known->second.node, n);
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

void NodeUse::set_storage(const std::string &node, std::optional<std::int64_t> bytes)
{
	OfNode &n = nodes_[node];
	const std::uint64_t before = n.room();
	n.storage.reset();
	if (bytes)
		n.storage = static_cast<std::uint64_t>(std::max<std::int64_t>(*bytes, 0));
	note_room(before, n.room());
}

// What the others leave of its storage.
std::uint64_t NodeUse::room_for(const std::string &uid, const OfNode &n) const
{
	if (!n.storage || !n.pods.contains(uid))
		return n.room();
	const std::uint64_t others = n.storage_used - where_.at(uid).storage;
	return *n.storage > others ? *n.storage - others : 0;
}

std::string NodeUse::objection(const std::string &uid, const kube::Pod &pod, const std::string &node) const
{
	auto it = nodes_.find(node);
	if (it == nodes_.end())
		return "";
	const OfNode &n = it->second;
	if (n.full() && !n.pods.contains(uid))
		return "all " + std::to_string(n.slots) + " pod slots are taken";
	const auto wish = static_cast<std::uint64_t>(storage_of(pod.request));
	if (const std::uint64_t room = room_for(uid, n); wish > room)
		return "its pods leave " + std::to_string(room >> 20) + " MiB of its ephemeral-storage, and this one requests " +
		       std::to_string(wish >> 20);
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

std::set<std::string> NodeUse::excluded(const std::string &uid, const kube::Pod &pod)
{
	std::set<std::string> out;
	const auto wish = static_cast<std::uint64_t>(storage_of(pod.request));
	if (!wish && pod.host_ports.empty())
		return out;
	largest_wish_ = std::max(largest_wish_, wish);
	for (const auto &[name, n] : nodes_)
		if (wish > room_for(uid, n) || !port_taken(uid, pod, n).empty())
			out.insert(name);
	return out;
}

} // namespace sk8::core
