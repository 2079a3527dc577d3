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

// A file that plugins in this folder open: where they look for it, beside the folder or in it.
static std::string beside(const std::string &folder, const std::string &name)
{
	const std::string above = folder + "/../" + name;
	return exists(above) ? above : folder + "/" + name;
}

static void tell_two_versions(const std::string &one, const std::string &other, const std::string &so, Findings &out)
{
	out.problem("PluginDir", one + " and " + other + " are of two versions of slurm-k8s" + so +
					 "; install it again, all of it in one version");
}

// What slurmctld loads: all of one version, and for one Slurm?
static void check_engine(const PluginFolders &found, Findings &out)
{
	const std::string &ours = found.ours;
	const std::string module = beside(ours, "sk8_slurmctld.so"), library = beside(ours, "libsk8core.so.0");
	for (const auto &path : {module, library})
		if (!exists(path))
			return out.problem("PluginDir", "there is no " + path + "; install slurm-k8s again, all of it in one version");
	const std::string border = read_plugin(library).stamp.border;
	for (const auto &path : {module, ours + "/select_cons_tres.so", ours + "/job_submit_k8s.so", ours + "/prep_k8s.so"}) {
		if (!exists(path))
			continue;
		const Stamp built = read_plugin(path).stamp;
		if (built.border != border) {
			tell_two_versions(path, library, path == module ? ", and slurmctld would load neither" : "", out);
			break; // so is the rest, more likely than not
		}
		if (!found.stamp.slurm.empty() && built.slurm != found.stamp.slurm)
			out.problem("PluginDir", path + " was built for Slurm " + built.slurm + ", " + ours + "/select_cons_tres.so for " +
							 found.stamp.slurm + "; install slurm-k8s again, all of it for one Slurm");
	}
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

// What Slurm's commands say: "slurm-wlm 22.05.8".
static std::string version_in(const std::string &text)
{
	const std::string_view line = trim(text);
	return std::string(line.substr(line.rfind(' ') + 1));
}

// command: one of Slurm's that says its version. found: has ours.
static void check_version(const Runner &run, const std::string &command, const PluginFolders &found, Findings &out)
{
	const std::string &ours = found.ours, &built_for = found.stamp.slurm;
	auto text = run({command, "-V"});
	if (!text)
		return out.warning("Slurm", "which version runs here is not known: " + text.error().message);
	const std::string version = version_in(*text);
	if (version != built_for)
		out.problem("Slurm", command + " is version " + version + ", the plugins in " + ours + " were built for " +
					     (built_for.empty() ? "another" : built_for) + "; " + command +
					     " would refuse them: install slurm-k8s for " + version);
	else
		out.ok("Slurm", command + " " + version + ", as the plugins in " + ours + " were built for");
}

// Left out it is CR_Core_Memory. A partition may have its own.
static void check_memory_is_counted(const SlurmConf &conf, Findings &out)
{
	const auto without = [&](const ConfValue *value, const std::string &of) {
		if (value && conf_key(value->value).find("_memory") == std::string::npos)
			out.problem("SelectTypeParameters", value->place() + ": " + value->value + of + " counts no memory, so that jobs and pods are "
								"given the same; add memory, for example CR_Core_Memory");
	};
	without(conf.find("SelectTypeParameters"), "");
	for (const ConfLine &line : conf.partitions())
		if (const auto own = line.find("selecttypeparameters"); own != line.end())
			without(&own->second, " of a partition");
}

// select_p_node_init() ends slurmctld without one of these. Partitions of their own take no others.
static void check_cores_are_counted(const SlurmConf &conf, Findings &out)
{
	static constexpr std::string_view those[] = {"cr_core", "cr_core_memory", "cr_cpu", "cr_cpu_memory", "cr_socket", "cr_socket_memory"};
	const ConfValue *value = conf.find("SelectTypeParameters");
	const std::string words = value ? conf_key(value->value) : std::string(those[0]);
	if (std::ranges::none_of(split(words, ','), [](auto word) { return std::ranges::find(those, trim(word)) != std::end(those); }))
		out.problem("SelectTypeParameters", value->place() + ": " + value->value + " counts no cores, with which slurmctld does not start "
							"(and cores of pods would be given to several jobs); set CR_Core_Memory");
}

// Slurm calls them in this order, and each sees what those before it have changed.
static void check_job_submit(const std::string &configured, Findings &out)
{
	const auto list = split(configured, ',');
	const auto ours = std::ranges::find_if(list, [](auto name) { return trim(name) == "k8s" || trim(name) == "job_submit/k8s"; });
	if (ours == list.end())
		out.problem("JobSubmitPlugins", "k8s is missing, so that users can submit jobs that pose as a pod's; add "
						"JobSubmitPlugins=k8s to slurm.conf, at the end of the list");
	else if (ours + 1 != list.end())
		out.warning("JobSubmitPlugins", one_line(trim(*(ours + 1)), 64) + " comes after k8s: what it changes of a job is not checked, and tokens "
						"(k8scpu, k8smemory) do not follow it; put k8s at the end of the list");
	else
		out.ok("JobSubmitPlugins", configured);
}

void check_plugins(const SlurmConf &conf, const Runner &run, Findings &out)
{
	check_memory_is_counted(conf, out);
	check_cores_are_counted(conf, out);
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

	check_job_submit(conf.get("JobSubmitPlugins", ""), out);
}

namespace {

// Which Slurm is on a host that is not the controller; empty: not known, or no slurmd there.
struct NodeSlurm {
	std::string commands, slurmd;
};

} // namespace

// The first file of that name in the folders of PluginDir, or empty.
static std::string in_plugin_dir(const SlurmConf &conf, const std::string &name)
{
	const std::string folders = conf.get("PluginDir", "");
	for (auto folder : split(folders, ':'))
		if (const std::string path = std::string(folder) + "/" + name; exists(path))
			return path;
	return "";
}

static void tell_other_slurm(const std::string &path, const Stamp &stamp, const std::string &who, const std::string &version,
			     const std::string &so, Findings &out)
{
	out.problem("Slurm", who + " is version " + version + ", " + path + " was built for " +
				     (stamp.slurm.empty() ? "another" : stamp.slurm) + so + ": install slurm-k8s for " + version);
}

// slurmd does not start without it, or with one for another Slurm. No other program of a compute node loads it.
static void check_prep_on_node(const SlurmConf &conf, const NodeSlurm &slurm, Findings &out)
{
	if (!has_prep_plugin(conf))
		return;
	const std::string path = in_plugin_dir(conf, "prep_k8s.so");
	if (path.empty())
		return out.problem("PrEpPlugins", "no folder of PluginDir has prep_k8s.so, and slurmd does not start without it; install "
						  "slurm-k8s-node on this host");
	const Stamp built = read_plugin(path).stamp;
	if (!slurm.slurmd.empty() && built.slurm != slurm.slurmd)
		tell_other_slurm(path, built, "slurmd", slurm.slurmd, "; slurmd would refuse it and not start", out);
}

// "22.05" of "22.05.8"
static std::string release_of(const std::string &version)
{
	return version.substr(0, version.rfind('.'));
}

// The SPANK plugin, which a release of Slurm takes whatever its last number is, and what it opens in slurmd.
static void check_spank_on_node(const SlurmConf &conf, const NodeSlurm &slurm, Findings &out)
{
	static const std::string about = "SPANK";
	const std::string path = in_plugin_dir(conf, "spank_k8s.so");
	if (path.empty())
		return;
	const Stamp built = read_plugin(path).stamp;
	if (!slurm.commands.empty() && release_of(built.slurm) != release_of(slurm.commands))
		tell_other_slurm(path, built, "scontrol", slurm.commands, "; slurmd, srun and sbatch would refuse it", out);
	if (slurm.slurmd.empty())
		return;
	const std::string folder = path.substr(0, path.rfind('/'));
	const std::string module = beside(folder, "sk8_slurmd.so"), library = beside(folder, "libsk8core.so.0");
	for (const auto &part : {module, library})
		if (!exists(part))
			return out.problem(about, "there is no " + part + ", so that no agent would run on this node; install "
								 "slurm-k8s-spank again");
	const Stamp agent = read_plugin(module).stamp;
	if (agent.border != read_plugin(library).stamp.border)
		tell_two_versions(module, library, ", and slurmd would load neither", out);
	else if (built.border != agent.border)
		tell_two_versions(path, module, "", out);
	else if (agent.slurm != slurm.slurmd)
		tell_other_slurm(module, agent, "slurmd", slurm.slurmd, "; its agent may not run", out);
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
	const auto version = [&](const char *command) {
		const auto text = run({command, "-V"});
		return text ? version_in(*text) : std::string();
	};
	const NodeSlurm slurm{version("scontrol"), version("slurmd")};
	check_prep_on_node(conf, slurm, out);
	check_spank_on_node(conf, slurm, out);
	if (found->ours.empty())
		out.ok(about, "all folders are there, and Slurm's own plugins are in " + found->stock);
	else if (found->ours_first)
		out.ok(about, found->ours + " before " + found->stock);
}

} // namespace sk8::tools
