// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// PluginDir and plugins: what slurmctld loads, and what Slurm needs on all other hosts
// that read the same slurm.conf.
#include "tools/check.h"

#include <algorithm>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/sk8_abi.h"

namespace sk8::tools {

// Our marks are in what is loaded, and that stands before the debugging information, of which there may be much more.
static constexpr std::size_t max_plugin = 16u << 20;

namespace {

// What was written into a file of ours when it was built; empty: it has none.
struct Stamp {
	std::string border, slurm; // "sk8_border_1", "22.05.8"
};

// A file that Slurm loads, read once.
struct Plugin {
	bool is_ours = false;
	Stamp stamp;
};

} // namespace

static Stamp stamp_in(const std::string &content)
{
	static constexpr std::string_view begin = SK8_STAMP_BEGIN;
	const std::size_t at = content.find(begin);
	if (at == std::string::npos)
		return {};
	// a text of C, which a damaged file may lack the end of
	const std::string text = one_line(std::string_view(content.c_str() + at + begin.size()), 64);
	const std::size_t space = std::min(text.find(' '), text.size());
	return {text.substr(0, space), text.substr(std::min(space + 1, text.size()))};
}

static Plugin read_plugin(const std::string &path)
{
	const auto content = read_beginning(path, max_plugin);
	if (!content)
		return {};
	// our select plugin opens this file, Slurm's own does not know it
	return {content->find("sk8_slurmctld.so") != std::string::npos, stamp_in(*content)};
}

static bool exists(const std::string &path)
{
	struct stat status;
	return ::stat(path.c_str(), &status) == 0;
}

namespace {

// Where the two select plugins are, in the order in which Slurm looks for them.
struct PluginFolders {
	std::string ours, stock; // the first of each; empty: none
	Stamp stamp;		 // of the plugin in ours
	bool ours_first = false; // ... of the two
	std::vector<std::string> absent;
};

} // namespace

static PluginFolders look_at(const std::string &plugin_dir)
{
	PluginFolders out;
	for (auto view : split(plugin_dir, ':')) {
		const std::string folder(view), plugin = folder + "/select_cons_tres.so";
		if (!exists(folder))
			out.absent.push_back(folder);
		if (!exists(plugin))
			continue;
		const Plugin read = read_plugin(plugin);
		if (read.is_ours && out.ours.empty()) {
			out.ours_first = out.stock.empty();
			out.stamp = read.stamp;
		}
		std::string &first = read.is_ours ? out.ours : out.stock;
		if (first.empty())
			first = folder;
	}
	return out;
}

// The sentences that hold on each host. Nothing if there is no PluginDir.
static std::optional<PluginFolders> check_folders(const SlurmConf &conf, const std::string &about, Findings &out)
{
	const ConfValue *dir = conf.find("PluginDir");
	if (!dir) {
		out.problem(about, conf.path() + " has no PluginDir; add PluginDir=OURS:STOCK, with the folder of slurm-k8s's "
						 "plugins before that of Slurm's own");
		return std::nullopt;
	}
	PluginFolders found = look_at(dir->value);
	for (const auto &folder : found.absent)
		out.problem(about, dir->place() + ": there is no folder " + folder +
					   ", and Slurm refuses such a slurm.conf on this host; run: mkdir -p " + folder);
	if (found.stock.empty())
		out.problem(about, dir->place() + ": no folder of it has Slurm's own select_cons_tres.so" +
					   (found.ours.empty() ? "" : ", which ours needs") + "; add that folder at the end");
	if (!found.ours.empty() && !found.stock.empty() && !found.ours_first)
		out.problem(about, dir->place() + ": " + found.ours + " must stand before " + found.stock +
					   ", else Slurm's own plugin is loaded and slurm-k8s is not");
	return found;
}

// What the select plugin opens in slurmctld: beside its folder, or in it. All of one version, and for one Slurm?
static void check_engine(const PluginFolders &found, Findings &out)
{
	const std::string &ours = found.ours;
	const auto find = [&](const std::string &name) {
		const std::string above = ours + "/../" + name;
		return exists(above) ? above : ours + "/" + name;
	};
	const std::string module = find("sk8_slurmctld.so"), library = find("libsk8core.so.0");
	for (const auto &path : {module, library})
		if (!exists(path))
			return out.problem("PluginDir", "there is no " + path + "; install slurm-k8s again, all of it in one version");
	const Stamp built = read_plugin(module).stamp;
	if (built.border != read_plugin(library).stamp.border)
		out.problem("PluginDir", module + " and " + library + " are of two versions of slurm-k8s, and slurmctld would load "
								      "neither; install it again, all of it in one version");
	else if (!found.stamp.slurm.empty() && built.slurm != found.stamp.slurm)
		out.problem("PluginDir", module + " was built for Slurm " + built.slurm + ", the plugins in " + ours + " for " +
						 found.stamp.slurm + "; install slurm-k8s again, all of it for one Slurm");
}

static void check_plugin_dir(const SlurmConf &conf, const std::string &about, const PluginFolders &found, Findings &out)
{
	if (found.ours.empty())
		return out.problem(about, conf.find(about)->place() +
						  ": no folder of it has slurm-k8s's select_cons_tres.so; put that folder first");
	if (!exists(found.ours + "/job_submit_k8s.so"))
		out.problem(about, found.ours + " has no job_submit_k8s.so; install slurm-k8s again");
	check_engine(found, out);
	if (found.ours_first && !found.stock.empty())
		out.ok(about, found.ours + " before " + found.stock +
				      "; whether other hosts have these folders, slurm-k8s check --on-node tells there");
}

// command: one of Slurm's that says its version, "slurm-wlm 22.05.8". found: has ours.
static void check_version(const Runner &run, const std::string &command, const PluginFolders &found, Findings &out)
{
	const std::string &ours = found.ours, &built_for = found.stamp.slurm;
	auto text = run({command, "-V"});
	if (!text)
		return out.warning("Slurm", "which version runs here is not known: " + text.error().message);
	const std::string_view line = trim(*text);
	const std::string version(line.substr(line.rfind(' ') + 1));
	if (version != built_for)
		out.problem("Slurm", command + " is version " + version + ", the plugins in " + ours + " were built for " +
					     (built_for.empty() ? "another" : built_for) + "; " + command +
					     " would refuse them: install slurm-k8s for " + version);
	else
		out.ok("Slurm", command + " " + version + ", as the plugins in " + ours + " were built for");
}

void check_plugins(const SlurmConf &conf, const Runner &run, Findings &out)
{
	const ConfValue *select = conf.find("SelectType");
	if (!select || select->value != "select/cons_tres")
		out.problem("SelectType", (select ? select->place() + ": SelectType is " + select->value
						  : conf.path() + " has no SelectType") +
						  "; set SelectType=select/cons_tres");
	else
		out.ok("SelectType", select->value);
	static const std::string about = "PluginDir";
	if (const auto found = check_folders(conf, about, out)) {
		check_plugin_dir(conf, about, *found, out);
		if (!found->ours.empty())
			check_version(run, "slurmctld", *found, out);
	}

	const auto list = split(conf.get("JobSubmitPlugins", ""), ',');
	const bool there = std::any_of(list.begin(), list.end(), [](auto name) {
		return trim(name) == "k8s" || trim(name) == "job_submit/k8s";
	});
	if (!there)
		out.problem("JobSubmitPlugins", "k8s is missing, so that users can submit jobs that pose as a pod's; add "
						"JobSubmitPlugins=k8s to slurm.conf, at the end of the list");
	else
		out.ok("JobSubmitPlugins", conf.get("JobSubmitPlugins", ""));
}

// slurmd and the commands load the select plugin, too: the first that is found.
void check_compute_node(const SlurmConf &conf, const Runner &run, Findings &out)
{
	const std::string about = "PluginDir";
	const auto found = check_folders(conf, about, out);
	if (!found || !found->absent.empty() || found->stock.empty())
		return;
	if (!found->ours.empty())
		check_version(run, "scontrol", *found, out);
	if (has_prep_plugin(conf) && !exists(found->ours + "/prep_k8s.so"))
		out.problem("PrEpPlugins", "no folder of PluginDir has prep_k8s.so, and slurmd does not start without it; install "
					   "slurm-k8s-node on this host");
	if (found->ours.empty())
		out.ok(about, "all folders are there, and Slurm's own plugins are in " + found->stock);
	else if (found->ours_first)
		out.ok(about, found->ours + " before " + found->stock);
}

} // namespace sk8::tools
