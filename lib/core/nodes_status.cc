// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// One node's state, as `slurm-k8s status --node` tells it.
#include <algorithm>
#include <vector>

#include "lib/core/names.h"
#include "lib/core/nodes_controller.h"

namespace sk8::core {

// node: null if there is no such object.
static std::string in_kubernetes(const NodeFacts &f, const kube::Node *node)
{
	if (!f.exists)
		return "there is no such node";
	std::string out = f.shared ? "" : "not shared; ";
	out += f.ours_cordon	 ? "cordoned by slurm-k8s, because Slurm gives it no jobs: " + f.owned_for
	       : f.unschedulable ? "cordoned by an administrator"
				 : "not cordoned";
	if (f.decided && !f.unschedulable)
		out += "; an administrator has uncordoned it though Slurm says: " + f.owned_for;
	bool told = false; // that it is not ready
	for (const Cause &c : f.causes) {
		told |= c.word == not_ready_word;
		if (c.word != "cordoned")
			out += "; " + c.text;
	}
	// Before it is drained for that, or if it never is.
	if (node && !node->ready && !told)
		out += "; not ready";
	return out;
}

static std::string in_slurm(const NodeFacts &f)
{
	std::string out = "in use";
	if (f.ours)
		out = std::string(f.down ? "down" : "drained") + " by slurm-k8s: " +
		      f.our_reason.substr(names::slurm_mark.size());
	else if (f.own)
		out = f.own_reason + (f.own_by.empty() ? "" : ", by " + f.own_by);
	for (const auto &word : f.resumed)
		out += "; an administrator has resumed it though it is " + word;
	if (f.ours || f.own)
		out += "; " + std::to_string(f.jobs) + (f.jobs == 1 ? " job left" : " jobs left");
	return out;
}

// What its labels give it.
static std::string features_text(const LabelFeatures &labels)
{
	std::string out;
	for (const auto &feature : labels.features)
		out += (out.empty() ? "" : ", ") + feature;
	if (labels.left_out)
		out += (out.empty() ? "" : "; ") + std::to_string(labels.left_out) +
		       (labels.left_out == 1 ? " label is left out: " : " labels are left out, the first: ") + labels.first_left_out;
	return out;
}

static Json to_json(const std::vector<IdentifiedDevice> &devices)
{
	Json out = Json::array();
	for (const auto &d : devices) {
		Json row = Json::object();
		row.set("index", Json::integer(d.index)).set("device", d.name).set("uuid", d.uuid).set("pci", d.pci).set("numa", d.numa);
		row.set("cores", index_list(d.cores)).set("socket_cores", index_list(d.socket_cores));
		out.append(row.set("well", Json::boolean(d.well)));
	}
	return out;
}

static Json to_json(const NodeGres &node)
{
	Json out = Json::array();
	for (const auto &g : node.gres) {
		Json row = Json::object();
		row.set("kubernetes", g.kubernetes).set("name", g.name).set("type", g.type);
		if (g.by_driver)
			row.set("devices", to_json(g.devices)).set("file", g.file);
		out.append(row.set("count", Json::integer(static_cast<std::int64_t>(g.count))));
	}
	return out;
}

// As the agent there says.
static void add_cores_of(NodeGres &gres, const kube::Node &node, const std::optional<SlurmNode> &slurm)
{
	const auto numa = parse_numa(annotation(node, names::numa));
	if (!numa)
		gres.problems.push_back("its annotation " + std::string(names::numa) + " " + numa.error().message + " and does not count");
	else if (slurm)
		add_cores(gres, *numa, slurm->sockets, slurm->cores_per_socket);
}

Json NodesController::gres(const std::string &name) const
{
	std::vector<std::string> names;
	for (const auto &[n, e] : entries_)
		if (e.kube && shared_.has(*e.kube) && (name.empty() || name == n))
			names.push_back(n);
	std::ranges::sort(names);
	Json out = Json::array();
	for (const auto &n : names) {
		const Entry &e = entries_.at(n);
		NodeGres found = identified(e);
		add_cores_of(found, *e.kube, e.slurm);
		Json row = Json::object(), problems = Json::array();
		for (const auto &p : found.problems)
			problems.append(Json::string(p));
		row.set("node", n).set("in_slurm", Json::boolean(e.slurm.has_value())).set("gres", to_json(found));
		row.set("slurm", gres_to_json(e.slurm ? e.slurm->gres : GresList{})).set("masked", gres_to_json(e.missing));
		out.append(row.set("problems", problems));
	}
	return out;
}

Json NodesController::status(const std::string &name)
{
	Json out = Json::object();
	const auto it = entries_.find(name);
	if (it == entries_.end())
		return out;
	const NodeFacts f = facts(name, it->second);
	out.set("in_kubernetes", in_kubernetes(f, it->second.kube.get()));
	if (f.known)
		out.set("in_slurm", in_slurm(f));
	const LabelFeatures labels = label_features(it->second);
	if (const std::string text = features_text(labels); !text.empty())
		out.set("features", text);
	if (!it->second.missing.empty())
		out.set("missing", gres_request(it->second.missing));
	if (it->second.over.any())
		out.set("overcommitted", overcommit_text(it->second.over));
	const auto &slurm = it->second.slurm_retry.trouble, &kube = it->second.kube_retry.trouble;
	if (!slurm.empty() || !kube.empty())
		out.set("trouble", slurm + (slurm.empty() || kube.empty() ? "" : "; ") + kube);
	return out;
}

} // namespace sk8::core
