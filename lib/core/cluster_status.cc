// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// One cluster's engine, as `slurm-k8s` sees it.
#include "lib/core/cluster_engine.h"

#include "lib/core/pod_log.h"

namespace sk8::core {

static constexpr std::size_t max_pods = 1000; // in one answer

// since, heard: of h, by the wall clock.
static Json watch(const std::string &what, const kube::ReflectorHealth &h, std::int64_t since, std::int64_t heard)
{
	Json out = Json::object();
	out.set("what", what);
	out.set("state", h.lost ? "lost" : h.synced ? "up to date" : "connecting");
	if (h.since > Millis(0))
		out.set("since", Json::integer(since));
	if (h.heard > Millis(0))
		out.set("heard", Json::integer(heard));
	if ((h.lost || !h.synced) && !h.why.empty())
		out.set("error", h.why);
	return out;
}

static Json list_of(const auto &texts)
{
	Json out = Json::array();
	for (const std::string &text : texts)
		out.append(Json::string(text));
	return out;
}

// What every answer of an engine begins with.
Json ClusterEngine::outline() const
{
	Json out = Json::object();
	out.set("name", settings_.name).set("state", pods_ && pods_->started() ? "running" : "connecting");
	if (!pods_ && !access_error_.empty())
		out.set("error", access_error_);
	return out;
}

Json ClusterEngine::node_status(const std::string &node) const
{
	Json out = nodes_->status(node);
	const auto add = [&](const char *name, const std::vector<std::string> &texts) {
		if (!texts.empty())
			out.set(name, list_of(texts));
	};
	if (reservations_)
		add("other_devices", reservations_->other_devices(node));
	if (exclusive_)
		add("exclusive", exclusive_->reports(node));
	return out;
}

Json ClusterEngine::status(const StatusQuery &query) const
{
	Json out = outline();
	if (!pods_)
		return out;
	out.set("server", client_->access().server);

	Json watches = Json::array();
	Millis connected{0};
	bool healthy = true;
	auto add = [&](const std::string &what, const kube::ReflectorHealth &h) {
		watches.append(watch(what, h, wall_at(h.since), wall_at(h.heard)));
		healthy = healthy && h.synced && !h.lost;
		connected = std::max(connected, h.since);
	};
	for (std::size_t i = 0; i < pod_reflectors_.size(); i++)
		add("pods of " + settings_.scheduler_names[i], pod_reflectors_[i]->health());
	if (foreign_reflector_)
		add("foreign pods", foreign_reflector_->health());
	if (node_reflector_)
		add("nodes", node_reflector_->health());
	out.set("watches", watches);
	if (healthy)
		out.set("connected_since", Json::integer(wall_at(connected)));

	if (!query.node.empty())
		out.set("node", node_status(query.node));
	out.set("missing_rights", list_of(link_.missing_rights()));

	out.set("summary", to_json(pods_->numbers()));
	std::size_t more = 0;
	Json list = Json::array();
	for (const PodReport &r : pods_->reports(query, max_pods, more))
		list.append(to_json(r));
	out.set("pods", list);
	if (more)
		out.set("more_pods", Json::integer(static_cast<std::int64_t>(more)));
	Json foreign = Json::array();
	for (const ForeignReport &r : foreign_->reports(query, max_pods, more))
		foreign.append(to_json(r));
	out.set("foreign_summary", to_json(foreign_->numbers())).set("foreign", foreign);
	if (more)
		out.set("more_foreign", Json::integer(static_cast<std::int64_t>(more)));
	return out;
}

Json ClusterEngine::gres(const std::string &node) const
{
	Json out = outline();
	return out.set("nodes", nodes_ ? nodes_->gres(node) : Json::array());
}

Result<std::string> ClusterEngine::release_by_hand(const PodKey &key, const std::string &by, bool force)
{
	if (!pods_)
		return Error{"cluster " + settings_.name + " is not connected yet, so nothing is known about " +
			     pod_text(key, 0)};
	if (auto done = foreign_->release_by_hand(key.uid, by, force)) {
		if (auto saved = pods_->save_journal(); *done && !saved)
			return **done + " until slurmctld starts again: " + saved.error().message;
		return *done;
	}
	return pods_->release_by_hand(key.uid, by, force);
}

} // namespace sk8::core
