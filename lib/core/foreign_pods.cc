// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/foreign_pods.h"

#include <algorithm>
#include <utility>

#include "lib/core/job_request.h"
#include "lib/core/pod_log.h"
#include "lib/core/reservation.h"
#include "lib/core/shared_reservation.h"

namespace sk8::core {

ForeignPods::ForeignPods(const std::string &cluster, ForeignPorts ports, const NodeView &nodes, NodeUse &use,
			 std::vector<ResourceSettings> resources)
	: cluster_(cluster), ports_(ports), nodes_(nodes), use_(use), resources_(std::move(resources)), devices_(resources_)
{
	// Those that a former slurmctld knew: not in the first list means gone.
	const Ledger known = ports_.holds.ledger(cluster);
	for (const Hold &h : known.holds)
		if (h.foreign)
			remember(h);
	for (const Released &r : known.released)
		if (r.foreign) {
			entries_[r.key.uid].key = r.key;
			entries_[r.key.uid].declared = r.by;
		}
}

// Devices by name and index, each once.
static void add_new(GresList &to, const GresList &devices)
{
	for (const Gres &g : devices)
		if (!g.devices.empty() && !devices_collide(to, {g}))
			to.push_back(g);
}

ForeignPods::Entry &ForeignPods::remember(const Hold &h)
{
	Entry &e = entries_[h.key.uid];
	e.key = h.key;
	e.node = h.node;
	e.milli_cpu = h.milli_cpu;
	e.memory_mb = h.memory_mb;
	e.gres = h.gres;
	add_new(e.claimed, h.gres);
	e.overhead = h.overhead;
	e.grace_seconds = h.grace_seconds;
	e.held = true;
	by_node_[h.node].insert(h.key.uid);
	return e;
}

Hold ForeignPods::hold_of(const Entry &e) const
{
	Hold h;
	h.key = e.key;
	h.node = e.node;
	h.foreign = true;
	h.milli_cpu = e.milli_cpu;
	h.memory_mb = e.memory_mb;
	h.gres = e.gres;
	h.overhead = e.overhead;
	h.grace_seconds = e.grace_seconds;
	if (nodes_.exclusive(e.node))
		h.in_way = in_way(e);
	if (e.key.ns == ports_.own_namespace) {
		h.job_id = job_of_reservation(e.key.name, e.node).value_or(JobRef{}).id;
		h.some_jobs = node_of_shared_reservation(e.key.name) == e.node;
	}
	return h;
}

Hold::InWay ForeignPods::in_way(const Entry &e) const
{
	if (e.overhead || e.key.ns == ports_.own_namespace)
		return Hold::InWay::no;
	const bool goes = e.gone == Entry::Gone::no && (e.controlled || ports_.bare_pods) && nodes_.exclusive(e.node);
	return goes && !(ports_.keeps_pods && ports_.keeps_pods(e.node)) ? Hold::InWay::evictable : Hold::InWay::stays;
}

// What holds nothing is not there any more, or was released by hand.
Crowd ForeignPods::crowd(const std::string &node) const
{
	Crowd out;
	const auto of = by_node_.find(node);
	if (of == by_node_.end())
		return out;
	for (const auto &uid : of->second) {
		const Entry &e = entries_.at(uid);
		const auto way = in_way(e);
		if (way == Hold::InWay::no || !ports_.holds.held(e.key))
			continue;
		if (way == Hold::InWay::evictable)
			out.evictable.push_back({e.key, e.leaves});
		else
			out.stays = e.key;
	}
	return out;
}

// ---- what the watch tells ----

void ForeignPods::replaced(const std::vector<ForeignPodPtr> &pods)
{
	std::unordered_set<std::string> listed;
	for (const auto &pod : pods) {
		listed.insert(pod->meta.uid);
		apply(pod);
	}
	std::vector<std::string> missing; // vanish() may erase entries
	for (const auto &[uid, e] : entries_)
		if (e.gone == Entry::Gone::no && !listed.contains(uid))
			missing.push_back(uid);
	for (const auto &uid : missing)
		vanish(entries_.at(uid), false);
	synced_ = true;
}

void ForeignPods::changed(const ForeignPodPtr &pod)
{
	apply(pod);
}

void ForeignPods::removed(const ForeignPodPtr &last)
{
	apply(last); // perhaps with the proof
	if (auto it = entries_.find(last->meta.uid); it != entries_.end())
		vanish(it->second, !last->mirror);
}

// A resize in place to less is nothing yet but somebody's wish: until its kubelet has told of it, that has what was requested before,
// also while slurmctld was away (the saved ledger's word). What jobs share has an account of its own.
void ForeignPods::learn_request(Entry &e, const ForeignPod &pod)
{
	const bool keeps = pod.unheard && !pod.shared;
	e.milli_cpu = std::max(pod.milli_cpu, keeps ? e.milli_cpu : 0);
	e.memory_mb = std::max(whole_mib(pod.memory_bytes), keeps ? e.memory_mb : 0);
}

void ForeignPods::apply(const ForeignPodPtr &pod)
{
	if (pod->node_name.empty())
		return;
	if (auto at = entries_.find(pod->meta.uid); at != entries_.end() && at->second.node != pod->node_name) {
		stay_behind(at->second);
		at->second.claimed.clear();
		at->second.milli_cpu = 0;
		at->second.memory_mb = 0;
	}
	const auto [it, fresh] = entries_.try_emplace(pod->meta.uid);
	Entry &e = it->second;
	e.key = {cluster_, pod->meta.ns, pod->meta.name, pod->meta.uid};
	e.node = pod->node_name;
	learn_request(e, *pod);
	e.gres = gres_of(pod->extended, resources_);
	e.extended = pod->extended;
	e.claims = pod->resource_claims;
	if (!e.claims.empty())
		with_claims_.insert(it->first);
	e.grace_seconds = pod->grace_seconds;
	e.phase = pod->phase;
	e.mirror = pod->mirror;
	e.created = pod->meta.creation_time;
	e.overhead = pod->overhead;
	e.controlled = pod->controlled;
	e.leaves = pod->meta.deleting;
	e.seen = true;
	e.gone = Entry::Gone::no;
	ask_agent(e, false);
	gone_.erase(it->first);
	if (pod->over) {
		if (const auto held = ports_.holds.held_by(e.key); held && !held->hold.foreign && ports_.ours_is_over)
			ports_.ours_is_over(e.key);
		return free(e, "it has ended");
	}
	if (by_node_[e.node].insert(it->first).second && learn(e.node))
		update_all_on(e.node);
	use_changed_ |= use_.add(it->first, e.node, pod->host_ports, pod->storage_bytes);
	update(e);
	if (!e.mirror || !fresh || !nodes_.synced()) // it holds nothing yet itself
		return;
	// The kubelet shows a static pod again under another uid. An older object is only of a backup.
	std::vector<std::string> replaced;
	for (const auto &uid : gone_)
		if (const Entry &old = entries_.at(uid); old.mirror && old.node == e.node && old.key.ns == e.key.ns &&
							 old.key.name == e.key.name && old.created <= e.created)
			replaced.push_back(uid);
	for (const auto &uid : replaced)
		free(entries_.at(uid), "the kubelet shows it anew");
}

// Of each GRES as many fewer whose devices are not known as there are devices of that name in the other list.
static void take_unnamed(GresList &from, const GresList &devices)
{
	std::map<std::string, std::uint64_t> left;
	for (const Gres &g : devices)
		left[g.name] += g.devices.size();
	for (Gres &g : from) {
		const auto taken = std::min<std::uint64_t>(left[g.name], g.count - std::min<std::uint64_t>(g.count, g.devices.size()));
		left[g.name] -= taken;
		g.count -= taken;
	}
}

// Of what it has claimed those of the claim that kube-scheduler has made for its extended resources (KEP-5004): these it
// requests by number, too.
GresList ForeignPods::served_by_claim(const Entry &e) const
{
	std::vector<kube::PodResourceClaim> own = e.claims;
	if (!std::erase_if(own, [](const auto &c) { return c.name.empty(); }))
		return {};
	GresList out = e.claimed;
	const GresList others = ports_.dra ? ports_.dra->held(e.key.ns, own, e.key.uid, e.node) : GresList();
	std::erase_if(out, [&](const Gres &g) { return devices_collide({g}, others); });
	return out;
}

// What of it is nobody's but the pod's. False: nothing.
bool ForeignPods::uncovered(const Entry &e, Hold &hold) const
{
	const Cover covered = ports_.covered ? ports_.covered(e.key.uid) : Cover{};
	if (covered.whole) {
		hold.milli_cpu = 0;
		hold.memory_mb = 0;
		hold.gres = covered.beyond;
		return !hold.gres.empty();
	}
	hold.gres = e.extended.empty() ? devices_.with_devices(e.node, e.key.uid, std::move(hold.gres)) // of the saved ledger
				       : devices_.gres_of(e.node, e.key.uid, e.extended);
	if (!e.claims.empty()) {
		take_unnamed(hold.gres, served_by_claim(e));
		add_new(hold.gres, e.claimed);
		hold.gres = merged(std::move(hold.gres));
	}
	if (covered.milli_cpu || covered.memory_mb) { // which cores of it are a job's nobody says
		hold.milli_cpu = std::max<std::int64_t>(hold.milli_cpu - covered.milli_cpu, 0);
		hold.memory_mb -= std::min(hold.memory_mb, covered.memory_mb);
		return hold.milli_cpu || hold.memory_mb || !hold.gres.empty();
	}
	if (const PinnedPod *pinned = pinned_.find(e.node, e.key.uid)) {
		hold.cores = pinned->cores;
		hold.milli_cpu = std::max<std::int64_t>(hold.milli_cpu - std::int64_t{1000} * pinned->cpus, 0);
	}
	return true;
}

// It has them until its end is proved, whatever becomes of the driver or of the claim, which are told of apart from the pods. A
// device of which nobody says which one it is hides nothing of the others.
void ForeignPods::learn_claimed(Entry &e) const
{
	if (!ports_.dra || e.claims.empty() || !e.seen || e.gone != Entry::Gone::no)
		return;
	add_new(e.claimed, ports_.dra->held(e.key.ns, e.claims, e.key.uid, e.node));
}

void ForeignPods::claim_changed(const std::string &ns, const std::string &claim)
{
	for (const auto &uid : with_claims_) {
		Entry &e = entries_.at(uid);
		if (e.key.ns == ns && kube::has_claim(e.claims, claim))
			update(e);
	}
}

void ForeignPods::claims_changed()
{
	for (const auto &uid : with_claims_)
		update(entries_.at(uid));
}

// Holds what it uses, or nothing: on a node that is not shared, or released by hand. Whether Slurm has the node does not matter:
// a node that is made in Slurm is given to jobs before anybody could be told of it (create_dynamic_reg_node() in node_mgr.c).
void ForeignPods::update(Entry &e)
{
	e.waits_for_nodes = !nodes_.synced();
	if (e.waits_for_nodes)
		return; // what the saved ledger says holds until then
	const auto held = ports_.holds.held_by(e.key);
	if (held && !held->hold.foreign)
		return; // of a time when its scheduler was one of ours: that is the pods controller's
	if (!held && e.held && e.gone != Entry::Gone::no)
		return; // who took it over has seen its end
	learn_claimed(e);
	Hold hold = hold_of(e);
	if (!uncovered(e, hold) || nodes_.shared_in_kubernetes(e.node) == NodeView::Shared::no || !e.declared.empty()) {
		drop_hold(e);
		return;
	}
	e.held = true;
	if (nodes_.shared_in_kubernetes(e.node) == NodeView::Shared::unknown)
		deleted_nodes_.insert(e.node);
	if (!ports_.holds.hold_foreign(hold))
		return;
	ports_.journal.hold(hold);
	if (held)
		ports_.slurm.wake_scheduler(); // it may be less than before
	log_pod(verbose, e.key, 0, "foreign pod on node %s: %zu cores of its own, %lld mCPU and %llu MiB are masked", e.node.c_str(),
		hold.cores.size(), static_cast<long long>(hold.milli_cpu), static_cast<unsigned long long>(hold.memory_mb));
}

// False: it holds nothing.
bool ForeignPods::drop_hold(const Entry &e)
{
	const auto held = ports_.holds.held_by(e.key);
	if (!held || !held->hold.foreign)
		return false;
	ports_.holds.release(e.key);
	ports_.journal.free(e.key);
	ports_.slurm.wake_scheduler();
	return true;
}

// ---- nodes ----

// True: its pods are on other cores or have other devices than before. Of a node that Kubernetes has deleted all stays as it was.
bool ForeignPods::learn(const std::string &node)
{
	const kube::Node *n = nodes_.find(node);
	if (!n)
		return false;
	const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(n->allocatable.memory_bytes, 0));
	// Another cluster may share a node of this name.
	if (nodes_.shared_in_kubernetes(node) == NodeView::Shared::yes && ports_.holds.set_allocatable(node, {n->allocatable.milli_cpu, bytes >> 20}))
		ports_.slurm.wake_scheduler(); // less may be masked than before
	const bool other_cores = pinned_.read(*n);
	return devices_.read(*n) || other_cores;
}

