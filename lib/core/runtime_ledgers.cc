// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The runtime's part for what pods held before this slurmctld started: the saved ledgers, and which nodes take no job until
// their cluster has told what runs there.
#include "lib/core/runtime.h"

#include <algorithm>
#include <iterator>

#include "lib/base/guard.h"
#include "lib/base/log.h"
#include "lib/core/node_features.h"
#include "lib/core/saved_nodes.h"
#include "lib/core/settings_in_force.h"

namespace sk8::core {

// Whoever finds out what went wrong needs it, and the first flush() replaces it.
static std::string text_of_copy(const std::string &path, std::uint32_t slurm_uid)
{
	const auto kept = keep_refused(path, slurm_uid);
	return kept ? "; it is kept as " + refused_path(path) : "; no copy is kept: " + kept.error().message;
}

// Nothing: there is none, or it says no more than none does (Ledger::first).
static std::optional<bool> is_whole(const Result<SavedLedger> &saved)
{
	if (saved && (!saved->found || (saved->ledger.partial && saved->ledger.first && saved->ledger.holds.empty())))
		return std::nullopt;
	return saved.ok() && !saved->ledger.partial;
}

static void tell_not_whole(const std::string &cluster, const std::string &path, const Result<SavedLedger> &saved, std::uint32_t slurm_uid)
{
	const std::string why = saved ? path + ": was begun after a loss and may lack pods"
				      : saved.error().message + text_of_copy(path, slurm_uid);
	log_error("saved ledger: %s; until cluster %s has told what runs where, its nodes take no new job", why.c_str(), cluster.c_str());
}

// Independent of the configuration: what pods hold counts even if a mistake in
// slurm-k8s.yaml keeps the engine parked.
void Runtime::load_ledgers()
{
	Ledger all;
	std::map<std::string, bool> ledgers; // that exist, or may
	// What is wrong with them reload() says.
	const auto settings = find_settings(host_.config_path, host_.state_dir, host_.slurm_uid).settings;
	std::set<std::string> clusters;
	const auto listed = add_saved_clusters(host_.state_dir, clusters);
	if (!listed) {
		log_error("saved ledgers: %s; those of the configured clusters are read by name, and where none is found the nodes take no "
			  "new job until the cluster has told what runs where", listed.error().message.c_str());
		if (settings)
			for (const auto &c : settings->clusters)
				clusters.insert(c.name);
	}
	for (const auto &cluster : clusters) {
		const std::string path = ledger_path(host_.state_dir, cluster);
		auto saved = load_ledger(path, host_.slurm_uid);
		const auto whole = is_whole(saved);
		if (whole)
			ledgers[cluster] = *whole;
		else if (!listed && !saved->found)
			ledgers[cluster] = false; // so broken a folder proves nothing
		if (whole == false)
			tell_not_whole(cluster, path, saved, host_.slurm_uid);
		if (!saved || !saved->found)
			continue;
		log_info("cluster %s: %zu pods in the saved ledger", cluster.c_str(), saved->ledger.holds.size());
		all.add(std::move(saved->ledger));
	}
	fit_cores(all);
	holds_.restore(std::move(all));
	if (settings)
		complete_tokens(settings->tokens); // of the first jobs, too
	for (const auto &[cluster, whole] : ledgers)
		holds_.block_nodes(cluster, {}); // a standby may have read another one before
	close_untold(ledgers, settings ? settings->clusters : std::vector<ClusterSettings>());
	std::set<std::string> names;
	std::vector<Features> features;
	if (settings)
		for (const auto &c : settings->clusters) {
			names.insert(c.name);
			features.push_back({c.nodes, restore_nodes(c.name)});
		}
	std::lock_guard lock(mutex_);
	asked_ = std::move(names);
	features_ = std::move(features);
}

// A device that was gone when slurmctld ended is no job's before Kubernetes has told that it is there.
SavedNodes Runtime::restore_nodes(const std::string &cluster)
{
	auto saved = load_saved_nodes(saved_nodes_path(host_.state_dir, cluster), host_.slurm_uid);
	if (!saved) {
		log_warning("what was known of nodes: %s; until cluster %s has told, jobs may get devices that are gone, and labels are no features",
			    saved.error().message.c_str(), cluster.c_str());
		return {};
	}
	for (const auto &[node, known] : *saved)
		(void) holds_.set_missing(cluster, node, known.missing);
	return std::move(*saved);
}

// slurmctld's locks are held, and it has read its nodes: slurm.conf has none of these, and before the first list of nodes nobody
// could ask for them.
void Runtime::restore_features()
{
	for (const auto &[settings, nodes] : std::exchange(features_, {}))
		for (const auto &[name, known] : nodes) {
			sk8_node now{};
			if (known.features.empty() || !host_.ops->find_node(name.c_str(), &now))
				continue;
			SlurmNode node;
			node.name = name;
			node.features = now.features;
			node.active_features = now.active_features;
			sk8_outcome out{}; // if it fails the first list does it
			if (const auto change = restored_features(node, known.features, settings.features, settings.exclusive.on()))
				change_features(*host_.ops, *change, out);
		}
}

// Where pods may be that nobody has written down, or whose record cannot be read or may lack some.
void Runtime::close_untold(const std::map<std::string, bool> &ledgers, const std::vector<ClusterSettings> &clusters)
{
	for (const auto &[cluster, nodes, wait] : untold_nodes(ledgers, clusters, slurm_node_names())) {
		holds_.block_nodes(cluster, nodes, wait);
		if (wait == Wait::a_while)
			log_info("cluster %s: neither a saved ledger nor nodes.names says where its pods may run: until it has told that, and for "
				 "%lld s at most, Slurm's nodes take no new job", cluster.c_str(),
				 static_cast<long long>(longest_wait_.count() / 1000));
	}
}

// ---- while slurmctld runs (Slurm thread) ----

// A cluster that comes into the settings of a running slurmctld is as untold as those of its start.
void Runtime::close_added(SlurmWorker &worker, const std::vector<ClusterSettings> &clusters)
{
	const auto closed = holds_.closed();
	std::set<std::string> names;
	std::vector<ClusterSettings> added;
	{
		std::lock_guard lock(mutex_);
		for (const auto &c : clusters) {
			names.insert(c.name);
			if (!asked_.contains(c.name) && !closed.contains(c.name)) // closed: its ledger was not whole at the start
				added.push_back(c);
		}
		asked_ = std::move(names);
	}
	std::map<std::string, bool> ledgers;
	for (const auto &c : added)
		if (const auto whole = is_whole(load_ledger(ledger_path(host_.state_dir, c.name), host_.slurm_uid)))
			ledgers[c.name] = *whole;
	close_untold(ledgers, added);
	for (const auto &c : added)
		(void) restore_nodes(c.name); // their features the first list tells Slurm: its locks are not held here
	for (const auto &[cluster, wait] : holds_.closed())
		if (!closed.contains(cluster))
			stop_waiting_later(worker, cluster, wait);
}

// One that is in the settings no more will never tell. What its saved ledger says holds until that is deleted, here as at a start.
void Runtime::open_removed(const std::vector<ClusterSettings> &clusters)
{
	for (const auto &[cluster, wait] : holds_.closed()) {
		if (std::ranges::find(clusters, cluster, &ClusterSettings::name) != clusters.end())
			continue;
		const std::string path = ledger_path(host_.state_dir, cluster);
		if (is_whole(load_ledger(path, host_.slurm_uid)) == false) {
			log_error("cluster %s is not in %s, so it will not tell: if no pod of it runs any more delete %s, and scontrol reconfigure",
				  cluster.c_str(), host_.config_path, path.c_str());
			continue;
		}
		(void) holds_.unblock_nodes(cluster);
		log_info("cluster %s is not in %s any more: its nodes wait no longer until it has told what runs where", cluster.c_str(),
			 host_.config_path);
	}
}

// Slurm thread; or there is none, and Slurm is as without us.
void Runtime::stop_waiting(const std::string &cluster, const std::string &why)
{
	if (holds_.stop_waiting(cluster))
		log_warning("cluster %s %s what runs where: Slurm's jobs start without that, and may get what its pods use", cluster.c_str(),
			    why.c_str());
}

void Runtime::stop_waiting_later(SlurmWorker &worker, const std::string &cluster, Wait wait)
{
	const auto most = at_most(wait, longest_wait_);
	if (!most)
		return;
	worker.after(*most, [this, cluster, most = *most] {
		stop_waiting(cluster, "has not told within " + std::to_string(most.count() / 1000) + " s");
	});
}

// ---- nodes ----

// Since these cores were held SMT may have been switched off, or slurm.conf may call a thread a core now: Kubernetes cannot be
// asked yet, and may not answer for long.
void Runtime::fit_cores(Ledger &saved)
{
	std::lock_guard lock(mutex_);
	for (Hold &h : saved.holds)
		if (const auto node = slurm_nodes_.find(h.node); node != slurm_nodes_.end())
			core::fit_cores(h, node->second);
}

// slurmctld's locks are held.
std::map<std::string, std::uint32_t> Runtime::slurm_nodes() const
{
	std::map<std::string, std::uint32_t> out;
	auto add = [](void *arg, const sk8_node *n) {
		guard("node list", [&] {
			static_cast<std::map<std::string, std::uint32_t> *>(arg)->emplace(n->name, n->threads_per_core);
		});
	};
	host_.ops->each_node(add, &out);
	return out;
}

std::vector<std::string> Runtime::slurm_node_names()
{
	std::lock_guard lock(mutex_);
	std::vector<std::string> names;
	for (const auto &[name, threads] : slurm_nodes_)
		names.push_back(name);
	return names;
}

} // namespace sk8::core
