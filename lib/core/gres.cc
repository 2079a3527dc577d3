// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/gres.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/core/indices.h"

namespace sk8::core {

static constexpr std::size_t max_word = 64;

std::string bad_gres_word(const std::string &word)
{
	const bool fits = std::ranges::all_of(word, [](unsigned char c) {
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
		       c == '-' || c == '.';
	});
	return fits && word.size() <= max_word ? "" : "is no name in Slurm's Gres=, use up to 64 letters, digits, '_', '-' and '.'";
}

static constexpr std::size_t max_device_file = 128;

// %d at the end: hostlists of Slurm 22.05, as which File= is read, have nothing behind their brackets.
std::string bad_device_file(const std::string &file)
{
	static constexpr std::string_view folder = "/dev/", number = "%d", others = "/_-.:";
	const bool shaped = file.starts_with(folder) && file.ends_with(number) && file.size() <= max_device_file;
	const bool fits = shaped && std::ranges::all_of(file.substr(0, file.size() - number.size()), [](char c) {
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || others.find(c) != others.npos;
	});
	if (fits && file.find("..") == file.npos)
		return "";
	return "names no device files, use up to 128 letters, digits, '/', '_', '-', '.' and ':' below /dev with %d at the end, for "
	       "example /dev/nvidia%d";
}

// ---- the C border ----

GresList gres_from_abi(const sk8_gres *gres, std::uint32_t count)
{
	GresList out;
	for (std::uint32_t i = 0; gres && i < count && i < max_gres; i++) {
		Gres &g = out.emplace_back();
		g.name = gres[i].name ? gres[i].name : "";
		g.type = gres[i].type ? gres[i].type : "";
		g.count = gres[i].count;
		if (gres[i].devices)
			g.devices.assign(gres[i].devices, gres[i].devices + gres[i].device_count);
	}
	return out;
}

std::vector<sk8_gres> gres_to_abi(const GresList &gres)
{
	std::vector<sk8_gres> out;
	out.reserve(gres.size());
	for (const Gres &g : gres)
		out.push_back({g.name.c_str(), g.type.c_str(), g.count, static_cast<std::uint32_t>(g.devices.size()),
			       g.devices.data()});
	return out;
}

// ---- texts ----

std::string index_list(const std::vector<std::uint16_t> &indices)
{
	std::string out;
	for (std::size_t i = 0; i < indices.size(); i++) {
		std::size_t last = i;
		while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1)
			last++;
		out += (out.empty() ? "" : ",") + std::to_string(indices[i]);
		if (last > i)
			out += '-' + std::to_string(indices[last]);
		i = last;
	}
	return out;
}

static std::string counted(const Gres &g)
{
	return g.name + (g.type.empty() ? "" : ":" + g.type) + ":" + std::to_string(g.count);
}

std::string gres_text(const GresList &gres)
{
	std::string out;
	for (const Gres &g : gres)
		out += (out.empty() ? "" : ",") + counted(g) + (g.devices.empty() ? "" : "(" + index_list(g.devices) + ")");
	return out;
}

std::string gres_request(const GresList &gres)
{
	std::string out;
	for (const Gres &g : gres)
		out += (out.empty() ? "" : ",") + counted(g);
	return out;
}

Json gres_to_json(const GresList &gres)
{
	Json out = Json::array();
	for (const Gres &g : gres) {
		Json one = Json::object();
		one.set("name", g.name).set("type", g.type).set("devices", indices_to_json(g.devices));
		out.append(one.set("count", Json::integer(static_cast<std::int64_t>(g.count))));
	}
	return out;
}

static std::optional<Gres> read_gres(const Json &from)
{
	Gres g;
	g.name = from["name"].str();
	g.type = from["type"].str();
	const std::int64_t count = from["count"].integer_or(-1);
	auto devices = indices_from_json(from["devices"], max_gres_devices, std::size_t{1} << 16);
	if (g.name.empty() || !bad_gres_word(g.name).empty() || !bad_gres_word(g.type).empty() || count < 0 ||
	    !devices)
		return std::nullopt;
	g.count = static_cast<std::uint64_t>(count);
	g.devices = std::move(*devices);
	return g;
}

std::optional<GresList> gres_from_json(const Json &list)
{
	GresList out;
	if (list.is_null())
		return out;
	if (!list.is_array() || list.size() > max_gres)
		return std::nullopt;
	for (std::size_t i = 0; i < list.size(); i++) {
		auto g = read_gres(list.at(i));
		if (!g)
			return std::nullopt;
		out.push_back(std::move(*g));
	}
	return out;
}

// ---- sums ----

GresList merged(GresList gres)
{
	for (Gres &g : gres)
		std::ranges::sort(g.devices);
	std::ranges::sort(gres, [](const Gres &a, const Gres &b) {
		return std::tie(a.name, a.type, a.devices) < std::tie(b.name, b.type, b.devices);
	});
	GresList out;
	for (Gres &g : gres) {
		Gres *last = out.empty() ? nullptr : &out.back();
		if (last && last->name == g.name && last->type == g.type && last->devices.empty() && g.devices.empty())
			last->count += g.count;
		else if (g.count != 0)
			out.push_back(std::move(g));
	}
	return out;
}