void ForeignPods::update_all_on(const std::string &node)
{
	for (const auto &uid : by_node_.at(node))
		update(entries_.at(uid));
}

void ForeignPods::node_changed(const std::string &node, bool placing)
{
	if (by_node_.contains(node) && (learn(node) || placing))
		update_all_on(node);
	hear_agent(node);
	std::vector<std::string> over;
	for (const auto &uid : gone_)
		if (Entry &e = entries_.at(uid); e.node == node && e.gone == Entry::Gone::unseen && proved_by_kubelet(e))
			over.push_back(uid);
	for (const auto &uid : over)
		free(entries_.at(uid), "its node's kubelet has reported since");
}

void ForeignPods::nodes_changed()
{
	std::set<std::string> learned;
	for (const auto &[node, uids] : by_node_)
		if (learn(node))
			learned.insert(node);
	std::vector<std::string> nothing;
	for (auto &[uid, e] : entries_) {
		if (e.gone != Entry::Gone::no)
			count_anew(e); // what its kubelet did before is not known
		if (e.gone != Entry::Gone::no && ports_.holds.held(e.key) && !learned.contains(e.node) && !e.waits_for_nodes)
			continue;
		update(e); // also of what vanished before nodes were known
		if (e.gone != Entry::Gone::no && nodes_.synced() && !ports_.holds.held(e.key))
			nothing.push_back(uid);
	}
	for (const auto &uid : nothing)
		forget(uid);
	for (const auto &node : nodes_.names())
		hear_agent(node);
}

