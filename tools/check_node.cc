// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s check --on-node: what the agent in slurmd reads on its node, as the user that slurmd runs as.
#include "tools/check.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/agent/cpu_manager.h"
#include "lib/agent/kubelet_files.h"
#include "lib/agent/pod_cgroups.h"
#include "lib/agent/settings.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/core/identity.h"
#include "lib/kube/credentials.h"
#include "tools/as_user.h"

namespace sk8::tools {

static const std::string about = "agent";

namespace {

// A folder of the kubelet's, and the file in it that the agent reads, which need not be there.
struct Place {
	const char *key;
	std::string agent::AgentSettings::*folder;
	const char *file;
	const char *cost;
};

constexpr Place places[] = {
	{"kubeletRootDir", &agent::AgentSettings::kubelet_root_dir, "cpu_manager_state",
	 "where the kubelet's CPU manager pins pods, slurmctld is not told their cores, and the agent pins them, too"},
	{"devicePluginDir", &agent::AgentSettings::device_plugin_dir, "kubelet_internal_checkpoint",
	 "slurmctld is not told which pods have which devices, and jobs may be given theirs"},
};

} // namespace

// By the effective user.
static bool may(const std::string &path, int mode)
{
	return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

// What is wrong with it; empty: nothing.
static std::string trouble_of(const std::string &folder, const std::string &file)
{
	struct stat status;
	if (::stat(folder.c_str(), &status) != 0)
		return folder + ": " + std::strerror(errno);
	if (!S_ISDIR(status.st_mode))
		return folder + " is no folder";
	if (!may(folder, X_OK))
		return folder + ": " + std::strerror(errno);
	const std::string path = folder + "/" + file;
	return may(path, R_OK) || errno == ENOENT ? "" : path + ": " + std::strerror(errno);
}

// As the agent reads it: with the files that it names, which belong to root.
static Result<std::string> credentials_of(const agent::AgentSettings &settings)
{
	const auto access = kube::load_kubeconfig(settings.kubeconfig, settings.context, 0);
	if (!access)
		return access.error();
	const SystemClock clock;
	const auto read = kube::Credentials(*access, clock, Millis(0)).get();
	return read ? Result<std::string>(access->server) : read.error();
}

static void check_paths(const agent::AgentSettings &settings, const std::string &path, const std::string &user,
			const std::string &cgroup_mount, Findings &out)
{
	const std::string set_it = ", which is to be as the kubelet has it (" + path + ")";
	if (const auto server = credentials_of(settings))
		out.ok(about, settings.kubeconfig + ", for " + *server);
	else
		out.problem(about, "kubeconfig: " + server.error().message + "; without it the agent knows no pod: none is put on its cores, no step "
				   "gets into a container, and what lost pods hold stays masked" + set_it);
	for (const Place &place : places)
		if (const std::string trouble = trouble_of(settings.*place.folder, place.file); !trouble.empty())
			out.warning(about, std::string(place.key) + ": " + trouble + " (as user " + user + "); " + place.cost + set_it);
	if (agent::ReplacedFile file(settings.kubelet_root_dir + "/cpu_manager_state"); agent::parse_cpu_manager(file.news().value_or("")).pins())
		out.warning(about, "the kubelet's CPU manager has the policy static: it pins pods itself, those for Slurm, too, which may be on other "
				   "cores than Slurm counts, and may share one with a job; set its cpuManagerPolicy to none, and the agent keeps "
				   "each pod on the cores that Slurm gave it");
	if (const auto found = agent::PodCgroups(cgroup_mount, settings.cgroup_root).processes(); !found)
		out.warning(about, "cgroupRoot: " + found.error().message + "; no pod is put on its cores, no step gets into a container, and what lost "
				   "pods hold stays masked, unless a kubelet has still to start here" + set_it);
}

void check_agent(const SlurmConf &conf, const std::string &path, const std::string &cgroup_mount, Findings &out)
{
	struct stat status;
	if (::stat(path.c_str(), &status) != 0 && errno == ENOENT)
		return out.ok(about, "there is no " + path + ", so that slurmd has none on this host");
	const std::string name = conf.get("SlurmdUser", "root");
	const auto user = core::lookup_user(name);
	if (!user)
		return out.problem(about, "there is no user " + name + " on this host, as whom slurmd is to run (SlurmdUser)");
	const AsUser slurmd(user->uid);
	if (::geteuid() != user->uid)
		out.warning(about, "what slurmd can read is not known: " +
				   (slurmd.why_not().empty() ? "run this as root or " + name : slurmd.why_not()));
	const auto settings = agent::load_agent_settings(path, user->uid);
	if (!settings) {
		for (auto line : split(settings.error().message, '\n'))
			out.problem(about, std::string(line) + "; slurmd runs no agent with such a file");
		return;
	}
	out.ok(about, path);
	check_paths(*settings, path, name, cgroup_mount, out);
}

} // namespace sk8::tools
