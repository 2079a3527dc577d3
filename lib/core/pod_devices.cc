// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pod_devices.h"

#include <algorithm>
#include <limits>

#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/core/indices.h"
#include "lib/core/names.h"
#include "lib/core/node_state.h"
#include "lib/core/placement.h"

namespace sk8::core {

// All annotations of an object together have 256 KiB (apimachinery, TotalAnnotationSizeLimitB).
static constexpr std::size_t max_text = 262'144, max_uid = 64, max_resource = 317, max_problems = 16;

static Json positions_to_json(const DevicesByResource &devices)
{
	Json out = Json::object();
	for (const auto &[resource, positions] : devices)
		out.set(resource, indices_to_json(positions));
	return out;
}

std::string devices_text(const NodeDevices &devices)
{
	if (devices.ids.empty())
		return "";
	Json ids = Json::object(), pods = Json::object(), out = Json::object();
	for (const auto &[resource, all] : devices.ids) {
		Json list = Json::array();
		for (const std::string &id : all)
			list.append(Json::string(id));
		ids.set(resource, list);
	}
	for (const auto &[uid, of_pod] : devices.pods)
		pods.set(uid, positions_to_json(of_pod));
	out.set("ids", ids).set("pods", pods);
	if (!devices.ill.empty())
		out.set("ill", positions_to_json(devices.ill));
	return out.dump();
}

static bool read_ids(std::string_view resource, const Json &from, NodeDevices &out)
{
	if (resource.empty() || resource.size() > max_resource || !from.is_array() || from.size() > max_devices ||
	    out.ids.size() >= max_device_resources)
		return false;
	auto &ids = out.ids[std::string(resource)];
	for (std::size_t i = 0; i < from.size(); i++) {
		const Json id = from.at(i); // str() lives as long
		if (id.str().empty() || id.str().size() > max_device_id)
			return false;
		ids.emplace_back(id.str());
	}
	return true;
}

static bool read_positions(const Json &from, const NodeDevices &of, DevicesByResource &out)
{
	bool good = from.is_object();
	from.each_member([&](std::string_view resource, const Json &list) {
		const auto ids = of.ids.find(std::string(resource));
		auto positions = good && ids != of.ids.end() ? indices_from_json(list, max_devices, ids->second.size()) : std::nullopt;
		good = positions.has_value();
		if (!good)
			return;
		sort_indices(*positions);
		out[ids->first] = std::move(*positions);
	});
	return good;
}

Result<NodeDevices> parse_devices(std::string_view text)
{
	NodeDevices out;
	if (text.empty())
		return out;
	const auto json = parse_annotation_json(text, max_text);
	if (!json)
		return json.error();
	const Json ids = (*json)["ids"], pods = (*json)["pods"];
	bool good = ids.is_object() && pods.is_object();
	ids.each_member([&](std::string_view resource, const Json &list) { good = good && read_ids(resource, list, out); });
	pods.each_member([&](std::string_view uid, const Json &pod) {
		good = good && uid.size() <= max_uid && read_positions(pod, out, out.pods[std::string(uid)]);
	});
	const Json ill = (*json)["ill"];
	good = good && (ill.is_null() || read_positions(ill, out, out.ill));
	if (!good)
		return Error{"is no list of devices and of pods that have some"};
	return out;
}

PodDevices::PodDevices(std::vector<ResourceSettings> resources) : resources_(std::move(resources))
{
}

static bool takes(const DeviceSettings &settings, const kube::Node &node)
{
	const auto selector = parse_selector(settings.selector);
	return selector && (selector->empty() || matches(*selector, node));
}

// Slurm's index of each, where it is known.
std::vector<std::optional<std::uint16_t>> PodDevices::indices_of(const kube::Node &node, const std::string &resource,
								 const std::vector<std::string> &ids) const
{
	std::vector<std::optional<std::uint16_t>> out(ids.size());
	const ResourceSettings *r = find_resource(resources_, resource);
	if (!r || is_shared_gres(r->gres)) // which share of a device it is says nothing of what Slurm counts there
		return out;
	const auto known = std::ranges::find_if(r->devices, [&](const DeviceSettings &d) { return takes(d, node); });
	const bool listed = known != r->devices.end() && !known->ids.empty();
	const std::size_t first = known == r->devices.end() ? 0 : known->first;
	for (std::size_t i = 0; i < ids.size(); i++) {
		std::size_t at = i;
		if (listed)
			at = static_cast<std::size_t>(std::ranges::find(known->ids, ids[i]) - known->ids.begin());
		if ((!listed || at < known->ids.size()) && first + at <= std::numeric_limits<std::uint16_t>::max())
			out[i] = static_cast<std::uint16_t>(first + at);
	}
	return out;
}

// Two plugins that count from 0 on, and settings that do not say where one begins: nobody knows which of the two Slurm's device is.
// Of what only Kubernetes knows Slurm has no devices, but a number of each type.
std::vector<std::string> PodDevices::leave_out_twins(SlurmIndices &indices, const NodeDevices &devices) const
{
	using Device = std::pair<std::string, std::size_t>; // resource, position
	std::map<std::pair<std::string, std::uint16_t>, std::vector<Device>> of; // by GRES and index
	for (const auto &[resource, all] : indices)
		if (const ResourceSettings *r = find_resource(resources_, resource); r && r->gres != k8s_gres)
			for (std::size_t i = 0; i < all.size(); i++)
				if (all[i])
					of[{r->gres, *all[i]}].emplace_back(resource, i);
	const auto text = [&](const Device &d) {
		return "device " + one_line(devices.ids.at(d.first)[d.second], max_device_id) + " of " + one_line(d.first, max_resource);
	};
	std::vector<std::string> out;
	for (const auto &[index, twins] : of) {
		if (twins.size() < 2)
			continue;
		for (const auto &[resource, position] : twins)
			indices.at(resource)[position].reset();
		if (out.size() < max_problems)
			out.push_back("index " + std::to_string(index.second) + " of " + index.first + " is " + text(twins[0]) + " and " + text(twins[1]) +
				      "; which of Slurm's devices they are is not known: say it by devices under resources in slurm-k8s.yaml");
	}
	return out;
}

bool PodDevices::read(const kube::Node &node)
{
	const std::string text = annotation(node, names::devices);
	const auto known = nodes_.find(node.meta.name);
	const bool is_known = known != nodes_.end();
	const bool said_again = is_known && text == known->second.word.text;
	const AgentNews news = agent_news(is_known ? &known->second.word : nullptr, node, text);
	if (news == AgentNews::none && !(said_again && node.meta.labels != known->second.labels))
		return false;
	if (news == AgentNews::gone) {
		nodes_.erase(known);
		return true;
	}
	auto devices = parse_devices(text);
	if (!devices && !said_again)
		log_warning("node %s: its annotation %s %s and does not count", node.meta.name.c_str(),
			    std::string(names::devices).c_str(), devices.error().message.c_str());
	OfNode &of = nodes_[node.meta.name];
	of = {{node.meta.uid, text}, node.meta.labels, {}, {}, {}, {}};
	if (!devices)
		return true;
	for (const auto &[resource, ids] : devices->ids)
		of.indices[resource] = indices_of(node, resource, ids);
	of.problems = leave_out_twins(of.indices, *devices);
	of.pods = std::move(devices->pods);
	of.ill = std::move(devices->ill);
	return true;
}

const std::vector<std::string> &PodDevices::problems(const std::string &node) const
{
	static const std::vector<std::string> none;
	const auto of = nodes_.find(node);
	return of == nodes_.end() ? none : of->second.problems;
}

bool PodDevices::tells(const std::string &node, const std::string &resource) const
{
	const auto of = nodes_.find(node);
	return of != nodes_.end() && of->second.indices.contains(resource);
}

// Sorted.
std::vector<std::uint16_t> PodDevices::in_slurm(const OfNode &of, const DevicesByResource &devices, const std::string &resource) const
{
	std::vector<std::uint16_t> out;
	if (const auto positions = devices.find(resource); positions != devices.end())
		for (const std::uint16_t position : positions->second)
			if (const auto index = of.indices.at(resource).at(position))
				out.push_back(*index);
	std::ranges::sort(out);
	return out;
}

std::vector<std::uint16_t> PodDevices::find(const std::string &node, const std::string &uid, const std::string &resource) const
{
	const auto of = nodes_.find(node);
	if (of == nodes_.end() || !of->second.pods.contains(uid))
		return {};
	return in_slurm(of->second, of->second.pods.at(uid), resource);
}

GresList PodDevices::name_ill(const std::string &node, GresList missing) const
{
	const auto of = nodes_.find(node);
	if (missing.empty() || of == nodes_.end())
		return missing;
	for (const auto &[resource, positions] : of->second.ill) {
		const ResourceSettings *r = find_resource(resources_, resource);
		const auto ill = r ? in_slurm(of->second, of->second.ill, resource) : std::vector<std::uint16_t>();
		for (Gres &g : missing)
			if (r && g.name == r->gres && (g.type == r->type || r->type.empty()) && g.devices.empty() && ill.size() <= g.count)
				g.devices = ill;
	}
	return missing;
}

std::string PodDevices::find_holder(const std::string &node, const std::string &gres, std::uint16_t device,
				    const std::string &but) const
{
	const auto of = nodes_.find(node);
	if (of == nodes_.end())
		return "";
	for (const auto &[resource, indices] : of->second.indices) {
		const ResourceSettings *r = find_resource(resources_, resource);
		if (!r || r->gres != gres)
			continue;
		for (const auto &[uid, has] : of->second.pods)
			if (uid != but && std::ranges::count(find(node, uid, resource), device))
				return uid;
	}
	return "";
}

GresList PodDevices::gres_of(const std::string &node, const std::string &uid, const std::map<std::string, std::int64_t> &extended) const
{
	GresList out;
	for (const auto &[resource, count] : extended)
		for (Gres &g : core::gres_of({{resource, count}}, resources_)) {
			g.devices = find(node, uid, resource);
			if (g.devices.size() > g.count) // more than it was given: whoever says so is not believed
				g.devices.clear();
			out.push_back(std::move(g));
		}
	return merged(std::move(out));
}

GresList PodDevices::with_devices(const std::string &node, const std::string &uid, GresList gres) const
{
	const auto of = nodes_.find(node);
	if (gres.empty() || of == nodes_.end())
		return gres;
	for (const auto &[resource, indices] : of->second.indices) {
		const ResourceSettings *r = find_resource(resources_, resource);
		const auto got = r ? find(node, uid, resource) : std::vector<std::uint16_t>();
		for (Gres &g : gres)
			if (!got.empty() && g.name == r->gres && g.type == r->type && g.count == got.size())
				g.devices = got;
	}
	return merged(std::move(gres));
}

} // namespace sk8::core