void ForeignPods::cover_changed(const std::string &uid)
{
	if (auto it = entries_.find(uid); it != entries_.end() && it->second.gone == Entry::Gone::no)
		update(it->second);
}

void ForeignPods::keeps_changed(const std::string &node)
{
	if (by_node_.contains(node))
		update_all_on(node);
}

// ---- slurm-k8s ----

ForeignNumbers ForeignPods::numbers() const
{
	ForeignNumbers out;
	for (const auto &[uid, e] : entries_) {
		if (!ports_.holds.held(e.key))
			continue;
		out.held++;
		out.unproved += e.gone == Entry::Gone::unseen;
		out.lost += e.gone == Entry::Gone::seen;
	}
	return out;
}

std::string ForeignPods::why_held(const Entry &e) const
{
	switch (e.gone) {
	case Entry::Gone::seen:
		return "its object vanished before the kubelet had reported its containers gone";
	case Entry::Gone::unseen:
		return "it is gone, and the kubelet of node " + e.node + " has not reported since";
	case Entry::Gone::no:
		break;
	}
	return synced_ ? "" : "Kubernetes has not told yet which pods there are";
}

std::vector<ForeignReport> ForeignPods::reports(const StatusQuery &query, std::size_t max, std::size_t &more) const
{
	std::vector<ForeignReport> out;
	more = 0;
	// Without a question only those that need somebody's attention: the rest are the node's daily life.
	const bool all = !query.node.empty() || !query.pod.empty();
	for (const auto &[uid, e] : entries_) {
		if (!query.wants_pod(e.key) || (!query.node.empty() && query.node != e.node) ||
		    (!all && e.gone == Entry::Gone::no))
			continue;
		const auto held = ports_.holds.held_by(e.key);
		if (!held)
			continue;
		if (out.size() < max)
			out.push_back({held->hold, e.phase, why_held(e)});
		else
			more++;
	}
	std::ranges::sort(out, {}, [](const ForeignReport &r) {
		return std::tie(r.hold.node, r.hold.key.ns, r.hold.key.name, r.hold.key.uid);
	});
	return out;
}

