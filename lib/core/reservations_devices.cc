// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part for devices that a kubelet hands out: Slurm chose some, and the kubelet others perhaps.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "lib/core/reservation_log.h"
#include "lib/core/reservations.h"

namespace sk8::core {

using Indices = std::vector<std::uint16_t>;

// Also of nodes where no job waits: what an agent has told counts until it tells again, if another Node object comes before that.
void Reservations::read_devices()
{
	if ((settings_.resources.empty() && !mixed_) || only_former_)
		return;
	for (const std::string &node : nodes_.names())
		if (nodes_.shared_in_kubernetes(node) == NodeView::Shared::yes)
			(void) devices_.read(*nodes_.find(node));
}

bool Reservations::is_claimed(const std::string &gres) const
{
	return std::ranges::any_of(settings_.resources, [&](const ResourceSettings &r) { return !r.device_class.empty() && r.gres == gres; });
}

// Where pods stand for jobs whatever these have, or for all devices that jobs have, that of nobody's naming is requested as well: its
// kubelet would give it to others. A pod that stands for nothing but a job's container keeps no other job's from them.
const std::vector<ResourceSettings> &Reservations::requested_on(const std::string &node) const
{
	return settings_.reserves_unnamed_devices(nodes_.mixed(node)) ? with_own_ : settings_.resources;
}

// What its pod requests there. A node may have a driver and a device plugin for the same devices: what claims get by the one the
// other would give once more, and others of them.
std::map<std::string, std::int64_t> Reservations::extended_there(const Entry &e, const Pod &p, const kube::Node &node) const
{
	GresList gres = p.share.gres;
	if (has_claims(e, p))
		std::erase_if(gres, [this](const Gres &g) { return is_claimed(g.name); });
	return extended_of(gres, requested_on(p.share.node), node.allocatable.extended);
}

// An agent looks at its Node every ten seconds, and of one that has taken the place of another before we knew that nobody can say
// whether there is an agent.
static constexpr std::int64_t agent_needs = 30; // seconds

// How many seconds the agent of a Node may need yet; the API server's clock may be ahead.
static std::int64_t agent_may_need(const kube::Node &node, std::int64_t now)
{
	const std::int64_t age = now - node.meta.creation_time;
	return std::abs(age) < agent_needs ? agent_needs - age : 0;
}

// What its pod has got there, of those resources of which the node tells.
Reservations::Given Reservations::given_devices(const Entry &e, const Pod &p)
{
	Given out;
	const kube::Node *node = nodes_.find(p.share.node);
	if (!node) {
		out.complete = false;
		return out;
	}
	(void) devices_.read(*node);
	for (const auto &[resource, count] : extended_there(e, p, *node)) {
		const ResourceSettings *r = find_resource(settings_.resources, resource);
		if (!r || is_shared_gres(r->gres) || devices_named(p.share.gres, r->gres).empty())
			continue;
		if (!devices_.tells(p.share.node, resource)) {
			out.awaits_agent = agent_may_need(*node, ports_.timer.wall_seconds());
			continue;
		}
		Indices got = devices_.find(p.share.node, p.uid, resource);
		out.complete &= static_cast<std::int64_t>(got.size()) == count;
		out.gres.push_back({r->gres, r->type, static_cast<std::uint64_t>(count), std::move(got)});
	}
	out.complete &= out.awaits_agent == 0;
	return out;
}

// Only of a pod that its kubelet has admitted. Slurm's devices are the job's own, the kubelet's are those of its pod: a job that
// runs on others may share one with a pod.
Reservations::Devices Reservations::compare(const Pod &p, const Given &given)
{
	if (!given.complete)
		return Devices::unknown;
	const bool same = std::ranges::all_of(given.gres, [&](const Gres &g) {
		return std::ranges::includes(devices_named(p.share.gres, g.name), g.devices);
	});
	return same ? Devices::same : Devices::other;
}

// Those of a pod that has others than its job: Slurm gives the job these. If it cannot, the pod is given back.
void Reservations::look_at_devices(Entry &e, Pod &p)
{
	if (!e.in_gate || p.shared || !p.wanted || !p.admitted || p.other_devices || p.asks_devices)
		return;
	const Given all = given_devices(e, p);
	if (all.awaits_agent > 0 && !std::exchange(p.awaits_agent, true))
		ports_.timer.after(Millis(all.awaits_agent * 1000), [this, id = Id{e.job->ref.id, e.job->ref.submit_time}, node = p.share.node] {
			if (auto it = entries_.find(id); it != entries_.end()) {
				it->second.pods.at(node).awaits_agent = false;
				sync(id);
			}
		});
	if (compare(p, all) != Devices::other)
		return;
	const GresList &given = all.gres;
	p.trouble = "the kubelet of node " + p.share.node + " has given the job's pod " + gres_text(given) + ", and Slurm the job " +
		    gres_text(p.share.gres);
	const NativeShare wished{p.share.node, 0, 0, given, {}};
	if (const std::string why = taken_text(wished, ports_.taken_by); !why.empty())
		return give_devices_back(e, p, why);
	for (const Gres &g : given)
		if (const Indices devices = devices_named(given, g.name); devices != devices_named(p.share.gres, g.name))
			return ask_for_devices(e, p, {p.share.node, g.name, devices});
}

void Reservations::give_devices_back(const Entry &e, Pod &p, const std::string &why)
{
	p.other_devices = true;
	p.trouble += ": " + why;
	log_job(info, e.job->ref, "%s; the pod is given back", p.trouble.c_str());
}

void Reservations::ask_for_devices(Entry &e, Pod &p, DeviceChange change)
{
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	p.asks_devices = true;
	ports_.slurm.set_devices(e.job->ref, change, [this, id, uid = p.uid, change](const SlurmReply &r) {
		auto it = entries_.find(id);
		if (it == entries_.end())
			return;
		Entry &entry = it->second;
		Pod &pod = entry.pods.at(change.node);
		pod.asks_devices = false;
		if (r.ok)
			has_devices(entry, pod, change);
		else if (entry.in_gate && pod.uid == uid)
			give_devices_back(entry, pod, r.text);
		sync(id);
	});
}

// Which of several types has which Slurm alone knows, and nobody asks.
void Reservations::has_devices(Entry &e, Pod &p, const DeviceChange &change)
{
	log_job(info, e.job->ref, "it has the devices %s(%s) of node %s that the kubelet has given its pod", change.gres.c_str(),
		index_list(change.devices).c_str(), change.node.c_str());
	auto next = change.devices.begin();
	for (Gres &g : p.share.gres)
		if (g.name == change.gres) {
			const auto some = std::min<std::ptrdiff_t>(std::ssize(g.devices), change.devices.end() - next);
			g.devices.assign(next, next + some);
			next += some;
		}
	NativeJob now = *e.job;
	for (NativeShare &share : now.shares)
		if (share.node == change.node)
			share.gres = p.share.gres;
	e.job = std::make_shared<NativeJob>(std::move(now));
	look_at_neighbours();
}

} // namespace sk8::core
