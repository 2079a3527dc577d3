// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/cpus.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace sk8::agent {

static constexpr std::size_t max_text = 65'536; // of a list of CPUs, bytes

Result<CpuSet> parse_cpu_list(std::string_view text)
{
	CpuSet out;
	text = trim(text);
	if (text.empty())
		return out;
	for (const std::string_view part : split(text, ',')) {
		const std::size_t dash = part.find('-');
		const auto first = parse_integer(part.substr(0, dash), 0, max_cpu);
		const auto last = dash == part.npos ? first : parse_integer(part.substr(dash + 1), 0, max_cpu);
		if (!first || !last || *last < *first || out.size() > max_text)
			return Error{"'" + one_line(text, 64) + "' is no list of CPUs"};
		for (std::int64_t cpu = *first; cpu <= *last; cpu++)
			out.push_back(static_cast<int>(cpu));
	}
	std::ranges::sort(out);
	out.erase(std::unique(out.begin(), out.end()), out.end());
	return out;
}

std::string cpu_list(const CpuSet &cpus)
{
	std::string out;
	for (std::size_t i = 0; i < cpus.size();) {
		std::size_t end = i + 1;
		while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1)
			end++;
		out += (out.empty() ? "" : ",") + std::to_string(cpus[i]);
		if (end > i + 1)
			out += '-' + std::to_string(cpus[end - 1]);
		i = end;
	}
	return out;
}

CpuSet united(const CpuSet &a, const CpuSet &b)
{
	CpuSet out;
	std::ranges::set_union(a, b, std::back_inserter(out));
	return out;
}

CpuSet without(const CpuSet &all, const CpuSet &some)
{
	CpuSet out;
	std::ranges::set_difference(all, some, std::back_inserter(out));
	return out;
}

bool covers(const CpuSet &all, const CpuSet &some)
{
	return std::ranges::includes(all, some);
}

Result<CpuSet> CpuTopology::cpus_of(const std::vector<int> &slurm_cores) const
{
	CpuSet out;
	for (const int core : slurm_cores) {
		if (core < 0 || static_cast<std::size_t>(core) >= cores.size())
			return Error{"Slurm's core " + std::to_string(core) + " is none of the " + std::to_string(cores.size()) +
				     " that this machine has; correct the node's line in slurm.conf"};
		out = united(out, cores[static_cast<std::size_t>(core)]);
	}
	return out;
}

static std::int64_t read_id(const std::string &path, std::int64_t otherwise)
{
	const auto text = read_file(path, 64);
	return text ? parse_integer(trim(*text), -1, INT32_MAX).value_or(otherwise) : otherwise;
}

// What shares something is where its first CPU is: as hwloc orders it, and so slurmd, whatever the kernel calls it. Names of cores
// may repeat within a socket.
class Firsts {
public:
	// CPUs come in their order.
	int of(const std::string &name, int cpu) { return first_.try_emplace(name, cpu).first->second; }

private:
	std::map<std::string, int> first_;
};

// The first CPU of its socket, die, NUMA node, last cache and core: hwloc's objects are within each other in this order.
using Place = std::array<int, 5>;

static std::string read_list(const std::string &path, const std::string &otherwise = "")
{
	const auto text = read_file(path, max_text);
	return text ? std::string(trim(*text)) : otherwise;
}

static std::string numa_node(const std::string &of_cpu)
{
	std::error_code failed;
	for (const auto &entry : std::filesystem::directory_iterator(of_cpu, failed))
		if (const std::string name = entry.path().filename(); name.starts_with("node"))
			return name;
	return "";
}

// "online": slurmd counts no others. A machine that is made of files may have "present" alone.
Result<CpuTopology> read_cpu_topology(const std::string &folder)
{
	auto text = read_file(folder + "/online", max_text);
	if (!text)
		text = read_file(folder + "/present", max_text);
	if (!text)
		return text.error();
	const auto online = parse_cpu_list(*text);
	if (!online)
		return online.error();
	Firsts sockets, dies, nodes, caches, cores;
	std::map<Place, CpuSet> found;
	for (const int cpu : *online) {
		const std::string of_cpu = folder + "/cpu" + std::to_string(cpu), topology = of_cpu + "/topology/";
		const std::string socket = std::to_string(read_id(topology + "physical_package_id", -1));
		const std::int64_t core = read_id(topology + "core_id", -1);
		const std::string core_name = socket + "/" + (core < 0 ? "cpu" + std::to_string(cpu) : std::to_string(core));
		const Place place{sockets.of(socket, cpu), dies.of(socket + "/" + read_list(topology + "die_cpus_list"), cpu),
				  nodes.of(socket + "/" + numa_node(of_cpu), cpu),
				  caches.of(socket + "/" + read_list(of_cpu + "/cache/index3/shared_cpu_list"), cpu),
				  cores.of(read_list(topology + "thread_siblings_list", core_name), cpu)};
		found[place].push_back(cpu);
	}
	CpuTopology out;
	for (auto &[place, cpus] : found)
		out.cores.push_back(std::move(cpus));
	return out;
}

} // namespace sk8::agent
