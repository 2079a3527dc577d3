// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// lib/slurm/gate_devices.c: a job gets other devices of its node, of nobody or in exchange with a job of ours.
#include <algorithm>

#include "test/sim/model_slurm.h"

namespace sk8::sim {

using Devices = std::vector<std::uint16_t>;

static bool has(const Devices &devices, std::uint16_t d)
{
	return std::ranges::find(devices, d) != devices.end();
}

// plan(): what the other job is to have; nullopt: a third one has one of the wanted.
static std::optional<Devices> exchanged(const Devices &wanted, const Devices &had, const Devices &others, const std::vector<bool> &used)
{
	Devices out = others;
	for (auto d : wanted) {
		if (!used[d] || has(had, d))
			continue;
		if (!has(others, d))
			return std::nullopt;
		std::erase(out, d);
	}
	for (auto d : had)
		if (!has(wanted, d) && out.size() < others.size())
			out.push_back(d);
	std::ranges::sort(out);
	return out;
}

// Null, or why not.
const char *ModelSlurm::set_devices(const sk8_device_change &c)
{
	const auto owner = [&](std::uint32_t id, std::int64_t submit_time) {
		SlurmJob *job = find(id);
		return job && job->submit_time == submit_time && job->running() && job->node == c.node && !job->devices.empty() ? job : nullptr;
	};
	SlurmJob *job = owner(c.job_id, c.submit_time), *from = nullptr;
	if (!job || std::string(c.gres) != "gpu")
		return "the job has no such devices there";
	if (job->batch() && !job->configuring)
		return "the job is not in the gate any more";
	if (c.from_job && (!(from = owner(c.from_job, c.from_submit_time)) || from == job || from->batch()))
		return "the other job has no such devices there";
	const Devices wanted(c.devices, c.devices + c.device_count);
	const std::vector<bool> &used = select_.nodes.at(c.node).gpus;
	if (std::ranges::any_of(wanted, [&](auto d) { return d >= used.size(); }))
		return "the node has no such device in Slurm";
	const auto others = exchanged(wanted, job->devices, from ? from->devices : Devices(), used);
	if (!others)
		return "another job has one of these devices";
	if (wanted.size() != job->devices.size())
		return "the job has not so many of these devices";
	for (SlurmJob *j : {job, from})
		if (j)
			select_.take_devices(*j, false);
	job->devices = wanted;
	if (from)
		from->devices = *others;
	for (SlurmJob *j : {job, from}) {
		if (!j)
			continue;
		select_.take_devices(*j, true);
		tell(story_, "slurm: job ", std::to_string(j->id), " has GPUs ", core::index_list(j->devices), " now");
		watcher_.devices_changed_by_us(*j);
	}
	nodes_stamp_ = wall();
	changed();
	return nullptr;
}

} // namespace sk8::sim
