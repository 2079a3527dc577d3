// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Does gres.conf count devices that pods claim as their driver does?
#include <algorithm>
#include <unistd.h>

#include "lib/base/text.h"
#include "tools/check.h"

namespace sk8::tools {

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
	const std::string path = conf.path().substr(0, conf.path().rfind('/') + 1) + "gres.conf";
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

} // namespace sk8::tools
