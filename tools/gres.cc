// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/gres.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/quantity.h"
#include "lib/base/text.h"
#include "tools/device_lines.h"
#include "tools/show.h"

namespace sk8::tools {

// ---- what an answer has ----

core::GresList gres_list(const Json &list, std::int64_t least)
{
	core::GresList out;
	list.each_item([&](const Json &g) {
		const std::string name(g["name"].str()), type(g["type"].str());
		const std::int64_t count = g["count"].integer_or(0);
		if (count >= least && count >= 0 && !name.empty() && core::bad_gres_word(name).empty() && core::bad_gres_word(type).empty())
			out.push_back({name, type, static_cast<std::uint64_t>(count), {}});
	});
	return out;
}

static std::string request_of(const Json &list)
{
	const std::string text = core::gres_request(gres_list(list));
	return text.empty() ? "-" : text;
}

static void each_node(const Json &answer, const std::function<void(const Json &)> &f)
{
	answer["clusters"].each_item([&](const Json &cluster) { cluster["nodes"].each_item(f); });
}

std::size_t gres_nodes(const Json &answer)
{
	std::size_t out = 0;
	each_node(answer, [&](const Json &) { out++; });
	return out;
}

std::string silent_clusters(const Json &answer, const std::string &begin)
{
	std::string out;
	answer["clusters"].each_item([&](const Json &cluster) {
		const std::string state = text_of(cluster, "state", ""), error = text_of(cluster, "error", "");
		if (state != "running")
			out += begin + "cluster " + text_of(cluster, "name", "") + " is " + state + (error.empty() ? "" : ": " + error) +
			       "; nothing is known of its nodes\n";
	});
	return out;
}

// ---- for people ----

std::string show_gres(const Json &answer)
{
	std::vector<std::vector<std::string>> rows{{"NODE", "KUBERNETES HAS", "AS GRES", "SLURM HAS", "MASKED"}};
	std::string problems;
	each_node(answer, [&](const Json &node) {
		std::string resources;
		node["gres"].each_item([&](const Json &g) { resources += (resources.empty() ? "" : ", ") + text_of(g, "kubernetes", ""); });
		rows.push_back({text_of(node, "node", ""), resources.empty() ? "-" : resources, request_of(node["gres"]),
				node["in_slurm"].boolean_or(false) ? request_of(node["slurm"]) : "no such node", request_of(node["masked"])});
		node["problems"].each_item(
			[&](const Json &p) { problems += "node " + text_of(node, "node", "") + ": " + one_line(p.str(), 512) + "\n"; });
	});
	return (rows.size() == 1 ? "no shared node is known\n" : table(rows)) + problems + silent_clusters(answer, "");
}

std::string show_devices(const Json &answer)
{
	std::vector<std::vector<std::string>> rows{{"NODE", "GRES", "INDEX", "DEVICE", "UUID", "PCI", "NUMA", "CORES", "STATE"}};
	each_node(answer, [&](const Json &node) {
		node["gres"].each_item([&](const Json &g) {
			const std::string type = text_of(g, "type", "");
			g["devices"].each_item([&](const Json &d) {
				std::vector<std::string> row{text_of(node, "node", ""), text_of(g, "name", "") + (type.empty() ? "" : ":" + type),
							     std::to_string(d["index"].integer_or(0))};
				for (const char *key : {"device", "uuid", "pci", "numa", "cores"})
					row.push_back(text_of(d, key, "").empty() ? "-" : text_of(d, key, ""));
				row.push_back(d["well"].boolean_or(false) ? "ok" : "tainted");
				rows.push_back(std::move(row));
			});
		});
	});
	return (rows.size() == 1 ? "no driver tells of devices; see deviceClass in slurm-k8s.yaml(5)\n" : table(rows)) + silent_clusters(answer, "");
}

// ---- for Slurm ----

static bool is_node_name(const std::string &name)
{
	return !name.empty() && name.size() <= 253 && core::bad_gres_word(name.substr(0, 64)).empty() &&
	       name.find_first_of(" \t\r\n\f\v,=#\"\\[]") == name.npos && is_printable(name);
}

void each_gres_node(const Json &answer, const std::function<void(const std::string &, const Json &)> &f)
{
	each_node(answer, [&](const Json &node) {
		if (const std::string name(node["node"].str()); is_node_name(name) && node["in_slurm"].boolean_or(false))
			f(name, node);
	});
}

std::string gres_conf_line(const std::string &node, const core::Gres &g, const std::string &files, const std::string &cores)
{
	return "NodeName=" + node + " Name=" + g.name + (g.type.empty() ? "" : " Type=" + g.type) + " Count=" + std::to_string(g.count) +
	       (files.empty() ? "" : " File=" + files) + (cores.empty() ? "" : " Cores=" + cores) +
	       (g.name == core::k8s_gres ? " Flags=CountOnly" : "") + "\n";
}

std::string numbered_files(const std::string &begin, std::uint64_t first, std::uint64_t count)
{
	const std::string one = std::to_string(first), last = std::to_string(first + count - 1);
	return begin + (count == 1 ? one : "[" + one + "-" + last + "]");
}

// What Kubernetes has of each GRES; of drivers' devices the types in the order of these, as they are to be in slurm.conf.
static std::map<std::string, std::vector<Json>> rows_by_name(const Json &gres)
{
	std::map<std::string, std::vector<Json>> out;
	gres.each_item([&](const Json &row) {
		for (const auto &g : gres_list(Json::array().append(row), 0))
			out[g.name].push_back(row);
	});
	for (auto &[name, rows] : out)
		std::ranges::stable_sort(rows, {}, [](const Json &row) { return row["devices"].at(0)["index"].integer_or(0); });
	return out;
}

// Devices that are not well are some, too.
static core::GresList wanted_in_slurm(const std::vector<Json> &rows)
{
	core::GresList out;
	for (const Json &row : rows)
		for (core::Gres &g : gres_list(Json::array().append(row), 0)) {
			g.count = std::max<std::uint64_t>(g.count, row["devices"].size());
			if (g.count > 0)
				out.push_back(std::move(g));
		}
	return out;
}

std::string gres_lines(const Json &answer)
{
	std::string types, nodes, devices;
	std::set<std::string> names;
	bool numbers = false; // of GPUs
	each_gres_node(answer, [&](const std::string &node, const Json &about) {
		core::GresList all;
		for (const auto &[name, rows] : rows_by_name(about["gres"])) {
			const core::GresList gres = wanted_in_slurm(rows);
			const DeviceLines lines = device_lines(node, name, rows, gres);
			devices += lines.text + (lines.why.empty() ? "" : "# " + node + ": " + name + ": " + lines.why + "\n");
			for (const auto &g : gres) {
				names.insert(g.name);
				all.push_back(g);
				devices += lines.text.empty() ? gres_conf_line(node, g, "") : "";
			}
			numbers |= name == "gpu" && lines.text.empty() && !gres.empty();
		}
		if (!all.empty())
			nodes += "# NodeName=" + node + " ... Gres=" + core::gres_request(all) + "\n";
	});
	for (const auto &name : names)
		types += (types.empty() ? "GresTypes=" : ",") + name;
	if (names.empty())
		return "# no node has devices that Kubernetes knows\n" + silent_clusters(answer, "# ");
	return "# slurm.conf: add this line, and Gres= to the line of each node\n" + types + "\n" + nodes + "\n# gres.conf" +
	       (numbers ? ": GPUs by number only. For CUDA_VISIBLE_DEVICES and cgroups have File= or AutoDetect= in the place of Count=" : "") +
	       "\n" + devices + silent_clusters(answer, "# ");
}

// ---- of slurm.conf ----

static std::string without_brackets(const std::string &text)
{
	std::string out;
	int depth = 0;
	for (char c : text) {
		depth += c == '(';
		if (depth == 0)
			out += c;
		depth -= c == ')' && depth > 0;
	}
	return out;
}

// As Slurm has it: K, M, G of 1024.
static std::uint64_t count_of(const std::string &text)
{
	const bool plain = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
	const auto n = parse_whole(plain ? text : text + "i");
	return n && *n >= 0 ? static_cast<std::uint64_t>(*n) : 0;
}

core::GresList parse_gres(const std::string &text)
{
	core::GresList out;
	const std::string bare = without_brackets(text);
	for (auto entry : split(bare, ',')) {
		std::vector<std::string> words;
		for (auto word : split(entry, ':'))
			words.emplace_back(trim(word));
		const bool counted = words.size() > 1 && !words.back().empty() && words.back()[0] >= '0' && words.back()[0] <= '9';
		core::Gres g{words[0], {}, counted ? count_of(words.back()) : 1, {}};
		if (counted)
			words.pop_back();
		const bool consumed = std::ranges::find(words, "no_consume") == words.end();
		if (words.size() > 1)
			g.type = words[1];
		if (consumed && !g.name.empty())
			out.push_back(std::move(g));
	}
	return core::merged(std::move(out));
}

} // namespace sk8::tools