bool is_shared_gres(const std::string &name)
{
	return name == "shard" || name == "mps";
}

bool devices_collide(const GresList &a, const GresList &b)
{
	for (const Gres &x : a)
		for (const Gres &y : b)
			if (x.name == y.name && !is_shared_gres(x.name) &&
			    std::ranges::find_first_of(x.devices, y.devices) != x.devices.end())
				return true;
	return false;
}

// ---- Kubernetes ----

static const std::vector<ResourceSettings> &own_resources()
{
	// leaked: no static destructors in slurmctld
	static const auto *own = new std::vector<ResourceSettings>{{"nvidia.com/gpu", "gpu", "", {}}, {"amd.com/gpu", "gpu", "", {}}};
	return *own;
}

const ResourceSettings *find_resource(const std::vector<ResourceSettings> &settings, std::string_view kubernetes)
{
	for (const auto *list : {&settings, &own_resources()})
		for (const ResourceSettings &r : *list)
			if (r.kubernetes == kubernetes)
				return &r;
	return nullptr;
}

std::vector<ResourceSettings> with_own(std::vector<ResourceSettings> settings)
{
	const std::size_t said = settings.size();
	for (const ResourceSettings &own : own_resources())
		if (std::none_of(settings.begin(), settings.begin() + static_cast<std::ptrdiff_t>(said), [&](const ResourceSettings &r) {
			    return r.kubernetes == own.kubernetes || (!r.device_class.empty() && r.gres == own.gres);
		    }))
			settings.push_back(own);
	return settings;
}

GresList gres_of(const std::map<std::string, std::int64_t> &extended, const std::vector<ResourceSettings> &settings)
{
	GresList out;
	for (const auto &[name, count] : extended)
		if (const ResourceSettings *r = find_resource(settings, name); r && count > 0)
			out.push_back({r->gres, r->type, static_cast<std::uint64_t>(std::min(count, max_gres_count)), {}});
	return merged(std::move(out));
}

std::vector<std::uint16_t> devices_named(const GresList &gres, const std::string &name)
{
	std::vector<std::uint16_t> out;
	for (const Gres &g : gres)
		if (g.name == name)
			out.insert(out.end(), g.devices.begin(), g.devices.end());
	std::ranges::sort(out);
	return out;
}

static bool is_slice(const Gres &g, const std::map<std::string, std::int64_t> &allocatable)
{
	return !g.type.empty() && (allocatable.contains("nvidia.com/mig-" + g.type) || allocatable.contains("gpu.intel.com/" + g.type));
}

// Which of several is requested: one that names the type, else the first of which the node has any.
static int rank(const ResourceSettings &r, const std::map<std::string, std::int64_t> &allocatable)
{
	return !r.type.empty() ? 2 : allocatable.at(r.kubernetes) > 0 ? 1 : 0;
}

std::map<std::string, std::int64_t> extended_of(const GresList &gres, const std::vector<ResourceSettings> &settings,
						const std::map<std::string, std::int64_t> &allocatable)
{
	std::map<std::string, std::int64_t> out;
	for (const Gres &g : gres) {
		const ResourceSettings *found = nullptr;
		for (const ResourceSettings &r : settings) {
			const bool fits = r.gres == g.name && (r.type.empty() ? !is_slice(g, allocatable) : r.type == g.type) &&
					  allocatable.contains(r.kubernetes);
			if (fits && (!found || rank(r, allocatable) > rank(*found, allocatable)))
				found = &r;
		}
		if (found && g.count > 0)
			out[found->kubernetes] += static_cast<std::int64_t>(std::min<std::uint64_t>(g.count, max_gres_count));
	}
	return out;
}

std::string step_devices(const std::map<std::string, std::int64_t> &resources, const std::vector<ResourceSettings> &settings)
{
	std::string out;
	for (const auto &[name, count] : resources)
		if (const ResourceSettings *r = find_resource(settings, name); r && r->gres == k8s_gres)
			out += (out.empty() ? "" : ",") + name;
	return out;
}

bool is_named(const GresList &gres, const std::vector<ResourceSettings> &settings)
{
	return std::ranges::any_of(gres, [&](const Gres &g) {
		return g.count > 0 && std::ranges::any_of(settings, [&](const ResourceSettings &r) {
			return r.gres == g.name && (r.type.empty() || r.type == g.type);
		});
	});
}

std::uint64_t count_of(const GresList &gres, std::string_view name, std::optional<std::string_view> type)
{
	std::uint64_t sum = 0;
	for (const Gres &g : gres)
		if (g.name == name && (!type || g.type == *type))
			sum += g.count;
	return sum;
}

bool is_part_of(const GresList &part, const GresList &whole)
{
	return std::ranges::all_of(part, [&](const Gres &g) {
		return (g.type.empty() || count_of(part, g.name, g.type) <= count_of(whole, g.name, g.type)) &&
		       count_of(part, g.name) <= count_of(whole, g.name);
	});
}

} // namespace sk8::core
