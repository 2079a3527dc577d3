// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/device_lines.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "tools/gres.h"

namespace sk8::tools {

namespace {

struct Device {
	std::uint16_t index = 0;
	std::string type, file, cores; // file: with %d for the index. cores: empty: not known

	// On one line with the one before it?
	bool follows(const Device &d) const
	{
		return index == d.index + 1 && std::tie(type, file, cores) == std::tie(d.type, d.file, d.cores);
	}
};
using Devices = std::vector<Device>; // by index

} // namespace

// "0-15,32-47"; lines of gres.conf have an end.
static std::string core_list(std::string_view text)
{
	return text.size() <= 1024 && text.find_first_not_of("0123456789,-") == text.npos ? std::string(text) : "";
}

// nullopt: not all of it is of drivers, or it is not known which files the devices are.
static std::optional<Devices> read_devices(const std::vector<Json> &rows)
{
	Devices out;
	bool good = true;
	for (const Json &row : rows) {
		if (row["devices"].size() == 0 && row["count"].integer_or(0) == 0) // of a device plugin that a driver has replaced
			continue;
		const std::string file(row["file"].str()), type(row["type"].str());
		good = good && core::bad_device_file(file).empty() && core::bad_gres_word(type).empty();
		row["devices"].each_item([&](const Json &d) {
			const std::int64_t index = d["index"].integer_or(-1);
			good = good && index >= 0 && std::cmp_less(index, core::max_gres_devices);
			if (good)
				out.push_back({static_cast<std::uint16_t>(index), type, file, core_list(d["socket_cores"].str())});
		});
	}
	if (!good || out.empty())
		return std::nullopt;
	std::ranges::sort(out, {}, &Device::index);
	return out;
}

// Slurm's word for it counts, where it has one for all of them.
static void name_types(Devices &devices, const core::GresList &slurm)
{
	for (Device &d : devices)
		if (slurm.size() == 1 && (slurm[0].type.empty() || d.type.empty()))
			d.type = slurm[0].type;
}

static void agree_on_cores(Devices &devices)
{
	if (std::ranges::any_of(devices, [](const Device &d) { return d.cores.empty(); }))
		for (Device &d : devices)
			d.cores.clear();
}

// By the place that Slurm gives them; nullopt: they are fewer of a type than it wants.
static std::optional<std::vector<std::uint16_t>> take_as_slurm(const Devices &devices, const core::GresList &slurm)
{
	std::vector<std::uint16_t> out;
	for (const core::Gres &g : slurm) {
		std::uint64_t wanted = g.count;
		for (const Device &d : devices)
			if (wanted > 0 && d.type == g.type) {
				out.push_back(d.index);
				wanted--;
			}
		if (wanted > 0)
			return std::nullopt;
	}
	return out;
}

static bool are_places(const std::vector<std::uint16_t> &indices)
{
	for (std::size_t i = 0; i < indices.size(); i++)
		if (indices[i] != i)
			return false;
	return true;
}

static std::uint64_t total(const core::GresList &slurm)
{
	std::uint64_t out = 0;
	for (const core::Gres &g : slurm)
		out += g.count;
	return out;
}

static std::string lines_of(const std::string &node, const std::string &name, const Devices &devices)
{
	std::string out;
	for (std::size_t i = 0, end = 0; i < devices.size(); i = end) {
		for (end = i + 1; end < devices.size() && devices[end].follows(devices[end - 1]);)
			end++;
		const Device &d = devices[i];
		const std::string files = numbered_files(d.file.substr(0, d.file.size() - 2), d.index, end - i);
		out += gres_conf_line(node, {name, d.type, end - i, {}}, files, d.cores);
	}
	return out;
}

DeviceLines device_lines(const std::string &node, const std::string &name, const std::vector<Json> &rows,
			 const core::GresList &slurm)
{
	auto devices = read_devices(rows);
	if (!devices)
		return {};
	const std::uint64_t wanted = total(slurm), has = devices->size();
	if (has < wanted)
		return {"", "slurm.conf has " + std::to_string(wanted) + ", and of " + std::to_string(has) + " a driver tells", true};
	name_types(*devices, slurm);
	agree_on_cores(*devices);
	const auto taken = take_as_slurm(*devices, slurm);
	if (!taken)
		return {"", "slurm.conf has other types of it than slurm-k8s.yaml"};
	if (!are_places(*taken))
		return {"", "Slurm would take its devices in the order " + core::index_list(*taken) + " and count them from 0 on"};
	return {lines_of(node, name, *devices), ""};
}

} // namespace sk8::tools
