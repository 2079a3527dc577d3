// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/cpus.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

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

Result<CpuTopology> read_cpu_topology(const std::string &folder)
{
	const auto text = read_file(folder + "/present", max_text);
	if (!text)
		return text.error();
	const auto present = parse_cpu_list(*text);
	if (!present)
		return present.error();
	// Sockets and cores in the order of their first CPUs, as hwloc has them.
	std::map<std::int64_t, int> first_of_socket;
	std::map<std::pair<std::int64_t, std::int64_t>, CpuSet> cores; // by socket and core
	for (const int cpu : *present) {
		const std::string of_cpu = folder + "/cpu" + std::to_string(cpu) + "/topology/";
		const std::int64_t socket = read_id(of_cpu + "physical_package_id", -1);
		const std::int64_t core = read_id(of_cpu + "core_id", -1);
		first_of_socket.try_emplace(socket, cpu);
		cores[{socket, core < 0 ? INT32_MAX + std::int64_t{cpu} + 1 : core}].push_back(cpu);
	}
	std::vector<std::tuple<int, int, CpuSet>> ordered; // first CPU of the socket, of the core
	for (auto &[id, cpus] : cores)
		ordered.emplace_back(first_of_socket.at(id.first), cpus.front(), cpus);
	std::ranges::sort(ordered);
	CpuTopology out;
	for (auto &[socket, first, cpus] : ordered)
		out.cores.push_back(std::move(cpus));
	return out;
}

} // namespace sk8::agent
