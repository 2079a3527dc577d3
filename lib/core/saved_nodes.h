// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a cluster has told of nodes, beside its saved ledger, for the time between a start of slurmctld and the first list of
// nodes (longer while the API server is away): which of Slurm's devices are missing there, and which features its labels are.
//
//   {"v":1}                                                        first line
//   {"node":"n1","missing":[{"name":"gpu","type":"","count":1,"devices":[1]}],"features":["k8s.zone.a"]}
//
// A file of its own: a slurm-k8s of before refuses a ledger with a line that it does not know, and then closes all nodes. It is
// written anew when something of it changes, once a second at most, and not waited for: nothing is bound by it.
//
// Only the thread of its owner; does disk I/O.
#ifndef SK8_CORE_SAVED_NODES_H
#define SK8_CORE_SAVED_NODES_H

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/core/gres.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

struct SavedNode {
	GresList missing;                  // HoldTable::set_missing()
	std::vector<std::string> features; // sorted; those of ours
	bool operator==(const SavedNode &) const = default;
};
using SavedNodes = std::map<std::string, SavedNode>; // by name

std::string saved_nodes_text(const SavedNodes &nodes);
// Error: a line that makes no sense, or more than there can be.
Result<SavedNodes> parse_saved_nodes(std::string_view text);

// "<state_dir>/slurm-k8s.<cluster>.nodes"
std::string saved_nodes_path(const std::string &state_dir, const std::string &cluster);
// Reads from the disk; there is no such file: no nodes. Error: it cannot be believed.
Result<SavedNodes> load_saved_nodes(const std::string &path, std::uint32_t slurm_uid);

class NodesFile {
public:
	// known: what load_saved_nodes() gave. timer: must outlive this.
	NodesFile(std::string path, SavedNodes known, TimerPort &timer)
		: path_(std::move(path)), nodes_(std::move(known)), timer_(timer)
	{
	}
	const SavedNodes &nodes() const { return nodes_; }
	GresList missing(const std::string &node) const; // as it was set last
	void set_missing(const std::string &node, const GresList &gres);
	void set_features(const std::string &node, const std::vector<std::string> &features);
	void flush(); // if there is something, and it is time

private:
	template <class T>
	void set(const std::string &node, T SavedNode::*what, const T &value);

	std::string path_;
	SavedNodes nodes_;
	TimerPort &timer_;
	bool changed_ = false, failed_ = false;
	Millis next_{0};
};

} // namespace sk8::core

#endif
