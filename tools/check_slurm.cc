// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/check.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <sys/stat.h>

#include "lib/base/text.h"
#include "lib/core/identity.h"
#include "lib/core/ledger_file.h"
#include "tools/as_user.h"
#include "tools/gres.h"

namespace sk8::tools {

// ---- files ----

// As slurmctld will: without the list it knows the ledgers of configured clusters only (Runtime::load_ledgers()).
static void check_ledgers(const std::string &dir, std::uint32_t uid, Findings &out)
{
	const AsUser slurm_user(uid);
	std::set<std::string> clusters;
	const auto listed = core::add_saved_clusters(dir, clusters);
	for (const auto &cluster : clusters) {
		const std::string path = core::ledger_path(dir, cluster);
		if (const auto saved = core::load_ledger(path, uid); saved)
			out.ok("ledger", path.substr(dir.size() + 1) + ": " +
						 std::to_string(saved->ledger.holds.size()) + " pods");
		else
			out.problem("ledger", saved.error().message);
	}
	if (!listed)
		out.warning("ledger", listed.error().message + "; ledgers are not looked at, and a slurmctld that cannot list it keeps jobs off "
				      "nodes until Kubernetes has told of their pods; run this as root or SlurmUser, to whom the folder must belong "
				      "with mode 0700");
}

static void check_state_dir(const SlurmConf &conf, const SlurmSide &side, Findings &out)
{
	static const std::string about = "StateSaveLocation";
	const std::string dir = conf.state_dir();
	struct stat status;
	if (::stat(dir.c_str(), &status) != 0)
		return out.problem(about, strprintf("cannot look at %s: %m; make it, owned by %s", dir.c_str(),
						    conf.slurm_user().c_str()));
	const bool owner_can = (status.st_uid == side.slurm_uid && (status.st_mode & 0300) == 0300) || side.slurm_uid == 0;
	if (!S_ISDIR(status.st_mode) || !owner_can)
		return out.problem(about, dir + " cannot be written by SlurmUser; run: chown " + conf.slurm_user() + " " + dir);
	if (status.st_mode & 0002)
		return out.problem(about, dir + " can be written by everybody; run: chmod o-w " + dir);
	out.ok(about, dir);
	check_ledgers(dir, side.slurm_uid, out);
}

// ---- nodes ----

static std::uint64_t number(const ConfLine &line, const char *key)
{
	auto it = line.find(key);
	return it == line.end() ? 0 : static_cast<std::uint64_t>(parse_integer(it->second.value, 0).value_or(0));
}

// As node_record_t has them (Slurm 22.05, read_config.c and node_conf.c): CPUs alone are as many cores of one thread.
static CheckedNode node_of(const ConfLine &line)
{
	auto at_least_one = [&](const char *key) { return std::max<std::uint64_t>(number(line, key), 1); };
	const std::uint64_t boards = at_least_one("boards");
	const std::uint64_t sockets = number(line, "sockets") ? number(line, "sockets") : boards * at_least_one("socketsperboard");
	CheckedNode out;
	out.threads_per_core = at_least_one("threadspercore");
	out.cores = sockets * at_least_one("corespersocket");
	const std::uint64_t cpus = std::max(number(line, "cpus"), number(line, "cputot")); // the latter of scontrol
	if (cpus > out.cores * out.threads_per_core)
		out.cores = cpus / out.threads_per_core;
	out.spec_cores = number(line, "corespeccount");
	out.memory_mb = number(line, "realmemory");
	out.spec_mb = number(line, "memspeclimit");
	if (auto gres = line.find("gres"); gres != line.end() && gres->second.value != "(null)")
		out.gres = parse_gres(gres->second.value);
	return out;
}

// "NodeName=n1 ... CoresPerSocket=4 ... Sockets=2 ... RealMemory=16000": one line per node.
static void read_shown(const std::string &text, std::map<std::string, CheckedNode> &nodes)
{
	for (auto line : split(text, '\n')) {
		ConfLine words;
		for (auto word : split(line, ' ')) {
			const auto equals = word.find('=');
			if (equals != word.npos)
				words.try_emplace(conf_key(word.substr(0, equals)), ConfValue{std::string(word.substr(equals + 1)), {}, 0});
		}
		if (auto name = words.find("nodename"); name != words.end())
			nodes[name->second.value] = node_of(words);
	}
}

// What runs knows dynamic nodes and what slurmd has registered; slurm.conf is enough
// before the first start.
static void read_nodes(const SlurmConf &conf, const Runner &run, SlurmSide &side, Findings &out)
{
	if (auto shown = run({"scontrol", "-o", "show", "nodes"})) {
		read_shown(*shown, side.nodes);
		side.nodes_known = true;
		return out.ok("nodes", "slurmctld has " + std::to_string(side.nodes.size()));
	}
	for (const ConfLine &line : conf.nodes()) {
		auto names = run({"scontrol", "show", "hostnames", line.at("nodename").value});
		if (!names)
			return out.warning("nodes", "slurmctld does not answer, and " + names.error().message +
							    ": nodes are not compared");
		for (auto name : split(*names, '\n'))
			if (!name.empty())
				side.nodes[std::string(name)] = node_of(line);
	}
	side.nodes_known = true;
	out.ok("nodes", "slurm.conf has " + std::to_string(side.nodes.size()) + " (slurmctld does not answer)");
}

// Gang scheduling suspends jobs for others.
static void check_preemption(const SlurmConf &conf, Findings &out)
{
	const ConfValue *mode = conf.find("PreemptMode");
	if (mode && strcasestr(mode->value.c_str(), "gang"))
		out.warning("PreemptMode", mode->place() + ": a pod goes on when its job is suspended, so nobody gets its cores this way; "
							   "give partitions or QOS of pods PreemptMode=CANCEL");
}

// How many jobs get a core at the same time, whether they ask for that or not (read_config.c, _parse_partitions()). YES is for
// those that say --oversubscribe, and they get no node where a job that did not, as those of pods, has a core.
static std::int64_t jobs_on_a_core(const std::string &oversubscribe)
{
	static constexpr std::string_view force = "force";
	static constexpr std::int64_t without_a_number = 4;
	const std::string value = conf_key(oversubscribe);
	if (value == force)
		return without_a_number;
	if (!value.starts_with(force) || value[force.size()] != ':')
		return 1;
	return parse_integer(value.substr(force.size() + 1), 1, UINT16_MAX).value_or(1);
}

// A placeholder job has its cores as any job has.
static void check_oversubscription(const SlurmConf &conf, Findings &out)
{
	for (const ConfLine &line : conf.partitions()) {
		auto at = line.find("oversubscribe");
		at = at == line.end() ? line.find("shared") : at; // its former name
		const std::int64_t jobs = at == line.end() ? 1 : jobs_on_a_core(at->second.value);
		if (jobs > 1)
			out.warning("OverSubscribe", at->second.place() + ": " + at->second.value + " of partition " + line.at("partitionname").value +
							     " gives the cores of a pod to up to " + std::to_string(jobs) +
							     " jobs at the same time; set OverSubscribe=NO if nodes of it are shared with Kubernetes");
	}
}

void check_slurm(const SlurmConf &conf, const Runner &run, SlurmSide &side, Findings &out)
{
	auto user = core::lookup_user(conf.slurm_user());
	if (!user)
		return out.problem("SlurmUser", "there is no user " + conf.slurm_user() + " on this host; is this the controller?");
	side.slurm_uid = user->uid;
	check_plugins(conf, run, out);
	check_preemption(conf, out);
	check_oversubscription(conf, out);
	check_state_dir(conf, side, out);
	read_nodes(conf, run, side, out);
}

} // namespace sk8::tools
