// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/model_select.h"

#include <algorithm>

#include "lib/base/node_list.h"

namespace sk8::sim {

ModelSelect::ModelSelect(int count, int cores_, std::uint64_t memory_, int gpus_) : cores(cores_), memory(memory_), gpus(gpus_)
{
	for (int i = 1; i <= count; i++)
		nodes["n" + std::to_string(i)];
	clear();
}

void ModelSelect::clear()
{
	for (auto &[name, n] : nodes) {
		n.used.assign(static_cast<std::size_t>(cores), false);
		n.memory = 0;
		n.gpus.assign(static_cast<std::size_t>(gpus), false);
		n.completing = 0;
	}
}

void ModelSelect::take(const SlurmJob &job)
{
	SelectNode &n = nodes.at(job.node);
	for (auto c : job.cores)
		n.used[c] = true;
	n.memory += job.memory_mb;
	take_devices(job, true);
}

void ModelSelect::take_devices(const SlurmJob &job, bool on)
{
	for (auto d : job.devices)
		nodes.at(job.node).gpus[d] = on;
}

void ModelSelect::give(const SlurmJob &job)
{
	SelectNode &n = nodes.at(job.node);
	for (auto c : job.cores)
		n.used[c] = false;
	take_devices(job, false);
	n.memory -= std::min(n.memory, job.memory_mb);
}

// mask_table.c hide_more(): from the last one down.
static std::uint32_t hide_more(std::vector<bool> &hidden, const std::vector<bool> *avoid, std::uint32_t more)
{
	for (std::size_t k = hidden.size(); more > 0 && k-- > 0;) {
		if (hidden[k] || (avoid && (*avoid)[k]))
			continue;
		hidden[k] = true;
		more--;
	}
	return more;
}

// mask_table.c beyond()
static std::uint64_t beyond(std::uint64_t overhead, std::uint64_t allocatable, std::uint64_t offered)
{
	const std::uint64_t beside = allocatable > offered ? allocatable - offered : 0;
	return overhead > beside ? overhead - beside : 0;
}

// mask_table.c unnamed_cores(), choose_cores()
static std::vector<bool> hidden_cores(const core::NodeMask &mask, const std::vector<bool> &used)
{
	std::vector<bool> hidden(used.size(), mask.whole);
	std::uint32_t doubly = 0; // named, and a job has it
	for (auto c : mask.cores)
		if (c < hidden.size()) {
			hidden[c] = true;
			doubly += used[c];
		}
	const std::uint64_t milli = static_cast<std::uint64_t>(mask.milli_cpu) +
				    beyond(static_cast<std::uint64_t>(mask.overhead_milli_cpu),
					   static_cast<std::uint64_t>(mask.allocatable.milli_cpu), 1000 * used.size());
	const auto of_foreign = static_cast<std::uint32_t>((milli + 999) / 1000);
	if (const std::uint32_t left = hide_more(hidden, &used, doubly + mask.more_cores + of_foreign))
		hide_more(hidden, nullptr, left);
	return hidden;
}

// mask_gres.c make_plan(): those that are known, then of what is left the last ones first.
static std::vector<bool> hidden_devices(const core::NodeMask &mask, const std::vector<bool> &used)
{
	std::vector<bool> hidden(used.size(), mask.whole);
	std::uint64_t more = 0;
	for (const auto &gres : mask.gres) {
		if (gres.name != "gpu")
			continue;
		for (auto d : gres.devices)
			if (d < hidden.size())
				hidden[d] = true;
		more += gres.count > gres.devices.size() ? gres.count - gres.devices.size() : 0;
	}
	hide_more(hidden, &used, static_cast<std::uint32_t>(more));
	return hidden;
}

// masks.c needs_slot()
static bool needs_slot(const core::NodeMask &mask, const SlurmJob &job)
{
	return job.batch() ? mask.full.for_jobs && (job.gpus > 0 || job.cpus > mask.full.shared_cpus)
			   : mask.full.for_pods && job.required.empty();
}

// The first ones that are free; fewer: there are no more.
static std::vector<std::uint16_t> first_free(const std::vector<bool> &busy, std::uint32_t count)
{
	std::vector<std::uint16_t> out;
	for (std::size_t k = 0; k < busy.size() && out.size() < count; k++)
		if (!busy[k])
			out.push_back(static_cast<std::uint16_t>(k));
	return out;
}

std::optional<ModelSelect::Place> ModelSelect::test(const SlurmJob &job, const std::string &node, const Masks *masks,
						    const std::vector<const SlurmJob *> &without) const
{
	const SelectNode &n = nodes.at(node);
	if (!n.usable || n.drain || n.set_down || n.fail || n.maint || n.completing || has_node(job.excluded, node) || (!job.required.empty() && job.required != node))
		return std::nullopt;
	std::vector<bool> busy = n.used, gpus_busy = n.gpus;
	std::uint64_t counted = n.memory;
	bool replaces_one = false;
	for (const SlurmJob *j : without) {
		if (j->node != node)
			continue;
		replaces_one = true;
		for (auto c : j->cores)
			busy[c] = false;
		for (auto d : j->devices)
			gpus_busy[d] = false;
		counted -= std::min(counted, j->memory_mb);
	}
	if (masks) {
		for (const auto &known : masks->masks) {
			const core::NodeMask &mask = *known;
			if (mask.node != node)
				continue;
			const bool full = needs_slot(mask, job);
			if (full && !replaces_one)
				return std::nullopt;
			for (std::size_t k = 0; k < busy.size(); k++)
				busy[k] = busy[k] || (full && !n.used[k]); // it is to be on what the other one has
			const auto hidden = hidden_cores(mask, n.used);
			for (std::size_t k = 0; k < busy.size(); k++)
				busy[k] = busy[k] || hidden[k];
			const auto gone = hidden_devices(mask, n.gpus);
			for (std::size_t k = 0; k < gpus_busy.size(); k++)
				gpus_busy[k] = gpus_busy[k] || gone[k];
			const std::uint64_t left = memory - std::min(memory, counted);
			const std::uint64_t hides = mask.memory_mb + beyond(mask.overhead_mb, mask.allocatable.memory_mb, memory);
			counted += mask.whole ? left : std::min(hides, left);
		}
	}
	if (counted + job.memory_mb > memory)
		return std::nullopt;
	Place take{first_free(busy, job.cpus), first_free(gpus_busy, job.gpus)};
	if (take.cores.size() < job.cpus || take.devices.size() < job.gpus)
		return std::nullopt;
	return take;
}

} // namespace sk8::sim
