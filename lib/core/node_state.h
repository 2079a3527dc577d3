// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A node's state on both sides, and what each side should be told of the other's. Pure:
// (what Kubernetes says, what Slurm says, whose mark is on which) -> what to do.
//
// Two rules make it come to rest whatever two administrators do at once: what carries no
// mark of ours is never changed, and who takes back only what we did on his side has
// decided, so that it is not done again for the same reason.
#ifndef SK8_CORE_NODE_STATE_H
#define SK8_CORE_NODE_STATE_H

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/annotations.h"
#include "lib/core/settings.h"
#include "lib/core/slurm_node.h"
#include "lib/kube/objects.h"

namespace sk8::core {

// Why Kubernetes wants no work on a node.
inline constexpr const char *not_ready_word = "NotReady";

struct Cause {
	std::string word; // "cordoned", not_ready_word, "deleted", or the condition's type
	std::string text; // what Slurm's reason is; begins with the word
	bool down = false; // jobs are to end, too
};

struct NodeFacts {
	// ---- Kubernetes ----
	bool exists = false; // there is an object
	bool shared = false; // with Slurm; of one that is deleted: it was
	bool unschedulable = false;
	bool ours_cordon = false;  // unschedulable by us
	std::string owner;         // drain-owner, as noted
	std::string owned_for;     // drain-reason: what we cordoned it for, ...
	bool decided = false;      // ... and an administrator has decided otherwise since
	std::vector<Cause> causes; // the first one counts; our own cordon is none
	std::set<std::string> resumed;       // causes despite which Slurm's administrator has resumed it
	std::set<std::string> resumed_noted; // ... as the object says
	bool has_condition = false;          // SlurmDrained, in whatever state
	// ---- Slurm ----
	bool known = false;     // Slurm has such a node
	bool ours = false;      // we drained it, or set it down
	bool down = false;      // by whomever
	std::string our_reason; // of that, with the mark
	bool own = false;       // Slurm has a reason of its own
	bool own_drain = false; // DRAIN, DOWN or FAIL, not only a reservation for maintenance
	std::string own_reason, own_by; // for people; by: a user, or empty
	std::uint32_t jobs = 0;
};

// What we write to the object; all in one request.
struct NodePatch {
	std::optional<bool> unschedulable;
	AnnotationChanges annotations;

	bool empty() const { return !unschedulable && annotations.empty(); }
	bool operator==(const NodePatch &) const = default;
};

struct NodePlan {
	std::optional<NodeChange> slurm; // but for the node's name
	NodePatch kube;
	std::optional<kube::NodeCondition> condition; // how it should be; nothing: not our business
};

NodePlan decide(const NodeFacts &facts, const StateSettings &settings);

// Did we, or somebody else with our words, find before a restart that it was not ready for long enough?
bool was_not_ready(const NodeFacts &facts);

// not_ready: for longer than settings.not_ready.after. ours_cordon: see NodeFacts.
std::vector<Cause> causes_of(const kube::Node &node, const StateSettings &settings, bool not_ready,
			     bool ours_cordon);
Cause deleted_cause();
// Fills what is of Slurm, but for own_by. slurm_uid: SlurmUser, who we are there.
void look_at(const SlurmNode &node, std::uint32_t slurm_uid, NodeFacts &facts);
// Fills what is of the object, but for shared, causes and resumed. taken_over: the object has
// been seen uncordoned since we cordoned it for the reason that it names.
void look_at(const kube::Node &node, bool taken_over, NodeFacts &facts);
// Does its condition tell that Slurm keeps jobs away from it for just this reason? Then it was shared by this cluster.
bool tells_drain(const kube::Node &node, std::string_view reason);
// Of an object without our cordon that says that it is there: for which reason it was.
std::optional<std::string> taken_over_for(const kube::Node &node);

// Of a reason of ours the cause's word, of any other reason nothing.
std::string_view cause_word(std::string_view reason);

// Empty: there is none.
std::string annotation(const kube::Node &node, std::string_view name);
const kube::NodeCondition *find_condition(const kube::Node &node, std::string_view type);

} // namespace sk8::core

#endif
