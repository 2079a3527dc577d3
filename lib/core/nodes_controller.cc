// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/nodes_controller.h"

#include <unordered_set>

#include "lib/base/doubling.h"
#include "lib/base/log_limit.h"
#include "lib/core/names.h"
#include "lib/kube/resource_version.h"

namespace sk8::core {

static constexpr Millis first_delay{500}, longest_delay{60'000};
static constexpr std::size_t max_users = 1000;

#define log_node(level, name, format, ...) \
	log_limited(::sk8::LogLevel::level, name, "node %s/%s: " format, settings_.name.c_str(), \
		    (name).c_str() __VA_OPT__(, ) __VA_ARGS__)

NodesController::NodesController(const ClusterSettings &settings, NodesPorts ports)
	: settings_(settings), ports_(std::move(ports)), shared_(settings.nodes), devices_(settings.resources)
{
}

// ---- news ----

void NodesController::set_kube(Entry &e, const kube::NodePtr &node)
{
	// An answer to a write of ours may have been faster than the watch.
	if (e.kube && node && e.kube->meta.uid == node->meta.uid &&
	    kube::is_older(node->meta.resource_version, e.kube->meta.resource_version))
		return;
	if (e.kube && shared_.has(*e.kube))
		e.was_shared = true;
	e.kube = node;
	if (!node || annotation(*node, names::drain_owner) != names::drain_owner_slurm)
		e.taken_over_for.reset();
	else if (auto reason = taken_over_for(*node))
		e.taken_over_for = std::move(reason);
}

void NodesController::deleted_before(const std::string &node)
{
	Entry &e = entries_[node];
	e.was_shared |= !e.kube;
	sync(node);
}

void NodesController::nodes_replaced(const std::vector<kube::NodePtr> &nodes)
{
	std::unordered_set<std::string> listed;
	for (const auto &node : nodes) {
		listed.insert(node->meta.name);
		set_kube(entries_[node->meta.name], node);
	}
	for (auto &[name, e] : entries_)
		if (!listed.contains(name))
			set_kube(e, nullptr);
	kube_synced_ = true;
	back();
}

void NodesController::node_changed(const kube::NodePtr &node)
{
	Entry &e = entries_[node->meta.name];
	set_kube(e, node);
	if (e.kube_retry.failures == 1) // somebody else's write was faster: this is it
		e.kube_retry.at = Millis(0);
	sync(node->meta.name);
}

void NodesController::node_removed(const kube::NodePtr &last)
{
	auto it = entries_.find(last->meta.name);
	if (it == entries_.end())
		return;
	set_kube(it->second, nullptr);
	sync(last->meta.name);
}

void NodesController::drivers_changed(const DraInventory::Changed &changed)
{
	if (changed.all)
		for (auto &[name, e] : entries_)
			devices(name, e);
	for (const auto &name : changed.nodes)
		if (const auto e = entries_.find(name); e != entries_.end())
			devices(name, e->second);
}

void NodesController::lost()
{
	connected_ = false;
}

void NodesController::back()
{
	if (!kube_synced_)
		return;
	if (!connected_)
		for (auto &[name, e] : entries_)
			e.not_ready_since.reset(); // begins anew
	connected_ = true;
	sync_all();
}

void NodesController::slurm_nodes(const std::vector<SlurmNode> &nodes)
{
	std::unordered_set<std::string> listed;
	std::vector<std::string> changed;
	for (const auto &node : nodes) {
		listed.insert(node.name);
		Entry &e = entries_[node.name];
		if (slurm_synced_ && e.slurm == node)
			continue;
		e.slurm = node;
		changed.push_back(node.name);
	}
	for (auto &[name, e] : entries_)
		if (!listed.contains(name))
			e.slurm.reset();
	if (!std::exchange(slurm_synced_, true))
		return sync_all();
	for (const auto &name : changed)
		sync(name);
}

// ---- facts ----

// How long it has been not ready; and asks again when it is long enough. Of one that Slurm has powered down nobody expects more,
// and drained it would never be powered up again.
void NodesController::watch_ready(const std::string &name, Entry &e, const NodeFacts &f)
{
	if (!e.kube || e.kube->ready || (e.slurm && e.slurm->asleep)) {
		e.not_ready_since.reset();
		e.not_ready = false;
		return;
	}
	if (e.not_ready || !connected_)
		return;
	const Millis now = ports_.timer.now(), after = settings_.state.not_ready.after;
	if (!e.not_ready_since) {
		e.not_ready_since = now;
		later(name, after);
	}
	e.not_ready = now - *e.not_ready_since >= after || was_not_ready(f);
}

// NSS may be slow, and a few people drain all nodes.
const std::string &NodesController::user(std::uint32_t uid)
{
	if (users_.size() > max_users)
		users_.clear();
	auto [it, fresh] = users_.try_emplace(uid);
	if (fresh)
		it->second = ports_.user(uid);
	return it->second;
}

// Is the drain that is found on it one that we made when it was shared, before this slurmctld or these settings? By its words
// alone it may as well be another cluster's.
bool NodesController::drained_before(const Entry &e) const
{
	if (!e.kube || !e.slurm)
		return false;
	NodeFacts f;
	look_at(*e.slurm, ports_.slurm_uid, f);
	return f.ours && ((ports_.alone && ports_.alone()) || tells_drain(*e.kube, f.our_reason));
}

NodeFacts NodesController::facts(const std::string &name, Entry &e)
{
	NodeFacts f;
	f.shared = e.kube ? shared_.has(*e.kube) : e.was_shared;
	if (!f.shared && drained_before(e))
		e.was_shared = true; // also when its condition tells something else, before the drain is taken back
	// Another cluster may have a node of this name, too, and be the one that shares it.
	if (e.slurm && (f.shared || e.was_shared))
		look_at(*e.slurm, ports_.slurm_uid, f);
	if (f.own_drain && e.slurm->reason_uid != SK8_NO_UID)
		f.own_by = user(e.slurm->reason_uid);
	if (e.kube)
		look_at(*e.kube, e.taken_over_for == annotation(*e.kube, names::drain_reason), f);
	watch_ready(name, e, f);
	if (e.kube)
		f.causes = causes_of(*e.kube, settings_.state, e.not_ready, f.ours_cordon);
	else if (f.shared && !(e.slurm && e.slurm->asleep)) // a cloud's controller deletes what it has switched off
		f.causes = {deleted_cause()};
	remember_resumed(e, f);
	return f;
}

// Our drain is gone, not by us, and its cause is not: an administrator of Slurm has decided.
void NodesController::remember_resumed(Entry &e, NodeFacts &f) const
{
	e.resumed.insert(f.resumed_noted.begin(), f.resumed_noted.end());
	if (!f.ours && f.known && !f.own_drain && !e.slurm_busy && !e.drained_for.empty())
		e.resumed.insert(std::exchange(e.drained_for, {}));
	if (f.ours)
		e.drained_for = cause_word(f.our_reason);
	std::set<std::string> words;
	for (const Cause &c : f.causes)
		if (e.resumed.contains(c.word))
			words.insert(c.word);
	e.resumed = words;
	f.resumed = std::move(words);
}

// ---- decisions ----

void NodesController::sync_all()
{
	std::vector<std::string> names;
	for (const auto &[name, e] : entries_)
		names.push_back(name);
	for (const auto &name : names)
		sync(name);
}

void NodesController::sync(const std::string &name)
{
	if (!kube_synced_ || !slurm_synced_)
		return;
	const auto it = entries_.find(name);
	if (it == entries_.end())
		return;
	Entry &e = it->second;
	if (!e.kube && !e.slurm) {
		if (!e.slurm_busy && !e.kube_busy)
			entries_.erase(it);
		return;
	}
	const NodeFacts f = facts(name, e);
	if (e.kube && !f.shared && !f.ours)
		e.was_shared = false;
	devices(name, e);
	const NodePlan plan = decide(f, settings_.state);
	const Millis now = ports_.timer.now();
	if (plan.slurm && !e.slurm_busy && now >= e.slurm_retry.at)
		tell_slurm(name, e, *plan.slurm);
	if (e.slurm && !e.slurm_busy && now >= e.slurm_retry.at)
		features(name, e);
	if (now < e.kube_retry.at)
		return;
	if (e.kube && !e.kube_busy)
		taint(name, e);
	if (e.kube && e.slurm && !e.kube_busy) // of a node that is none of Slurm's another Slurm may tell
		tell_kubernetes(name, e, plan);
	if (e.kube && !e.kube_busy)
		ask_agent(name, e);
}

// Of a node that is none of Slurm's another Slurm may ask. Nothing else waits for it: who lets Slurm's state alone may have taken
// away the right to write nodes.
void NodesController::ask_agent(const std::string &name, Entry &e)
{
	const auto wanted = ports_.lost && e.slurm ? ports_.lost(name) : std::nullopt;
	if (!wanted || *wanted == annotation(*e.kube, names::lost) || ports_.timer.now() < e.ask_at)
		return;
	NodePatch patch;
	patch.annotations.emplace(names::lost, wanted->empty() ? std::nullopt : wanted);
	e.kube_busy = true;
	ports_.kube.patch_node(e.kube->meta, patch, [this, name](const NodeKubeReply &r) {
		auto it = entries_.find(name);
		if (it == entries_.end() || r.ok())
			return kube_answered(name, "its agent is asked about other lost pods", r);
		const Millis delay = r.status == 409 ? first_delay : longest_delay;
		it->second.kube_busy = false;
		it->second.ask_at = ports_.timer.now() + delay;
		if (r.status != 409)
			log_node(warning, name, "its agent cannot be asked about lost pods: %s; tried again", r.error.c_str());
		later(name, delay);
	});
}

void NodesController::taint(const std::string &name, Entry &e)
{
	set_taint(name, e, OurTaint::dedicated, shared_.sharing(*e.kube) == Sharing::dedicated);
	if (!e.kube_busy)
		set_taint(name, e, OurTaint::exclusive, ports_.exclusive && ports_.exclusive(name));
}

static const char *taint_text(OurTaint which, bool on)
{
	if (which == OurTaint::exclusive)
		return on ? "is tainted, so that a job has it without others' pods"
			  : "is not tainted any more: no job has it without others' pods";
	return on ? "is tainted, so that only pods that go through Slurm come there"
		  : "is not tainted any more: sharing is not dedicated, or it is not shared";
}

void NodesController::set_taint(const std::string &name, Entry &e, OurTaint which, bool wanted)
{
	const auto on = taint_change(*e.kube, e.slurm.has_value(), which, wanted);
	if (!on)
		return;
	const auto pace = which == OurTaint::dedicated ? &Entry::taint_pace : &Entry::exclusive_pace;
	const Millis now = ports_.timer.now();
	if (*on && (e.*pace).next > now)
		return later(name, (e.*pace).next - now);
	e.kube_busy = true;
	ports_.kube.set_our_taint(*e.kube, which, *on, [this, name, which, pace, on = *on](const NodeKubeReply &r) {
		if (auto it = entries_.find(name); it != entries_.end() && r.ok()) {
			if (on)
				(it->second.*pace).put_on(ports_.timer.now());
			else if (which == OurTaint::exclusive)
				it->second.*pace = {}; // comes and goes with jobs, so that it is nobody's who takes it off
		}
		kube_answered(name, taint_text(which, on), r);
	});
}

NodeGres NodesController::identified(const Entry &e) const
{
	NodeGres out = identify_gres(node_devices(*e.kube), e.kube->meta.labels, settings_.resources);
	if (ports_.dra)
		add_driver_gres(out, e.kube->meta.name, *ports_.dra, settings_.resources);
	add_odd_indices(out, devices_.problems(e.kube->meta.name));
	return out;
}

// Settings make one of Slurm's devices of two.
void NodesController::tell_odd_indices(const std::string &name, Entry &e, std::vector<std::string> found)
{
	if (found != e.odd_indices)
		for (const auto &text : found)
			log_node(warning, name, "%s", text.c_str());
	e.odd_indices = std::move(found);
}

// A node that one side does not know (any more) proves nothing: its devices stay as they were.
void NodesController::devices(const std::string &name, Entry &e)
{
	if (!ports_.missing || !e.kube || !e.slurm)
		return;
	(void) devices_.read(*e.kube);
	const NodeGres found = shared_.has(*e.kube) ? identified(e) : NodeGres{};
	GresList missing = shared_.has(*e.kube) ? devices_.name_ill(name, missing_gres(found, e.slurm->gres)) : GresList{};
	tell_odd_indices(name, e, found.odd_indices);
	ports_.missing(name, missing); // always: an engine before this one may have told other things
	if (missing == e.missing)
		return;
	if (missing.empty())
		log_node(info, name, "its kubelet has all of Slurm's devices again: %s", gres_request(e.slurm->gres).c_str());
	else
		log_node(warning, name, "its kubelet has %s less than Slurm, devices are gone or not well: no job gets so many",
			 gres_request(missing).c_str());
	e.missing = std::move(missing);
}

LabelFeatures NodesController::label_features(const Entry &e) const
{
	return e.kube && shared_.has(*e.kube) ? features_of(e.kube->meta.labels, settings_.nodes.features) : LabelFeatures{};
}

// nodes.features and nodes.exclusive. A node that was never shared is another cluster's, or Slurm's alone.
void NodesController::features(const std::string &name, Entry &e)
{
	const bool pools = settings_.nodes.exclusive.on();
	if ((settings_.nodes.features.empty() && !pools) || !((e.kube && shared_.has(*e.kube)) || e.had_features))
		return;
	e.had_features = true;
	std::vector<std::string> wanted = label_features(e).features;
	if (e.kube && shared_.exclusive(*e.kube))
		add_pool_features(wanted);
	if (ports_.features)
		ports_.features(name, wanted);
	const auto change = feature_change(*e.slurm, wanted, settings_.nodes.features, pools);
	if (!change)
		return;
	// Somebody who takes them away again and again: a script, or another cluster with this node.
	const Millis now = ports_.timer.now();
	if (wanted == e.features_set) {
		if (e.features_pace.next > now)
			return later(name, e.features_pace.next - now);
		e.features_pace.put_on(now);
	}
	e.features_set = std::move(wanted);
	e.slurm_busy = true;
	ports_.slurm.change_features(*change, [this, name](const SlurmReply &r) { features_answered(name, r); });
}

void NodesController::tell_slurm(const std::string &name, Entry &e, NodeChange change)
{
	change.node = name;
	e.slurm_busy = true;
	ports_.slurm.change_node(change, [this, name, change](const SlurmReply &r) { slurm_answered(name, change, r); });
}

void NodesController::tell_kubernetes(const std::string &name, Entry &e, const NodePlan &plan)
{
	if (!plan.kube.empty()) {
		const char *what = !plan.kube.unschedulable ? "is annotated"
				   : *plan.kube.unschedulable ? "is cordoned, because Slurm gives it no jobs"
							      : "is uncordoned, because Slurm gives it jobs again";
		e.kube_busy = true;
		return ports_.kube.patch_node(e.kube->meta, plan.kube, [this, name, what](const NodeKubeReply &r) {
			kube_answered(name, what, r);
		});
	}
	if (!plan.condition)
		return;
	const auto *now = find_condition(*e.kube, plan.condition->type);
	if (now && *now == *plan.condition)
		return;
	const bool turns = !now || now->status != plan.condition->status;
	e.kube_busy = true;
	ports_.kube.set_node_condition(e.kube->meta, *plan.condition,
				       turns ? std::optional(ports_.timer.wall_seconds()) : std::nullopt,
				       [this, name](const NodeKubeReply &r) {
					       kube_answered(name, "has another condition SlurmDrained", r);
				       });
}

// ---- answers ----

// nullptr: nobody has such a node any more.
NodesController::Entry *NodesController::slurm_told(const std::string &name, const SlurmReply &r)
{
	auto it = entries_.find(name);
	if (it == entries_.end())
		return nullptr;
	Entry &e = it->second;
	e.slurm_busy = false;
	if (r.node)
		e.slurm = *r.node;
	if (r.ok)
		succeeded(e.slurm_retry);
	return &e;
}

void NodesController::slurm_answered(const std::string &name, const NodeChange &change, const SlurmReply &r)
{
	Entry *e = slurm_told(name, r);
	if (!e)
		return;
	if (r.ok) {
		if (change.action == SK8_NODE_RESUME) {
			e->drained_for.clear();
			log_node(info, name, "resumed in Slurm; it was %s", change.expected.c_str());
		} else {
			log_node(info, name, "%s in Slurm: %s",
				 change.action == SK8_NODE_DOWN ? "set down" : "drained", change.reason.c_str());
		}
	} else {
		failed(name, e->slurm_retry, "a change in Slurm", r.text);
	}
	sync(name);
}

void NodesController::features_answered(const std::string &name, const SlurmReply &r)
{
	Entry *e = slurm_told(name, r);
	if (!e)
		return;
	if (r.ok) {
		log_node(verbose, name, "has other features in Slurm: %s", e->slurm ? e->slurm->active_features.c_str() : "");
	} else {
		e->features_set.clear(); // it does not have them
		failed(name, e->slurm_retry, "a change of features in Slurm", r.text);
	}
	sync(name);
}

void NodesController::kube_answered(const std::string &name, const std::string &what, const NodeKubeReply &r)
{
	auto it = entries_.find(name);
	if (it == entries_.end())
		return;
	Entry &e = it->second;
	e.kube_busy = false;
	if (r.node && e.kube)
		set_kube(e, r.node);
	if (r.ok()) {
		succeeded(e.kube_retry);
		log_node(verbose, name, "%s", what.c_str());
	} else {
		failed(name, e.kube_retry, what, r.error);
	}
	sync(name);
}

void NodesController::succeeded(Retry &retry)
{
	retry.failures = 0;
	retry.trouble.clear();
}

// Somebody was faster (the news of it is on its way), or it is refused, or unanswered.
void NodesController::failed(const std::string &name, Retry &retry, const std::string &what, const std::string &why)
{
	const Millis delay = doubled(first_delay, longest_delay, retry.failures++);
	retry.at = ports_.timer.now() + delay;
	retry.trouble = what + ": " + why;
	if (retry.failures > 3)
		log_node(warning, name, "%s: %s; tried again", what.c_str(), why.c_str());
	else
		log_node(verbose, name, "%s: %s; tried again", what.c_str(), why.c_str());
	later(name, delay);
}

void NodesController::later(const std::string &name, Millis delay)
{
	ports_.timer.after(delay, [this, name] { sync(name); });
}

} // namespace sk8::core
