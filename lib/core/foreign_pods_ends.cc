// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How foreign pods end: what they hold is free when it is proved that nothing of them is left.
#include "lib/core/foreign_pods.h"

#include <algorithm>
#include <utility>

#include "lib/core/pod_log.h"

namespace sk8::core {

// After its grace, for what the kubelet needs to notice and to clean up; and so long nobody
// notices that a kubelet is not heard of (kube-controller-manager, --node-monitor-grace-period).
static constexpr Millis time_to_clean_up{30'000}, silence_unnoticed{50'000};
// A kubelet whose static pod is shown no more, because somebody has deleted its mirror by force, shows it anew when it looks at it
// next: within a minute and a half (syncFrequency is a minute, and half of it more by chance; seven times after 65 to 89 s, 1.35).
static constexpr Millis shown_anew{90'000};

// An etcd from a backup knew it without a node, and it has got another one since: what runs on the first is held there, by a
// uid that no pod has, until that kubelet has reported.
void ForeignPods::stay_behind(const Entry &e)
{
	const std::string uid = e.key.uid, node = e.node;
	const auto held = ports_.holds.held_by(e.key);
	if (auto of = by_node_.find(node); of != by_node_.end()) {
		of->second.erase(uid);
		if (of->second.empty())
			by_node_.erase(of);
	}
	if (!held || !held->hold.foreign || held->hold.node != node)
		return;
	Hold left = held->hold;
	left.key.uid = uid + "@" + node;
	if (ports_.holds.hold_foreign(left))
		ports_.journal.hold(left);
	vanish(remember(left), false);
}

void ForeignPods::vanish(Entry &e, bool seen)
{
	if (e.gone != Entry::Gone::no)
		return;
	if (nodes_.synced() && !ports_.holds.held(e.key))
		return forget(e.key.uid); // it takes nothing of a shared node
	use_changed_ |= use_.remove(e.key.uid);
	e.gone = seen ? Entry::Gone::seen : Entry::Gone::unseen;
	count_anew(e);
	gone_.insert(e.key.uid);
	ask_agent(e, true);
	if (nodes_.exclusive(e.node))
		update(e); // nobody can evict it any more
	if (seen)
		log_pod(error, e.key, 0, "the object of this foreign pod vanished before the kubelet had reported its "
			"containers gone; what it holds on node %s stays masked", e.node.c_str());
	else
		log_pod(info, e.key, 0, "this foreign pod is gone; what it holds on node %s stays masked until the kubelet "
			"has reported again", e.node.c_str());
}

// Of a static pod its agent would find nothing: on its node it has another uid than its mirror. Of what only the saved ledger
// knows nothing tells a static pod from a DaemonSet's.
void ForeignPods::ask_agent(Entry &e, bool wanted)
{
	wanted = wanted && !e.mirror && (e.seen || !e.overhead);
	if (!ports_.lost || wanted == e.agent_asked)
		return;
	e.agent_asked = wanted;
	if (wanted)
		ports_.lost->add(e.key.uid, e.node, ports_.timer.wall_seconds());
	else
		ports_.lost->remove(e.key.uid);
}

void ForeignPods::hear_agent(const std::string &node)
{
	const kube::Node *n = ports_.lost && by_node_.contains(node) ? nodes_.find(node) : nullptr;
	if (!n)
		return;
	for (const auto &uid : ports_.lost->answered(*n))
		if (auto it = entries_.find(uid); it != entries_.end() && it->second.agent_asked) {
			log_pod(info, it->second.key, 0, "the agent of node %s has seen that nothing of this foreign pod is left", node.c_str());
			free(it->second, "its node's agent has seen its end");
		}
}

void ForeignPods::count_anew(Entry &e)
{
	e.counts_from = ports_.timer.now();
	e.heartbeat = nodes_.heartbeat(e.node);
	e.silent = nodes_.kubelet(e.node) != NodeView::Kubelet::ready;
}

// The kubelet, heard of all the time in which the pod had to end, and once more after that:
// one that comes back reports at once, before it has ended what is not in the API any more.
bool ForeignPods::proved_by_kubelet(Entry &e)
{
	if (e.silent || nodes_.kubelet(e.node) != NodeView::Kubelet::ready)
		count_anew(e);
	const bool perhaps_static = e.mirror || (e.overhead && !e.seen); // no ledger says which of those that belong to the node are
	const Millis needed = Millis(e.grace_seconds * 1000) + time_to_clean_up + std::max(silence_unnoticed, perhaps_static ? shown_anew : Millis(0));
	const std::int64_t heartbeat = nodes_.heartbeat(e.node);
	if (ports_.timer.now() - e.counts_from < needed) {
		e.heartbeat = heartbeat;
		return false;
	}
	return heartbeat != 0 && heartbeat != e.heartbeat;
}

void ForeignPods::free(Entry &e, const char *why)
{
	if (drop_hold(e))
		log_pod(debug, e.key, 0, "foreign pod: %s; what it held on node %s is free", why, e.node.c_str());
	forget(e.key.uid);
}

void ForeignPods::forget(const std::string &uid)
{
	auto it = entries_.find(uid);
	if (it == entries_.end())
		return;
	use_changed_ |= use_.remove(uid);
	ask_agent(it->second, false);
	if (!it->second.declared.empty()) {
		ports_.holds.forget_release(it->second.key);
		ports_.journal.free(it->second.key);
	}
	if (auto of = by_node_.find(it->second.node); of != by_node_.end()) {
		of->second.erase(uid);
		if (of->second.empty())
			by_node_.erase(of);
	}
	gone_.erase(uid);
	with_claims_.erase(uid);
	entries_.erase(it);
}

} // namespace sk8::core
