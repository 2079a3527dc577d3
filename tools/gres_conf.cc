// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/gres_conf.h"

#include <algorithm>
#include <map>
#include <set>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "tools/device_lines.h"
#include "tools/gres.h"
#include "tools/show.h"

namespace sk8::tools {

static constexpr char first_line[] = "# Written by slurm-k8s gres --write, which replaces it as a whole: change nothing here.\n";

// ---- which device files ----

static constexpr struct {
	const char *resource; // or what it begins with, if it ends in '/'
	const char *file;
	unsigned first;
} device_files[] = {
	{"nvidia.com/gpu", "/dev/nvidia", 0},
	{"amd.com/gpu", "/dev/dri/renderD", 128},
	{"gpu.intel.com/", "/dev/dri/renderD", 128},
};

// As many, from the first one on; "" if nothing is known of files.
static std::string files_of(const std::string &resource, std::uint64_t count)
{
	for (const auto &d : device_files) {
		const std::string_view name = d.resource;
		if (name.ends_with('/') ? !resource.starts_with(name) : resource != name)
			continue;
		return numbered_files(d.file, d.first, count);
	}
	return "";
}

// ---- what a node has on both sides ----

namespace {

struct Device {
	std::string resource, type;
	std::uint64_t count = 0;
	Json row{}; // all that is said of it
};

} // namespace

static std::uint64_t total(const core::GresList &list, const std::string &name)
{
	std::uint64_t out = 0;
	for (const auto &g : list)
		out += g.name == name ? g.count : 0;
	return out;
}

// Of one name. Raises the counts to Slurm's; false if Slurm's are of other types, or more of no type.
static bool as_many_as_slurm(std::vector<Device> &devices, const core::GresList &slurm, const std::string &name)
{
	std::uint64_t all = 0;
	for (const auto &g : slurm) {
		if (g.name != name || g.type.empty())
			continue;
		auto same = std::ranges::find(devices, g.type, &Device::type);
		if (same == devices.end())
			return false;
		same->count = std::max(same->count, g.count);
	}
	if (std::ranges::any_of(devices, [](const Device &d) { return d.count > 0; })) // what is not there is none of no type
		std::erase_if(devices, [](const Device &d) { return d.count == 0; });
	if (devices.size() == 1)
		devices[0].count = std::max(devices[0].count, total(slurm, name));
	for (const auto &d : devices)
		all += d.count;
	return all >= total(slurm, name);
}

static std::string lines_of(const std::string &node, const std::string &name, const std::vector<Device> &devices)
{
	std::string out;
	for (const auto &d : devices)
		out += d.count == 0 ? "" : gres_conf_line(node, {name, d.type, d.count, {}}, files_of(d.resource, d.count));
	return out;
}

// Those that DRA drivers tell of, for people; "" if there are none. Slurm must tell them apart, for a pod gets just those of its
// job: a line with nothing but their number would not do.
static std::string classes_of(const std::vector<Device> &devices)
{
	std::set<std::string> classes; // one has a row for each of its types
	for (const auto &d : devices)
		if (d.resource.starts_with("deviceClass "))
			classes.insert(one_line(d.resource, 160));
	std::string out;
	for (const auto &name : classes)
		out += (out.empty() ? "" : ", ") + name;
	return out;
}

// Without File= Slurm makes as much of slurm.conf alone.
static std::string former_lines(const std::string &former, const std::string &node, const std::string &name)
{
	std::string out;
	for (const auto line : split(former, '\n'))
		if (line.starts_with("NodeName=" + node + " Name=" + name + " ") && line.find(" File=") != line.npos)
			out += std::string(line) + "\n";
	return out;
}

static constexpr char stay[] = "its lines stay as they were";

static std::string lines_of_drivers(const std::string &node, const std::string &name, const std::vector<Device> &devices,
				    const core::GresList &slurm, const std::string &former)
{
	std::vector<Json> rows;
	for (const auto &d : devices)
		rows.push_back(d.row);
	core::GresList of_name = slurm;
	std::erase_if(of_name, [&](const core::Gres &g) { return g.name != name; });
	const DeviceLines lines = device_lines(node, name, rows, of_name);
	if (!lines.text.empty())
		return lines.text;
	const std::string kept = lines.fewer ? former_lines(former, node, name) : "";
	const std::string to_do = kept.empty() ? "keep your own lines, in the order of its driver's indices" : stay;
	return "# " + node + ": " + name + " is of " + classes_of(devices) + ": " + to_do + (lines.why.empty() ? "" : "; " + lines.why) + "\n" + kept;
}

static std::string lines_of(const std::string &node, const Json &about, const std::string &former)
{
	const core::GresList slurm = gres_list(about["slurm"]);
	std::map<std::string, std::vector<Device>> names;
	about["gres"].each_item([&](const Json &g) {
		for (const auto &one : gres_list(Json::array().append(g), 0)) // its plugin may be down, slurm.conf says how many there are
			names[one.name].push_back({std::string(g["kubernetes"].str()), one.type, one.count, g});
	});
	std::string out;
	std::set<std::string> unknown;
	for (const auto &g : slurm)
		if (!names.contains(g.name) && unknown.insert(g.name).second)
			if (const std::string kept = former_lines(former, node, g.name); !kept.empty())
				out += "# " + node + ": Kubernetes knows no " + g.name + " there now: " + stay + "\n" + kept;
	for (auto &[name, devices] : names) {
		const bool none = std::ranges::all_of(devices, [](const Device &d) { return d.count == 0; });
		if (total(slurm, name) == 0)
			out += none ? "" : "# " + node + ": Kubernetes has " + name + ", slurm.conf gives the node none\n";
		else if (!classes_of(devices).empty())
			out += lines_of_drivers(node, name, devices, slurm, former);
		else if (!as_many_as_slurm(devices, slurm, name))
			out += "# " + node + ": slurm.conf has other " + name + " than Kubernetes; slurm-k8s gres shows both\n";
		else
			out += lines_of(node, name, devices);
	}
	return out;
}

// ---- the file ----

Result<GresConf> gres_conf(const Json &answer, const std::string &former)
{
	GresConf out{first_line, 0};
	if (const std::string silent = silent_clusters(answer, ""); !silent.empty())
		return Error{std::string(trim(silent)) + ", and their lines would be missing"};
	each_gres_node(answer, [&](const std::string &node, const Json &about) {
		const std::string lines = lines_of(node, about, former);
		out.nodes += lines.starts_with("NodeName=") || lines.find("\nNodeName=") != lines.npos;
		out.text += lines;
	});
	return out;
}

Result<std::string> former_gres_conf(const std::string &path)
{
	struct stat status;
	if (::lstat(path.c_str(), &status) != 0)
		return std::string();
	auto there = read_file(path, std::size_t{64} << 20);
	if (there && !there->empty() && !there->starts_with(first_line))
		return Error{path + " is not of slurm-k8s gres --write: name another file, which gres.conf includes"};
	return there;
}

Result<bool> write_gres_conf(const std::string &path, const std::string &text)
{
	const auto there = former_gres_conf(path);
	if (!there)
		return there.error();
	if (*there == text)
		return false;
	if (auto done = write_file_atomic(path, text, 0644); !done)
		return done.error();
	return true;
}

} // namespace sk8::tools
