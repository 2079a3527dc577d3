// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A kubelet whose device plugin hands GPUs out, and the agent that tells of it: pkg/kubelet/cm/devicemanager/manager.go and
// lib/agent/node_report.cc. Which ones a pod gets nobody can foretell. What an ended pod had is free at once, and stands in the
// kubelet's file, and so in what the agent tells, until it gives some to another pod (UpdateAllocatedDevices()).
#include <algorithm>

#include "lib/core/names.h"
#include "lib/core/pod_devices.h"
#include "test/sim/config.h"
#include "test/sim/model_kubelet.h"

namespace sk8::sim {

using State = Container::State;

static constexpr Micros again = 2 * second; // an agent that cannot reach the server

std::string told_devices(int gpus, const std::map<std::string, std::vector<std::uint16_t>> &given)
{
	core::NodeDevices out;
	for (int d = 0; d < gpus; d++)
		out.ids[gpu_resource].push_back("GPU-" + std::to_string(d));
	for (const auto &[uid, devices] : given)
		out.pods[uid][gpu_resource] = devices;
	return core::devices_text(out);
}

// There are enough: it was admitted.
void ModelKubelet::give_devices(Container &c)
{
	if (!device_plugin || c.program.gpus == 0)
		return;
	std::vector<std::uint16_t> left(static_cast<std::size_t>(api_.nodes().at(c.node)->allocatable.extended.at(gpu_resource)));
	for (std::size_t d = 0; d < left.size(); d++)
		left[d] = static_cast<std::uint16_t>(d);
	auto &given = given_[c.node];
	std::erase_if(given, [&](const auto &at) { return containers_.at({c.node, at.first}).state == State::ended; });
	for (const auto &[uid, devices] : given)
		std::erase_if(left, [&](auto d) { return std::ranges::find(devices, d) != devices.end(); });
	while (std::cmp_less(c.devices.size(), c.program.gpus)) {
		const auto which = dice_.between("devices/" + c.node, 0, static_cast<std::int64_t>(left.size()) - 1);
		c.devices.push_back(left.at(static_cast<std::size_t>(which)));
		left.erase(left.begin() + which);
	}
	std::ranges::sort(c.devices);
	given[c.uid] = c.devices;
	tell(story_, "kubelet ", c.node, ": ", c.pod, " (", c.uid, ") has GPUs ", core::index_list(c.devices));
	plan_to_tell_devices(c.node);
}

void ModelKubelet::registered(const std::string &node)
{
	if (device_plugin && api_.nodes().at(node)->allocatable.extended.contains(gpu_resource))
		plan_to_tell_devices(node);
}

void ModelKubelet::plan_to_tell_devices(const std::string &node)
{
	if (!telling_.insert(node).second)
		return;
	const Micros late = agent_lateness ? dice_.between("agent late/" + node, 0, agent_lateness) : 0;
	time_.after(dice_.between("agent/" + node, 10 * ms, second) + late, [this, node] { tell_devices(node); });
}

void ModelKubelet::tell_devices(const std::string &node)
{
	if (!reachable(node)) {
		time_.after(again, [this, node] { tell_devices(node); });
		return;
	}
	telling_.erase(node);
	kube::Node now = *api_.nodes().at(node);
	std::string &text = now.meta.annotations[std::string(core::names::devices)];
	const std::string wanted = told_devices(static_cast<int>(now.allocatable.extended.at(gpu_resource)), given_[node]);
	if (text == wanted)
		return;
	text = wanted;
	tell(story_, "agent of ", node, ": ", text);
	api_.set_node(std::move(now));
}

} // namespace sk8::sim
