// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods whose object is proved absent and whose end nobody has proved, and what the agents of their nodes say of them, in
// annotations of the node:
//
//	slurm-k8s.io/lost: "<uid>@<seconds>,..."   the engine asks: which pods, and since when each is lost (1970)
//	slurm-k8s.io/gone: the same words          the agent answers: of these nothing runs, or will run (lib/agent/gone_pods.h)
//
// Only the very word that is asked now counts as an answer, so whatever is said was looked at after the loss: what
// stands there of a former loss of the same pod, which a backup of etcd may have brought back, has another time in it.
//
// Nothing can still be on its way to a pod that is asked about: its uid is proved absent, and a Binding with that uid is
// refused from then on. What its kubelet has heard of it before is the agent's business.
#ifndef SK8_CORE_LOST_PODS_H
#define SK8_CORE_LOST_PODS_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/kube/objects.h"

namespace sk8::core {

inline constexpr std::size_t max_lost_pods = 64; // asked about on a node at once

// Empty: no kubelet can have a pod of such a uid. Pure, as all of these.
std::string lost_word(std::string_view uid, std::int64_t since);
std::string_view uid_of_lost(std::string_view word);
// The annotations' text; what in it is no such word, or too much, is left out: anybody who may write annotations of nodes may
// write anything.
std::string lost_text(const std::set<std::string> &words);
std::set<std::string> parse_lost(std::string_view text);

// One thread.
class LostPods {
public:
	// since: by the wall clock, seconds since 1970.
	void add(const std::string &uid, const std::string &node, std::int64_t since);
	void remove(const std::string &uid);

	// What is to be asked there; those that are lost for longest first, if they are too many. Empty: nothing.
	std::string question(const std::string &node) const;
	// Of which pods of those its agent says that nothing of them is left.
	std::vector<std::string> answered(const kube::Node &node) const;
	// Nodes that are to be asked something else since the last call.
	std::set<std::string> take_changed() { return std::exchange(changed_, {}); }

private:
	struct Lost {
		std::int64_t since = 0;
		std::string uid, word;
		auto operator<=>(const Lost &) const = default;
	};
	std::set<std::string> asked(const std::string &node) const;

	std::map<std::string, std::set<Lost>> by_node_;
	std::unordered_map<std::string, std::string> nodes_; // by uid
	std::set<std::string> changed_;
};

} // namespace sk8::core

#endif
