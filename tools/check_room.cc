// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Does slurm.conf set aside what a node's kubelet, its DaemonSets and its static pods take?
// Pure.
#include <algorithm>

#include "lib/base/text.h"
#include "tools/check.h"

namespace sk8::tools {

static constexpr std::size_t most_advice = 20;  // sentences
static constexpr std::int64_t memory_step = 64; // MiB: nodes of one kind that differ a little get one line

namespace {

// One resource of a node: what jobs may get of it in Slurm, what pods may have in Kubernetes,
// and what its own pods request of that.
struct Room {
	std::int64_t offered, allocatable, own;

	bool known() const { return offered > 0 && allocatable > 0; }
	std::int64_t left() const { return std::max<std::int64_t>(allocatable - own, 0); }
	bool too_much() const { return known() && offered > left(); }
};

struct Advice {
	std::string settings; // of slurm.conf; empty: nothing is left for jobs
	std::string why;
	auto operator<=>(const Advice &) const = default;
};

} // namespace

static std::int64_t milli_per_core(const CheckedNode &n)
{
	return static_cast<std::int64_t>(n.threads_per_core) * 1000;
}

static Room cpu_of(const NodeRoom &n)
{
	return {static_cast<std::int64_t>(n.slurm.cores - std::min(n.slurm.cores, n.slurm.spec_cores)) * milli_per_core(n.slurm),
		n.allocatable_milli_cpu, n.own_milli_cpu};
}

static Room memory_of(const NodeRoom &n)
{
	return {static_cast<std::int64_t>(n.slurm.memory_mb - std::min(n.slurm.memory_mb, n.slurm.spec_mb)), n.allocatable_mb, n.own_mb};
}

static std::string consequences(const Room &cpu, const Room &memory)
{
	const struct {
		bool applies;
		const char *text;
	} rows[] = {
		{cpu.known() && cpu.offered > cpu.allocatable, "pods that get the last CPUs fail with OutOfcpu"},
		{memory.known() && memory.offered > memory.allocatable, "pods that get the last of the memory fail with OutOfmemory"},
		{cpu.too_much() && cpu.own > 0, "jobs with --exclusive never start beside them"},
		{memory.too_much() && memory.own > 0, "jobs with --mem=0 never start beside them"},
	};
	std::vector<std::string> out;
	for (const auto &row : rows)
		if (row.applies)
			out.push_back(row.text);
	return join(out, ", ");
}

// What slurm.conf should say of this node; nullopt: it is right.
static std::optional<Advice> advice(const NodeRoom &n)
{
	const Room cpu = cpu_of(n), memory = memory_of(n);
	if (!cpu.too_much() && !memory.too_much())
		return std::nullopt;
	const std::string why = consequences(cpu, memory);
	if ((cpu.known() && cpu.left() < milli_per_core(n.slurm)) || (memory.known() && memory.left() == 0))
		return Advice{"", why};
	std::vector<std::string> settings;
	if (cpu.too_much()) {
		const std::int64_t more = (cpu.offered - cpu.left() + milli_per_core(n.slurm) - 1) / milli_per_core(n.slurm);
		settings.push_back("CoreSpecCount=" + std::to_string(static_cast<std::int64_t>(n.slurm.spec_cores) + more));
	}
	if (memory.too_much()) {
		const std::int64_t all = static_cast<std::int64_t>(n.slurm.spec_mb) + memory.offered - memory.left();
		const std::int64_t even = (all + memory_step - 1) / memory_step * memory_step;
		// not the last of the memory for the sake of an even number
		const bool fits = even < static_cast<std::int64_t>(n.slurm.memory_mb);
		settings.push_back("MemSpecLimit=" + std::to_string(fits ? even : all));
	}
	return Advice{join(settings, " "), why};
}

static std::string cpus(std::int64_t milli)
{
	return milli % 1000 ? strprintf("%.3g", static_cast<double>(milli) / 1000) : std::to_string(milli / 1000);
}

static std::string numbers(const NodeRoom &n)
{
	const Room cpu = cpu_of(n), memory = memory_of(n);
	return strprintf("of %s Slurm offers %s CPUs and %lld MiB, the kubelet lets pods have %s and %lld, its own pods request %s and %lld",
			 n.node.c_str(), cpus(cpu.offered).c_str(), static_cast<long long>(memory.offered),
			 cpus(cpu.allocatable).c_str(), static_cast<long long>(memory.allocatable), cpus(cpu.own).c_str(),
			 static_cast<long long>(memory.own));
}

void check_room(const std::vector<NodeRoom> &nodes, const std::string &about, Findings &out)
{
	std::map<Advice, std::vector<const NodeRoom *>> found;
	for (const NodeRoom &n : nodes)
		if (auto what = advice(n))
			found[*what].push_back(&n);
	std::size_t told = 0, others = 0;
	for (const auto &[what, where] : found) {
		if (told++ >= most_advice) {
			others += where.size();
			continue;
		}
		std::vector<std::string> names;
		for (const NodeRoom *n : where)
			names.push_back(n->node);
		const std::string begin = (names.size() == 1 ? "node " : "nodes ") + some(names) + ": ";
		if (what.settings.empty())
			out.warning(about, begin + "nothing is left there for jobs beside the node's own pods (DaemonSets, static pods): " +
						   numbers(*where[0]) + "; let pods have more there (the kubelet's kubeReserved), or do not share it");
		else
			out.warning(about, begin + "slurm.conf sets too little aside for the node's own pods (DaemonSets, static pods) and "
						   "the kubelet, so " + what.why + "; set " + what.settings + " there (" + numbers(*where[0]) + ")");
	}
	if (others)
		out.warning(about, "slurm.conf sets too little aside on " + std::to_string(others) + " more nodes");
	if (found.empty() && !nodes.empty())
		out.ok(about, "slurm.conf sets aside what their own pods and kubelets take");
}

} // namespace sk8::tools
