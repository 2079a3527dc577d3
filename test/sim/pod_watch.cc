// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/pod_watch.h"

#include <algorithm>

namespace sk8::sim {

void PodWatch::start(Calls calls, Wants wants)
{
	calls_ = std::move(calls);
	wants_ = std::move(wants);
	wanted_ = true;
	list();
}

void PodWatch::stop()
{
	wanted_ = watching_ = false;
	connection_++;
}

void PodWatch::later(Micros delay, std::function<void()> f)
{
	time_.after(delay, [this, connection = connection_, f = std::move(f)] {
		if (connection == connection_)
			f();
	});
}

// When what is sent now arrives: never before what was sent earlier.
Micros PodWatch::in_order(Micros delay, const std::string &object)
{
	Micros &of_object = sent_until_[object], &of_all = sent_until_[""];
	Micros at = std::max({of_object, list_arrives_, time_.now() + delay});
	if (!reorders)
		at = std::max(at, of_all);
	unordered_ |= reorders;
	of_object = at;
	of_all = std::max(of_all, at);
	return at - time_.now();
}

// ---- lists ----

void PodWatch::list()
{
	connection_++;
	lists_ = 0;
	watching_ = false;
	later(dice_.between(name_ + "/list", 1 * ms, 30 * ms), [this] {
		if (api_.down || api_.hung)
			return later(dice_.between(name_ + "/again", 500 * ms, 5 * second), [this] { list(); });
		std::vector<kube::PodPtr> pods;
		for (const auto &[name, pod] : api_.pods())
			if (wants_(*pod))
				pods.push_back(pod);
		version_ = api_.version();
		watching_ = true;
		sent_until_.clear();
		unordered_ = false;
		const Micros delay = list_lateness + dice_.between(name_ + "/late", 1 * ms, 200 * ms);
		list_arrives_ = time_.now() + delay;
		// pods and nodes are lists of their own: either may come first
		later(delay,
		      [this, pods = std::move(pods)] {
			      lists_++;
			      calls_.replaced(pods);
		      });
		if (calls_.nodes_replaced)
			list_nodes();
	});
}

void PodWatch::list_nodes()
{
	std::vector<kube::NodePtr> nodes;
	for (const auto &[name, node] : api_.nodes())
		if (api_.has_node(name))
			nodes.push_back(node);
	const Micros delay = dice_.between(name_ + "/nodes", 1 * ms, 400 * ms);
	nodes_until_ = time_.now() + delay;
	later(delay, [this, nodes = std::move(nodes), seen = api_.node_history().size()] {
		lists_++;
		nodes_seen_ = seen;
		calls_.nodes_replaced(nodes);
	});
}

void PodWatch::interrupt(bool lost)
{
	if (!wanted_)
		return;
	tell(story_, name_, ": interrupted", lost ? ", 410" : "");
	connection_++;
	watching_ = false;
	if (calls_.lost)
		calls_.lost();
	if (lost || unordered_ || !listed())
		version_ = -1;
	later(dice_.between(name_ + "/again", 100 * ms, 3 * second), [this] { resume(); });
}

void PodWatch::resume()
{
	if (api_.down || api_.hung)
		return later(dice_.between(name_ + "/again", 500 * ms, 5 * second), [this] { resume(); });
	std::vector<ApiEvent> missed;
	if (!api_.since(version_, missed))
		return list();
	watching_ = true;
	calls_.back();
	for (const auto &e : missed)
		deliver(e);
	nodes_until_ = 0;
	const auto &nodes = api_.node_history();
	for (std::size_t i = nodes_seen_; calls_.node_changed && i < nodes.size(); i++)
		deliver_node(nodes[i]);
}

// ---- events ----

void PodWatch::deliver(const ApiEvent &event)
{
	if (!wants_(*event.pod))
		return;
	const std::string &name = event.pod->meta.name;
	const Micros usual = dice_.between("event/" + name, 1 * ms, 50 * ms);
	const Micros late = lateness ? dice_.between("event late/" + name, 0, lateness) : 0;
	auto call = [this, event] {
		// what the reflector would resume from if the watch broke now
		version_ = std::max(version_, event.version);
		(event.removed ? calls_.removed : calls_.changed)(event.pod);
	};
	later(in_order(usual + late, name), call);
	if (twice && dice_.chance("event twice/" + name, twice))
		later(in_order(usual, name), call);
}

void PodWatch::pod_event(const ApiEvent &event)
{
	if (watching_)
		deliver(event);
}

void PodWatch::node_event(const NodeEvent &event)
{
	if (watching_ && calls_.node_changed)
		deliver_node(event);
}

void PodWatch::deliver_node(const NodeEvent &event)
{
	nodes_until_ = std::max(nodes_until_, time_.now() + dice_.between(name_ + "/node", 1 * ms, 300 * ms));
	later(nodes_until_ - time_.now(), [this, event] {
		nodes_seen_++;
		(event.removed ? calls_.node_removed : calls_.node_changed)(event.node);
	});
}

} // namespace sk8::sim
