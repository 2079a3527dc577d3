// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What pods, ours and others', use of a node beside cores and memory: host ports, pod slots
// (allocatable.pods) and requests of ephemeral-storage. Slurm knows none of them, the kubelet
// would refuse the pod; so a node where they are taken is excluded, or masked. Engine thread
// only, no I/O.
#ifndef SK8_CORE_NODE_USE_H
#define SK8_CORE_NODE_USE_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "lib/kube/objects.h"

namespace sk8::core {

class NodeUse {
public:
	// The pod of that uid is on the node, with all that it uses there; storage: bytes. true: for some
	// pod the answer of objection() may be another now, not only by storage: see room_changed().
	bool add(const std::string &uid, const std::string &node, const std::vector<kube::HostPort> &ports, std::int64_t storage = 0);
	// It is over. The same.
	bool remove(const std::string &uid);
	// Allocatable pods of a node; 0: not known, no limit. The same.
	bool set_slots(const std::string &node, std::int64_t slots);
	// Allocatable ephemeral-storage of a node, bytes; nothing: not known, no limit.
	void set_storage(const std::string &node, std::optional<std::int64_t> bytes);

	// True once after some node has got so little storage, or had it before, that one of those for which excluded() was asked
	// may not fit. Many pods request some and nearly always have room: what they take and give is no news to the others.
	bool room_changed() { return std::exchange(room_changed_, false); }

	// Nodes that have all the pods that they can have.
	const std::set<std::string> &full() const { return full_; }
	// True once after that has become another set.
	bool full_changed() { return std::exchange(full_changed_, false); }

	// Empty: there is room for it on the node. Else why not, a few words. A pod is
	// never in its own way.
	std::string objection(const std::string &uid, const kube::Pod &pod, const std::string &node) const;
	// Nodes where its host ports are taken, or too little storage is left. Not the full ones: Slurm refuses a job for which there
	// is no other node, and masks keep it from these (mask_index.h). Asks each node, and none of the pods there.
	std::set<std::string> excluded(const std::string &uid, const kube::Pod &pod);

	// What it requests of ephemeral-storage, bytes; 0: nothing.
	static std::int64_t storage_of(const kube::Resources &request);

private:
	struct OfNode {
		std::set<std::string> pods;                               // uids
		std::multimap<std::int32_t, std::pair<kube::HostPort, std::string>> ports; // port -> who
		std::int64_t slots = 0;
		std::optional<std::uint64_t> storage;
		std::uint64_t storage_used = 0;
		bool full() const { return slots > 0 && static_cast<std::int64_t>(pods.size()) >= slots; }
		std::uint64_t room() const { return !storage ? UINT64_MAX : *storage > storage_used ? *storage - storage_used : 0; }
	};
	struct Place {
		std::string node;
		std::uint64_t storage = 0;
	};
	static std::string port_taken(const std::string &uid, const kube::Pod &pod, const OfNode &n);
	std::uint64_t room_for(const std::string &uid, const OfNode &n) const;
	void note(const std::string &node, const OfNode &of);
	void note_room(std::uint64_t before, std::uint64_t now);

	std::map<std::string, OfNode> nodes_;
	std::set<std::string> full_;
	bool full_changed_ = false, room_changed_ = false;
	std::uint64_t largest_wish_ = 0; // storage, of those that excluded() was asked for
	std::unordered_map<std::string, Place> where_; // by uid
};

} // namespace sk8::core

#endif
