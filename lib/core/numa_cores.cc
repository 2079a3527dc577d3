// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/numa_cores.h"

#include <set>
#include <utility>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/core/indices.h"

namespace sk8::core {

static constexpr std::size_t max_cores = 8192; // CONFIG_NR_CPUS
static constexpr std::size_t max_text = 65'536;

std::size_t NumaCores::core_count() const
{
	std::size_t out = 0;
	for (const auto &[node, some] : cores)
		out += some.size();
	return out;
}

std::string numa_text(const NumaCores &numa)
{
	if (numa.cores.empty())
		return "";
	Json cores = Json::object(), roots = Json::object(), out = Json::object();
	for (const auto &[node, some] : numa.cores)
		cores.set(std::to_string(node), indices_to_json(some));
	for (const auto &[root, node] : numa.roots)
		roots.set(root, Json::integer(node));
	out.set("cores", cores);
	if (!numa.roots.empty())
		out.set("pci", roots);
	return out.dump();
}

static bool read_cores(std::string_view node, const Json &list, NumaCores &out)
{
	const auto number = parse_integer(node, 0, max_numa_nodes - 1);
	auto cores = indices_from_json(list, max_cores, max_cores);
	if (!number || !cores)
		return false;
	sort_indices(*cores);
	return out.cores.emplace(static_cast<std::uint16_t>(*number), std::move(*cores)).second; // "1" and "01" are two of one name
}

static bool read_root(std::string_view root, const Json &node, NumaCores &out)
{
	const std::int64_t number = node.integer_or(-1);
	const bool is_node = number >= 0 && std::cmp_less(number, max_numa_nodes);
	if (!is_node || root.size() > max_pci_root || out.roots.size() >= max_pci_roots)
		return false;
	out.roots.emplace(root, static_cast<std::uint16_t>(number));
	return true;
}

// From 0 on, each one once.
static bool has_all_cores(const NumaCores &numa)
{
	std::set<std::uint16_t> all;
	for (const auto &[node, some] : numa.cores)
		all.insert(some.begin(), some.end());
	return !all.empty() && all.size() == numa.core_count() && *all.rbegin() + std::size_t{1} == all.size();
}

Result<NumaCores> parse_numa(std::string_view text)
{
	NumaCores out;
	if (text.empty())
		return out;
	const auto json = parse_annotation_json(text, max_text);
	if (!json)
		return json.error();
	const Json cores = (*json)["cores"], roots = (*json)["pci"];
	bool good = cores.is_object() && (roots.is_null() || roots.is_object());
	cores.each_member([&](std::string_view node, const Json &list) { good = good && read_cores(node, list, out); });
	roots.each_member([&](std::string_view root, const Json &node) { good = good && read_root(root, node, out); });
	if (!good || !has_all_cores(out))
		return Error{"is no list of a node's cores by NUMA node"};
	return out;
}

std::vector<std::uint16_t> whole_sockets(const std::vector<std::uint16_t> &cores, std::uint32_t cores_per_socket)
{
	std::set<std::uint32_t> sockets;
	for (const std::uint16_t core : cores)
		sockets.insert(core / cores_per_socket);
	std::vector<std::uint16_t> out;
	for (const std::uint32_t socket : sockets)
		for (std::uint32_t i = 0; i < cores_per_socket; i++)
			out.push_back(static_cast<std::uint16_t>(socket * cores_per_socket + i));
	return out;
}

} // namespace sk8::core
