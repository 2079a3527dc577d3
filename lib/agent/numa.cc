// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/numa.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace sk8::agent {

static constexpr std::size_t max_text = 65'536; // of a list of CPUs, bytes

static std::optional<std::uint16_t> as_node(std::string_view text)
{
	const auto number = parse_integer(trim(text), 0, core::max_numa_nodes - 1); // -1: the firmware does not say
	return number ? std::optional(static_cast<std::uint16_t>(*number)) : std::nullopt;
}

// f(its path, its name) of each entry that is named so; nothing if there is no such folder.
template <class F>
static void each_entry(const std::string &folder, std::string_view begin, F f)
{
	std::error_code failed;
	for (const auto &entry : std::filesystem::directory_iterator(folder, failed))
		if (const std::string name = entry.path().filename(); name.starts_with(begin))
			f(entry.path().string(), name);
}

// Those that have CPUs.
static std::map<std::uint16_t, CpuSet> read_nodes(const std::string &folder)
{
	static constexpr std::string_view begin = "node";
	std::map<std::uint16_t, CpuSet> out;
	each_entry(folder, begin, [&](const std::string &path, const std::string &name) {
		const auto number = as_node(std::string_view(name).substr(begin.size()));
		const auto text = read_file(path + "/cpulist", max_text);
		const auto cpus = parse_cpu_list(text ? *text : "");
		if (number && cpus && !cpus->empty())
			out[*number] = *cpus;
	});
	return out;
}

// All that is behind a root is near the same node.
static std::optional<std::uint16_t> node_of_root(const std::string &folder)
{
	std::optional<std::uint16_t> out;
	each_entry(folder, "", [&](const std::string &path, const std::string &) {
		if (out)
			return;
		if (const auto text = read_file(path + "/numa_node", 64))
			out = as_node(*text);
	});
	return out;
}

core::NumaCores read_numa(const std::string &folder, const CpuTopology &topology)
{
	core::NumaCores out;
	const auto nodes = read_nodes(folder + "/system/node");
	for (std::size_t core = 0; core < topology.cores.size(); core++) {
		const auto of = std::ranges::find_if(nodes, [&](const auto &node) { return covers(node.second, topology.cores[core]); });
		if (of == nodes.end())
			return {};
		out.cores[of->first].push_back(static_cast<std::uint16_t>(core));
	}
	each_entry(folder, "pci", [&](const std::string &path, const std::string &name) {
		if (name.size() > core::max_pci_root || out.roots.size() >= core::max_pci_roots)
			return;
		if (const auto node = node_of_root(path))
			out.roots[name] = *node;
	});
	return out;
}

} // namespace sk8::agent
