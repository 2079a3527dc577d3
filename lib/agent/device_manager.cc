// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/device_manager.h"

#include <algorithm>

#include "lib/base/json.h"

namespace sk8::agent {

// A node has 110 pods, seldom 500; what has ended is there, too, until a pod that wants devices comes.
static constexpr std::size_t max_entries = 16'384, max_pods = 1024, max_word = 317;

static bool is_word(std::string_view text, std::size_t longest)
{
	return !text.empty() && text.size() <= longest &&
	       std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

static void read_list(const Json &list, std::set<std::string> &out)
{
	list.each_item([&](const Json &id) {
		if (is_word(id.str(), core::max_device_id) && out.size() <= core::max_devices)
			out.emplace(id.str());
	});
}

// A list, and since 1.20 one for each NUMA node.
static void read_ids(const Json &ids, std::set<std::string> &out)
{
	read_list(ids, out);
	ids.each_member([&](std::string_view, const Json &list) { read_list(list, out); });
}

static void read_answer(const std::string &uid, const std::string &resource, const Json &base64, DeviceManager &out)
{
	DeviceAnswer answer = parse_allocate_response(base64.str());
	if (answer == DeviceAnswer())
		return;
	DeviceAnswer &all = out.answers[uid][resource];
	all.variables.merge(answer.variables);
	all.nodes.merge(answer.nodes);
}

DeviceManager parse_device_manager(std::string_view checkpoint)
{
	DeviceManager out;
	const auto json = Json::parse(checkpoint);
	if (!json)
		return out;
	const Json data = (*json)["Data"], entries = data["PodDeviceEntries"];
	data["RegisteredDevices"].each_member([&](std::string_view resource, const Json &ids) {
		if (is_word(resource, max_word) && out.healthy.size() < core::max_device_resources)
			read_list(ids, out.healthy[std::string(resource)]);
	});
	for (std::size_t i = 0; i < std::min(entries.size(), max_entries); i++) {
		const Json entry = entries.at(i), uid = entry["PodUID"], resource = entry["ResourceName"];
		const bool fits = is_word(uid.str(), core::max_device_id) && is_word(resource.str(), max_word) && out.pods.size() < max_pods;
		if (!fits || !out.healthy.contains(std::string(resource.str())))
			continue;
		read_ids(entry["DeviceIDs"], out.pods[std::string(uid.str())][std::string(resource.str())]);
		read_answer(std::string(uid.str()), std::string(resource.str()), entry["AllocResp"], out);
	}
	return out;
}

// ---- what is told ----

static std::set<std::string> known_ids(const DeviceManager &now, const std::string &resource, const std::vector<std::string> &former)
{
	std::set<std::string> out = now.healthy.at(resource);
	const bool some_ill = out.size() < former.size();
	for (const auto &[uid, pod] : now.pods)
		if (const auto has = pod.find(resource); has != pod.end())
			out.insert(has->second.begin(), has->second.end());
	if (some_ill)
		out.insert(former.begin(), former.end());
	return out;
}

core::NodeDevices devices_to_tell(const DeviceManager &now, const core::NodeDevices &former,
				  const std::map<std::string, std::int64_t> &capacity, DeviceOrder &order)
{
	core::NodeDevices out;
	for (const auto &[resource, healthy] : now.healthy) {
		const auto before = former.ids.find(resource);
		const std::vector<std::string> listed_before = before == former.ids.end() ? std::vector<std::string>() : before->second;
		const std::set<std::string> ids = known_ids(now, resource, listed_before);
		const auto has = capacity.find(resource);
		const auto known = static_cast<std::int64_t>(ids.size());
		const std::int64_t all = std::max(known, has == capacity.end() ? known : has->second);
		if (all == 0 || all > static_cast<std::int64_t>(core::max_devices))
			continue;
		if (all > known) {
			out.ids[resource].clear();
			continue;
		}
		const auto &listed = out.ids[resource] = order(ids, listed_before);
		for (std::size_t i = 0; i < listed.size(); i++)
			if (!healthy.contains(listed[i]))
				out.ill[resource].push_back(static_cast<std::uint16_t>(i));
		for (const auto &[uid, pod] : now.pods) {
			const auto some = pod.find(resource);
			if (some == pod.end())
				continue;
			auto &positions = out.pods[uid][resource];
			for (std::size_t i = 0; i < listed.size(); i++)
				if (some->second.contains(listed[i]))
					positions.push_back(static_cast<std::uint16_t>(i));
		}
	}
	return out;
}

} // namespace sk8::agent