std::optional<Result<std::string>> ForeignPods::release_by_hand(const std::string &uid, const std::string &by, bool force)
{
	auto it = entries_.find(uid);
	if (it == entries_.end())
		return std::nullopt;
	Entry &e = it->second;
	const std::string pod = pod_text(e.key, 0);
	const auto held = ports_.holds.held_by(e.key);
	if (!held)
		return Error{pod + " holds nothing"};
	if (!held->hold.foreign)
		return std::nullopt; // see update()
	std::string why_not;
	if (!synced_ || !nodes_.synced())
		why_not = "Kubernetes has not told yet which pods and nodes there are, so it may run";
	else if (e.gone == Entry::Gone::no && nodes_.kubelet(e.node) == NodeView::Kubelet::ready)
		why_not = "Kubernetes has it (phase " + e.phase + ") on node " + e.node + ", whose kubelet reports; delete the pod";
	if (!why_not.empty() && !force)
		return Error{pod + " is not released: " + why_not + " (--force releases it all the same)"};
	log_warning("%s: what this foreign pod holds on node %s is released by hand by %s%s%s", pod.c_str(),
		    e.node.c_str(), by.c_str(), why_not.empty() ? "" : ", though ", why_not.c_str());
	const std::string done = "what " + pod + " holds on node " + e.node + " is free";
	if (e.gone != Entry::Gone::no) {
		free(e, "released by hand");
		return done;
	}
	e.declared = by;
	const Released word{e.key, by, true};
	drop_hold(e); // also before nodes are known
	ports_.holds.remember_release(word);
	ports_.journal.released(word);
	return done;
}

} // namespace sk8::core
