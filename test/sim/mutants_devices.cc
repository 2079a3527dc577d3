// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Mistakes about devices that kubelets hand out.
#include <algorithm>
#include <utility>

#include "lib/core/names.h"
#include "lib/core/pod_devices.h"
#include "test/sim/mutants.h"

namespace sk8::sim {

// From the last one on.
static std::string turned(const std::string &text)
{
	auto devices = core::parse_devices(text);
	if (!devices)
		return text;
	for (auto &[uid, of_pod] : devices->pods)
		for (auto &[resource, positions] : of_pod) {
			for (auto &position : positions)
				position = static_cast<std::uint16_t>(devices->ids.at(resource).size() - 1 - position);
			std::ranges::sort(positions);
		}
	return core::devices_text(*devices);
}

kube::NodePtr mutate_devices(Mutant m, kube::NodePtr node)
{
	const std::string name(core::names::devices);
	if ((m != Mutant::devices_untold && m != Mutant::device_order) || !node->meta.annotations.contains(name))
		return node;
	auto out = std::make_shared<kube::Node>(*node);
	std::string &text = out->meta.annotations.at(name);
	text = m == Mutant::devices_untold ? "" : turned(text);
	return out;
}

namespace {

using Run = std::pair<std::uint32_t, std::int64_t>;

const sk8_slurm_ops *stock;
std::map<Run, std::vector<std::uint16_t>> first; // devices that a run of a job had when it was looked at first
sk8_gres shown;                                  // of one job at a time

bool find_as_before(std::uint32_t id, sk8_job *job)
{
	if (!stock->find(id, job))
		return false;
	if (job->gres_count == 1) {
		const sk8_gres &now = job->gres[0];
		const auto &devices = first.try_emplace({id, job->start_time}, now.devices, now.devices + now.device_count).first->second;
		shown = now;
		shown.devices = devices.data();
		job->gres = &shown;
	}
	return true;
}

} // namespace

void mutate_devices(Mutant m, const sk8_slurm_ops &inner, sk8_slurm_ops &table)
{
	stock = &inner;
	first.clear();
	if (m == Mutant::devices_not_learned)
		table.find = find_as_before;
}

} // namespace sk8::sim
