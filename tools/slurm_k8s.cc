// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurm-k8s(1): looks into the engine that runs in slurmctld, and at what it needs.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

#include "lib/base/text.h"
#include "sk8_config.h"
#include "tools/as_user.h"
#include "tools/ask.h"
#include "tools/check.h"
#include "tools/findings.h"
#include "tools/gres.h"
#include "tools/gres_conf.h"
#include "tools/options.h"
#include "tools/run.h"
#include "tools/show.h"
#include "tools/slurm_conf.h"

namespace sk8::tools {

static constexpr Option slurm_conf_option{"--slurm-conf", "FILE", "slurm.conf (default: SLURM_CONF, /etc/slurm/slurm.conf)"};
static constexpr Option json_option{"--json", nullptr, "one JSON object instead of text"};

static int complain(const std::string &what)
{
	std::fprintf(stderr, "slurm-k8s: %s\n", what.c_str());
	return exit_problem;
}

// Asks the slurmctld that slurm.conf names.
static Result<Json> ask_engine(const Arguments &args, const Json &request)
{
	auto conf = SlurmConf::read(args.get("--slurm-conf", SlurmConf::default_path()));
	if (!conf)
		return Error{conf.error().message + "; name slurm.conf by --slurm-conf FILE or SLURM_CONF"};
	return ask(conf->state_dir(), request);
}

// ---- status ----

static int print_status(const Arguments &args, const Json &answer)
{
	if (args.has("--json")) {
		std::printf("%s\n", answer.dump().c_str());
		return exit_ok;
	}
	std::string text;
	if (args.has("--pod"))
		text = show_pod(answer);
	else if (args.has("--node"))
		text = show_node(answer, args.get("--node"));
	else
		text = show_status(answer);
	if (text.empty())
		return complain("no pod " + one_line(args.get("--pod"), 320) +
				" for Slurm is known; is its schedulerName the one in slurm-k8s.yaml?");
	std::fputs(text.c_str(), stdout);
	return exit_ok;
}

static int run_status(const Arguments &args)
{
	static constexpr unsigned pause_seconds = 2;
	Json request = Json::object().set("command", "status");
	for (const char *key : {"node", "pod"})
		if (args.has(std::string("--") + key))
			request.set(key, args.get(std::string("--") + key));
	for (;;) {
		auto answer = ask_engine(args, request);
		if (args.has("--watch") && !args.has("--json") && ::isatty(STDOUT_FILENO))
			std::fputs("\033[H\033[2J", stdout); // home, clear
		int rc = answer ? print_status(args, *answer) : complain(answer.error().message);
		if (std::fflush(stdout) != 0)
			return exit_problem;
		if (!args.has("--watch"))
			return rc;
		::sleep(pause_seconds);
	}
}

// ---- gres ----

static int write_gres(const std::string &path, const Json &answer)
{
	auto former = former_gres_conf(path);
	if (!former)
		return complain(former.error().message);
	auto conf = gres_conf(answer, *former);
	if (!conf)
		return complain("nothing is written: " + conf.error().message);
	auto written = write_gres_conf(path, conf->text);
	if (!written)
		return complain(written.error().message);
	std::printf("%s: %s, lines for %zu nodes\n", path.c_str(), *written ? "written" : "unchanged", conf->nodes);
	if (*written)
		std::printf("gres.conf includes it by the line \"Include %s\", in the place of its own lines for these GRES; then restart slurmd\n",
			    path.c_str());
	return exit_ok;
}

static std::string (*find_gres_format(const std::string &name))(const Json &)
{
	static constexpr std::pair<std::string_view, std::string (*)(const Json &)> formats[] = {
		{"table", show_gres}, {"slurm", gres_lines}, {"devices", show_devices}};
	for (const auto &[known, show] : formats)
		if (known == name)
			return show;
	return nullptr;
}

static int run_gres(const Arguments &args)
{
	const auto show = find_gres_format(args.get("--format", "table"));
	if (!show) {
		std::fprintf(stderr, "slurm-k8s: --format is table, devices or slurm; see slurm-k8s gres --help\n");
		return exit_usage;
	}
	if (args.has("--write") && args.has("--node")) {
		std::fprintf(stderr, "slurm-k8s: --write is of all nodes, without --node; see slurm-k8s gres --help\n");
		return exit_usage;
	}
	Json request = Json::object().set("command", "gres");
	if (args.has("--node"))
		request.set("node", args.get("--node"));
	auto answer = ask_engine(args, request);
	if (!answer)
		return complain(answer.error().message);
	if (args.has("--node") && !gres_nodes(*answer))
		return complain("no shared node " + one_line(args.get("--node"), 64) + " is known; slurm-k8s check says which are");
	if (args.has("--write"))
		return write_gres(args.get("--write"), *answer);
	const std::string text = args.has("--json") ? answer->dump() + "\n" : show(*answer);
	std::fputs(text.c_str(), stdout);
	return exit_ok;
}

// ---- release, debug ----

static int run_release(const Arguments &args)
{
	Json request = Json::object().set("command", "release").set("pod", args.words[0]);
	if (args.has("--node"))
		request.set("node", args.get("--node"));
	request.set("force", Json::boolean(args.has("--force")));
	auto answer = ask_engine(args, request);
	if (!answer)
		return complain(answer.error().message);
	std::printf("%s\n", std::string((*answer)["text"].str()).c_str());
	return exit_ok;
}

static int run_debug(const Arguments &args)
{
	Json request = Json::object().set("command", "debug");
	if (!args.words.empty())
		request.set("level", args.words[0] == "on" ? "debug" : args.words[0]);
	auto answer = ask_engine(args, request);
	if (!answer)
		return complain(answer.error().message);
	std::printf("%s\n", std::string((*answer)["debug"].str()).c_str());
	return exit_ok;
}

// ---- check ----

static std::string config_path(const Arguments &args, const std::string &slurm_conf)
{
	const char *named = std::getenv("SLURM_K8S_CONF");
	return args.get("--config", named && *named ? named : slurm_conf.substr(0, slurm_conf.rfind('/') + 1) + "slurm-k8s.yaml");
}

// As slurmd finds it (sk8_config_path() in lib/slurm/daemon.c).
static std::string node_config_path(const Arguments &args, const std::string &slurm_conf)
{
	const char *named = std::getenv("SLURM_K8S_NODE_CONF");
	if (args.has("--config") || (named && *named))
		return args.get("--config", named ? named : "");
	const std::string file = "slurm-k8s-node.yaml", beside = slurm_conf.substr(0, slurm_conf.rfind('/') + 1) + file;
	const std::string other = "/etc/slurm/" + file; // a slurmd without slurm.conf has what it got in its spool
	return ::access(beside.c_str(), F_OK) != 0 && ::access(other.c_str(), F_OK) == 0 ? other : beside;
}

// Read as slurmctld will.
static std::optional<core::Settings> settings_for(uid_t slurm_uid, const std::string &path, Findings &out)
{
	const AsUser slurm_user(slurm_uid);
	if (!slurm_user.why_not().empty())
		out.warning("user", "files are not read as SlurmUser: " + slurm_user.why_not() + "; that slurmctld can read them is not known");
	return check_settings(path, slurm_uid, out);
}

// As slurm.conf has it: up to the first dot.
static std::string host_name()
{
	char name[256] = "";
	::gethostname(name, sizeof(name) - 1);
	return std::string(split(name, '.').front());
}

static void check_all(const Arguments &args, Findings &out)
{
	const std::string path = args.get("--slurm-conf", SlurmConf::default_path());
	auto conf = SlurmConf::read(path);
	if (!conf)
		return out.problem("slurm.conf", conf.error().message + "; name it by --slurm-conf FILE or SLURM_CONF");
	out.ok("slurm.conf", path);
	::setenv("SLURM_CONF", path.c_str(), 1); // for Slurm's commands
	const Runner run = [](const std::vector<std::string> &argv) { return run_program(argv); };
	if (args.has("--on-node")) {
		check_compute_node(*conf, run, out);
		check_gres_files(*conf, host_name(), out);
		return check_agent(*conf, node_config_path(args, path), "/sys/fs/cgroup", out);
	}
	SlurmSide side;
	check_slurm(*conf, run, side, out);
	if (::geteuid() != 0 && ::geteuid() != side.slurm_uid)
		out.warning("user", "run this as root or SlurmUser, others cannot read all that slurmctld reads");
	const auto settings = settings_for(side.slurm_uid, config_path(args, path), out);
	if (!settings)
		return;
	check_mapping(*settings, *conf, run, out);
	check_sharing(*settings, *conf, out);
	check_accounts(*settings, *conf, out);
	check_tokens(*settings, *conf, out);
	check_gres_conf(*settings, *conf, out);
	const AsUser slurm_user(side.slurm_uid); // credentials
	SharedNames shared;
	for (const auto &cluster : settings->clusters)
		check_cluster(cluster, side, shared, out);
	if (!shared.unknown)
		check_token_nodes(*settings, *conf, shared.nodes, out);
}

static int run_check(const Arguments &args)
{
	Findings found;
	check_all(args, found);
	const std::string text = args.has("--json") ? found.json().dump() + "\n" : found.text();
	std::fputs(text.c_str(), stdout);
	return found.any_problem() ? exit_problem : exit_ok;
}

// ---- commands ----

static const std::vector<Command> &commands()
{
	static const auto *table = new std::vector<Command>{
		{"status", "", 0, 0, "shows what the engine in slurmctld does and knows",
		 "Shows the state of the engine in slurmctld, its connections to Kubernetes, pods and\n"
		 "jobs by state, what is masked, and the last errors. root and SlurmUser only.",
		 {{"--node", "NODE", "which pods hold what on this node, and why"},
		  {"--pod", "POD", "one pod, as NAMESPACE/NAME or uid: its states, job, what it waits for"},
		  json_option,
		  {"--watch", nullptr, "again every 2 seconds, until Ctrl-C"},
		  slurm_conf_option},
		 run_status},
		{"gres", "", 0, 0, "shows which GRES nodes should have, by what Kubernetes knows",
		 "Shows for each shared node which devices its kubelet has (status.allocatable), which\n"
		 "GRES of Slurm that makes, what Slurm has, and what is masked because it is gone or not\n"
		 "well. Changes nothing but the file of --write. root and SlurmUser only.",
		 {{"--node", "NODE", "only this one"},
		  {"--format", "FORMAT", "table; devices: those that DRA drivers tell of; slurm: the lines for slurm.conf and gres.conf"},
		  {"--write", "FILE", "writes a file that gres.conf includes"},
		  json_option,
		  slurm_conf_option},
		 run_gres},
		{"check", "", 0, 0, "finds mistakes before slurmctld is restarted",
		 "Looks at slurm.conf, slurm-k8s.yaml, files, plugins, users and accounts, and asks\n"
		 "Kubernetes with the engine's credentials: connection, rights, clock, nodes.\n"
		 "Changes nothing. One sentence for each finding; exit code 1 if one is a problem.",
		 {{"--config", "FILE", "slurm-k8s.yaml (default: SLURM_K8S_CONF, else beside slurm.conf); of a node slurm-k8s-node.yaml"},
		  {"--on-node", nullptr, "this is a compute or login node: only PluginDir, which Slurm needs there, too, devices' files, and what slurmd's agent reads"},
		  slurm_conf_option,
		  json_option},
		 run_check},
		{"release", "NAMESPACE/NAME|UID", 1, 1, "frees what a pod holds, when nobody can prove it gone",
		 "Says to Slurm that no process of this pod is left: its mask goes, its job ends, its\n"
		 "finalizer is taken off. For pods that are lost and for nodes that do not come back.\n"
		 "If a process of it still runs, its cores will be given to another job as well.",
		 {{"--node", "NODE", "only if it holds something there"},
		  {"--force", nullptr, "also if Kubernetes says that the pod may run"},
		  slurm_conf_option},
		 run_release},
		{"debug", "on|off|verbose|debug", 0, 1, "sets or shows our own debug flag",
		 "Our lines up to this level go to slurmctld's log, whatever SlurmctldDebug is; on is\n"
		 "debug. Lasts until slurmctld ends. Without an argument it shows what is set.",
		 {slurm_conf_option},
		 run_debug},
	};
	return *table;
}

static std::string help()
{
	std::string out = "usage: slurm-k8s COMMAND [OPTION...]\n\n"
			  "Looks into slurm-k8s, which lets Slurm schedule Kubernetes pods.\n\n";
	for (const Command &c : commands())
		out += strprintf("  %-10s %s\n", c.name, c.summary);
	return out + "\n  --help     this text; after a command: more about it\n"
		     "  --version  the version\n\n"
		     "Exit code: 0 all is well, 1 a problem was found, 2 wrong usage. See slurm-k8s(1).\n";
}

static int usage(const std::string &what)
{
	std::fprintf(stderr, "slurm-k8s: %s; see slurm-k8s --help\n", what.c_str());
	return exit_usage;
}

static int run(const std::vector<std::string> &argv)
{
	if (argv.empty())
		return usage("which command?");
	if (argv[0] == "--help" || argv[0] == "-h" || argv[0] == "help") {
		std::fputs(help().c_str(), stdout);
		return exit_ok;
	}
	if (argv[0] == "--version") {
		std::puts("slurm-k8s " PACKAGE_VERSION);
		return exit_ok;
	}
	for (const Command &c : commands()) {
		if (argv[0] != c.name)
			continue;
		const std::vector<std::string> rest(argv.begin() + 1, argv.end());
		for (const auto &word : rest)
			if (word == "--help" || word == "-h") {
				std::fputs(help_of(c).c_str(), stdout);
				return exit_ok;
			}
		auto args = parse_arguments(c, rest);
		return args ? c.run(*args) : usage(args.error().message);
	}
	return usage("there is no command " + one_line(argv[0], 32));
}

} // namespace sk8::tools

int main(int argc, char **argv)
{
	try {
		const int rc = sk8::tools::run({argv + 1, argv + argc});
		return std::fflush(stdout) || std::ferror(stdout) ? sk8::tools::exit_problem : rc;
	} catch (const std::exception &e) {
		std::fprintf(stderr, "slurm-k8s: %s\n", e.what());
		return sk8::tools::exit_problem;
	}
}
