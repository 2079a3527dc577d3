// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Does gres.conf count devices that pods claim as their driver does, and are the files there that it names?
#include <algorithm>
#include <unistd.h>

#include "lib/base/node_list.h"
#include "lib/base/text.h"
#include "lib/core/gres.h"
#include "tools/check.h"

namespace sk8::tools {

static std::string path_beside(const SlurmConf &conf)
{
	return conf.path().substr(0, conf.path().rfind('/') + 1) + "gres.conf";
}

static bool finds_devices(const ConfValue *autodetect)
{
	if (!autodetect)
		return false;
	const std::string word = conf_key(autodetect->value);
	return word != "off" && word != "none";
}

// The first line that has Slurm look for devices itself; nullptr: none.
static const ConfValue *find_autodetect(const SlurmConf &gres_conf)
{
	if (const ConfValue *found = gres_conf.find("AutoDetect"); finds_devices(found))
		return found;
	for (const ConfLine &node : gres_conf.nodes())
		if (const auto at = node.find("autodetect"); at != node.end() && finds_devices(&at->second))
			return &at->second;
	return nullptr;
}

// By index the administrator says that he knows what the driver counts by.
static const core::ResourceSettings *counted_by_driver(const core::Settings &settings)
{
	for (const auto &cluster : settings.clusters)
		for (const auto &r : cluster.resources)
			if (!r.device_class.empty() && r.gres == "gpu" && r.index.empty())
				return &r;
	return nullptr;
}

void check_gres_conf(const core::Settings &settings, const SlurmConf &conf, Findings &out)
{
	const core::ResourceSettings *gpus = counted_by_driver(settings);
	const std::string path = path_beside(conf);
	if (!gpus || ::access(path.c_str(), F_OK) != 0)
		return;
	const auto gres_conf = SlurmConf::read(path); // of the same form
	if (!gres_conf)
		return out.warning("gres.conf", gres_conf.error().message + "; whether Slurm counts GPUs as their driver does is not known");
	if (const ConfValue *found = find_autodetect(*gres_conf))
		out.warning("gres.conf", "AutoDetect=" + one_line(found->value, 32) + " (" + found->place() +
						 ") has Slurm count GPUs by PCI address, and the driver of deviceClass " + one_line(gpus->device_class, 128) +
						 " may count them by minor number: where these differ a job and a pod get one GPU; have File= lines in its place, "
						 "which slurm-k8s gres --write makes, or name the driver's attribute that goes by PCI address by index in slurm-k8s.yaml");
}

// The nodes that the slurmds of this host may be.
static std::set<std::string> nodes_of(const std::string &host, const SlurmConf &conf)
{
	std::set<std::string> out{host};
	for (const ConfLine &line : conf.nodes())
		if (const auto at = line.find("nodehostname"); at != line.end() && at->second.value == host)
			out.merge(expand_nodes(line.at("nodename").value, max_node_range).value_or(std::set<std::string>()));
	return out;
}

// Those of the list, /dev/nvidia[0-3], that are not there, in their order; as far as it is such a list.
static std::vector<std::string> missing_of(const std::string &files)
{
	std::vector<std::string> out;
	each_node_range(files, [&](const NodeRange &range) {
		for (std::size_t i = 0; i < std::min(range.size(), core::max_gres_devices); i++)
			if (const std::string file = range.name(range.low + i); ::access(file.c_str(), F_OK) != 0)
				out.push_back(file);
		return out.size() < core::max_gres_devices;
	});
	return out;
}

// Empty: all are there.
static std::string trouble_with(const ConfValue &files)
{
	const auto missing = missing_of(files.value);
	if (missing.empty())
		return "";
	const bool more = missing.size() > 1;
	return one_line(missing[0], 128) + (more ? " and " + std::to_string(missing.size() - 1) + " more" : "") + " (File=, " + files.place() + ") " +
	       (more ? "are" : "is") +
	       " not there: a slurmd that starts, or is reconfigured, waits 20 seconds for each and ends, and the node is DOWN; find out why the "
	       "device has no file, or take it from Gres= in slurm.conf and from gres.conf, then restart slurmctld, and slurmd after it";
}

void check_gres_files(const SlurmConf &conf, const std::string &host, Findings &out)
{
	const std::string path = path_beside(conf);
	if (::access(path.c_str(), F_OK) != 0)
		return;
	const auto gres_conf = SlurmConf::read(path);
	if (!gres_conf)
		return out.problem("gres.conf", gres_conf.error().message + "; slurmd does not start with such a file");
	std::vector<const ConfValue *> files{gres_conf->find("File")};
	const auto names = nodes_of(host, conf);
	for (const ConfLine &line : gres_conf->nodes())
		if (const auto at = line.find("file"); at != line.end() && std::ranges::any_of(names, [&](const std::string &name) {
			    return has_node(line.at("nodename").value, name);
		    }))
			files.push_back(&at->second);
	for (const ConfValue *file : files)
		if (const std::string trouble = file ? trouble_with(*file) : ""; !trouble.empty())
			out.problem("gres.conf", trouble);
}

} // namespace sk8::tools
