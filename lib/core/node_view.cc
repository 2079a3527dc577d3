// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_view.h"

#include <algorithm>
#include <utility>

#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/core/job.h"
#include "lib/core/placement.h"

namespace sk8::core {

static constexpr std::size_t max_cache = 10'000;

NodeView::NodeView(const NodeSettings &settings) : shared_(settings)
{
	if (auto parsed = parse_selector(settings.selector); !parsed)
		log_error("nodes.selector: %s; no node is shared", parsed.error().message.c_str());
}

static bool same_names(const std::map<std::string, std::int64_t> &a, const std::map<std::string, std::int64_t> &b)
{
	return std::ranges::equal(a, b, {}, &std::pair<const std::string, std::int64_t>::first,
				  &std::pair<const std::string, std::int64_t>::first);
}

// Placing depends on labels, taints, the cordon and whose it is, which extended resources there are, and how much ephemeral
// storage there is at all; a node's status changes every few seconds and must not cost anything.
static bool same_for_placing(const kube::Node &a, const kube::Node &b)
{
	return a.meta.labels == b.meta.labels && a.unschedulable == b.unschedulable && a.taints == b.taints &&
	       is_cordoned_for_slurm(a) == is_cordoned_for_slurm(b) && same_names(a.allocatable.extended, b.allocatable.extended) &&
	       same_names(a.capacity, b.capacity) &&
	       ephemeral_storage(a.allocatable) == ephemeral_storage(b.allocatable);
}

bool NodeView::replace(const std::vector<kube::NodePtr> &nodes)
{
	const auto before = std::exchange(kube_, {});
	for (const auto &n : nodes) {
		kube_[n->meta.name] = n;
		deleted_.erase(n->meta.name);
	}
	for (const auto &[name, last] : before)
		if (!kube_.contains(name))
			forget(name, last);
	kube_synced_ = true;
	cache_.clear();
	return true;
}

bool NodeView::change(const kube::NodePtr &node)
{
	kube::NodePtr &known = kube_[node->meta.name];
	const bool same = known && same_for_placing(*known, *node);
	known = node;
	deleted_.erase(node->meta.name);
	if (!same)
		cache_.clear();
	return !same;
}

bool NodeView::remove(const std::string &name)
{
	cache_.clear();
	const auto it = kube_.find(name);
	if (it == kube_.end())
		return false;
	forget(name, it->second);
	kube_.erase(it);
	return true;
}

void NodeView::forget(const std::string &node, kube::NodePtr last)
{
	if (!slurm_synced_ || slurm_.contains(node)) // what Slurm has not set_slurm() drops
		deleted_[node] = std::move(last);
}

bool NodeView::set_slurm(const std::vector<SlurmNode> &nodes)
{
	std::map<std::string, std::uint32_t> by_name;
	asleep_.clear();
	for (const auto &n : nodes) {
		by_name[n.name] = n.threads_per_core;
		if (n.asleep)
			asleep_.insert(n.name);
	}
	const bool same = slurm_synced_ && by_name == slurm_;
	slurm_ = std::move(by_name);
	slurm_synced_ = true;
	std::erase_if(deleted_, [this](const auto &of) { return !slurm_.contains(of.first); });
	if (!same)
		cache_.clear();
	return !same;
}

NodeView::Kubelet NodeView::kubelet(const std::string &node) const
{
	auto it = kube_.find(node);
	if (it == kube_.end())
		return Kubelet::no_node;
	return it->second->ready ? Kubelet::ready : Kubelet::silent;
}

NodeView::Shared NodeView::shared(const std::string &node) const
{
	return slurm_.contains(node) ? shared_in_kubernetes(node) : Shared::no;
}

NodeView::Shared NodeView::shared_in_kubernetes(const std::string &node) const
{
	auto it = kube_.find(node);
	if (it == kube_.end())
		return slurm_.contains(node) ? Shared::unknown : Shared::no;
	return shared_.has(*it->second) ? Shared::yes : Shared::no;
}

Sharing NodeView::sharing(const std::string &node) const
{
	const kube::Node *n = last(node);
	return n && slurm_.contains(node) ? shared_.sharing(*n) : Sharing::none;
}

bool NodeView::is_or_was_shared(const std::string &node) const
{
	const kube::Node *n = last(node);
	return n && slurm_.contains(node) && shared_.has(*n);
}

std::vector<std::string> NodeView::names() const
{
	std::vector<std::string> out;
	for (const auto &[name, node] : kube_)
		out.push_back(name);
	return out;
}

bool NodeView::exclusive(const std::string &node) const
{
	const kube::Node *n = find(node);
	return n && slurm_.contains(node) && shared_.exclusive(*n);
}

const kube::Node *NodeView::find(const std::string &node) const
{
	auto it = kube_.find(node);
	return it == kube_.end() ? nullptr : it->second.get();
}

const kube::Node *NodeView::last(const std::string &node) const
{
	const auto it = deleted_.find(node);
	return it == deleted_.end() ? find(node) : it->second.get();
}

std::int64_t NodeView::heartbeat(const std::string &node) const
{
	auto it = kube_.find(node);
	return it == kube_.end() ? 0 : it->second->heartbeat;
}

std::uint32_t NodeView::threads_per_core(const std::string &node) const
{
	auto it = slurm_.find(node);
	return it == slurm_.end() ? 1 : std::max(1u, it->second);
}

static void add(std::string &out, const kube::NodeTerm &term)
{
	for (const auto &r : term) {
		out += r.key + '\x01' + r.op + (r.field ? '\x02' : '\x01');
		for (const auto &v : r.values)
			out += v + '\x03';
	}
	out += '\x04';
}

// Everything of the pod that objection() looks at.
static std::string signature(const kube::Pod &pod, const std::vector<std::vector<kube::NodeTerm>> &volumes)
{
	const auto storage = ephemeral_storage(pod.request);
	std::string out = (storage ? std::to_string(*storage) : "") + '\x05';
	for (const auto &[name, count] : pod.request.extended)
		out += count > 0 ? name + '\x03' : "";
	out += '\x05';
	for (const auto &[k, v] : pod.node_selector)
		out += k + '\x01' + v + '\x03';
	out += pod.has_required_node_affinity ? '\x05' : '\x04';
	for (const auto &t : pod.required_node_terms)
		add(out, t);
	out += '\x05';
	for (const auto &t : pod.tolerations)
		out += t.key + '\x01' + t.value + '\x01' + std::to_string(static_cast<int>(t.op)) + ',' +
		       std::to_string(static_cast<int>(t.effect)) + '\x03';
	for (const auto &terms : volumes) {
		out += '\x05';
		for (const auto &t : terms)
			add(out, t);
	}
	return out;
}

const NodeView::Choice &NodeView::choose(const kube::Pod &pod,
					 const std::vector<std::vector<kube::NodeTerm>> &volumes)
{
	if (cache_.size() > max_cache)
		cache_.clear();
	auto [it, fresh] = cache_.try_emplace(signature(pod, volumes));
	if (fresh)
		it->second = compute(pod, volumes);
	return it->second;
}

// Empty: nothing keeps the pod away from there.
std::string NodeView::objection_of(const std::string &node, const kube::Pod &pod,
				   const std::vector<std::vector<kube::NodeTerm>> &volumes) const
{
	auto it = kube_.find(node);
	return it != kube_.end() && shared_.has(*it->second) ? objection(pod, volumes, *it->second) : "not a shared node of this cluster";
}

bool NodeView::fits(const kube::Pod &pod, const std::vector<std::vector<kube::NodeTerm>> &volumes, const std::string &node) const
{
	return in_slurm(node) && objection_of(node, pod, volumes).empty();
}

NodeView::Choice NodeView::compute(const kube::Pod &pod,
				   const std::vector<std::vector<kube::NodeTerm>> &volumes) const
{
	Choice out;
	std::map<std::string, int> reasons;
	std::set<std::string> excluded;
	for (const auto &[name, threads] : slurm_) {
		const std::string why = objection_of(name, pod, volumes);
		if (why.empty())
			continue;
		reasons[why]++;
		excluded.insert(name);
	}
	out.excluded = join({excluded.begin(), excluded.end()}, ",");
	out.ours = our_excluded_nodes(excluded);
	if (excluded.size() == slurm_.size()) {
		out.none = "no node fits this pod:";
		for (const auto &[why, count] : reasons)
			out.none += (out.none.back() == ':' ? " " : ", ") + std::to_string(count) + " " + why;
		if (reasons.empty())
			out.none += " Slurm has no node";
	}
	return out;
}

} // namespace sk8::core
