// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/options.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace kubesim {
namespace {

struct Row {
	const char *name, *value, *help; // value nullptr: a switch
	std::function<bool(Options &, const std::string &)> take;
};

bool take_listen(Options &o, const std::string &v)
{
	std::size_t colon = v.rfind(':');
	char *end = nullptr;
	long port = colon == v.npos ? -1 : std::strtol(v.c_str() + colon + 1, &end, 10);
	if (port < 0 || port > 65535 || *end)
		return false;
	o.address = v.substr(0, colon);
	o.port = static_cast<int>(port);
	return true;
}

std::vector<std::string> split(const std::string &list)
{
	std::vector<std::string> out;
	for (std::size_t from = 0; from <= list.size();) {
		std::size_t to = std::min(list.find(',', from), list.size());
		if (to > from)
			out.push_back(list.substr(from, to - from));
		from = to + 1;
	}
	return out;
}

auto text(std::string Options::*field)
{
	return [field](Options &o, const std::string &v) {
		o.*field = v;
		return true;
	};
}

auto number(long Options::*field)
{
	return [field](Options &o, const std::string &v) {
		char *end;
		o.*field = std::strtol(v.c_str(), &end, 10);
		return !v.empty() && !*end && o.*field >= 0;
	};
}

const std::vector<Row> &table()
{
	static const auto &rows = *new std::vector<Row>{
		{"--listen", "ADDR:PORT", "where to listen; port 0 takes a free one (127.0.0.1:0)", take_listen},
		{"--port-file", "FILE", "write the port there once requests are served", text(&Options::port_file)},
		{"--tls-cert", "FILE", "server certificate, PEM", text(&Options::certificate)},
		{"--tls-key", "FILE", "its key, PEM", text(&Options::key)},
		{"--client-ca", "FILE", "CA of client certificates: CN is the user, each O a group",
		 text(&Options::client_ca)},
		{"--token-file", "FILE", "bearer tokens, lines of token,user,uid,\"group,group\"",
		 text(&Options::token_file)},
		{"--data", "FILE", "keep all objects there and continue from it after a restart or kill",
		 text(&Options::data)},
		{"--audit-log", "FILE", "one JSON line per finished request", text(&Options::audit_log)},
		{"--rbac", "FILE", "enforce RBAC (deny by default), with these roles and bindings (YAML)",
		 text(&Options::rbac)},
		{"--watch-window", "N", "changes remembered per resource; older watches get 410 (20000)",
		 number(&Options::watch_window)},
		{"--bookmark-seconds", "S", "how often watches get a bookmark (10)",
		 [](Options &o, const std::string &v) { return (o.bookmark_seconds = std::atof(v.c_str())) > 0; }},
		{"--sim-kubelet", "NODE,...", "nodes that really run their pods' commands",
		 [](Options &o, const std::string &v) {
			 for (auto &n : split(v))
				 o.sim_kubelets.push_back(n);
			 return true;
		 }},
		{"--fake-nodes", "N", "nodes whose pods are only timers", number(&Options::fake_nodes)},
		{"--fake-node-prefix", "NAME", "names of those: NAME1, NAME2 ... (f)", text(&Options::fake_prefix)},
		{"--node-cpus", "QUANTITY", "allocatable of each node (8)", text(&Options::node_cpus)},
		{"--node-memory", "QUANTITY", "allocatable of each node (16Gi)", text(&Options::node_memory)},
		{"--node-pods", "N", "allocatable of each node (110)", number(&Options::node_pods)},
		{"--node-label", "KEY=VALUE", "on each node; may be given several times",
		 [](Options &o, const std::string &v) {
			 o.node_labels.push_back(v);
			 return true;
		 }},
		{"--runtime-dir", "DIR", "state and output of containers (needed by --sim-kubelet)",
		 text(&Options::runtime_dir)},
		{"--runtime-log", "FILE", "one JSON line per start and stop of a container",
		 text(&Options::runtime_log)},
		{"--accept-and-hang", nullptr, "accept connections and never answer",
		 [](Options &o, const std::string &) { return o.accept_and_hang = true; }},
	};
	return rows;
}

void print_help()
{
	std::puts("Usage: kubesim --tls-cert FILE --tls-key FILE --client-ca FILE [OPTION]...\n"
		  "A small Kubernetes API server for tests and demos, with nodes that run pods.\n");
	for (const auto &row : table())
		std::printf("  %-18s %-10s %s\n", row.name, row.value ? row.value : "", row.help);
	std::puts("\nFaults: POST rules to /kubesim/faults as a member of system:masters, for example\n"
		  "  {\"match\":{\"verb\":\"create\",\"resource\":\"pods/binding\"},\"count\":1,\"action\":\"status\","
		  "\"code\":503,\"retryAfter\":1}\n"
		  "  match: verb, resource, path, user (regular expressions, whole text); count: default all;\n"
		  "  action: status, hang, delay (delayMs, also with the others), reset, truncate (bytes), deny,\n"
		  "    answer (code, type, body, repeated until it has so many bytes),\n"
		  "    clock (seconds: the answer's Date is so far ahead),\n"
		  "  and at once on open watches: expire-watches, and for the next count events drop-events,\n"
		  "    duplicate-events, reorder-events (each is sent after the one that follows).\n"
		  "  GET lists the rules with their hits, DELETE removes all.\n\n"
		  "Pods on fake nodes run until the annotation kubesim.slurm-k8s.io/run-seconds is over and end with\n"
		  "kubesim.slurm-k8s.io/exit-code; kubesim.slurm-k8s.io/terminate-as: OOMKilled works on all nodes.");
}

std::string check(const Options &o)
{
	if (o.accept_and_hang)
		return {};
	if (o.certificate.empty() || o.key.empty())
		return "--tls-cert and --tls-key are needed";
	if (o.client_ca.empty() && o.token_file.empty())
		return "give --client-ca or --token-file, else nobody can log in";
	if (!o.sim_kubelets.empty() && o.runtime_dir.empty())
		return "--sim-kubelet needs --runtime-dir";
	return {};
}

} // namespace

std::optional<Options> parse_options(int argc, char **argv, int *exit_code)
{
	Options o;
	auto fail = [&](const std::string &why) {
		std::fprintf(stderr, "kubesim: %s; see kubesim --help\n", why.c_str());
		*exit_code = 2;
		return std::nullopt;
	};
	for (int i = 1; i < argc; i++) {
		std::string name = argv[i], value;
		if (name == "--help" || name == "-h") {
			print_help();
			*exit_code = 0;
			return std::nullopt;
		}
		bool has_value = false;
		if (std::size_t eq = name.find('='); eq != name.npos) {
			value = name.substr(eq + 1);
			name.resize(eq);
			has_value = true;
		}
		const Row *row = nullptr;
		for (const auto &r : table())
			if (name == r.name)
				row = &r;
		if (!row)
			return fail("unknown option " + name);
		if (row->value && !has_value) {
			if (++i == argc)
				return fail(name + " needs " + row->value);
			value = argv[i];
		}
		if (!row->take(o, value))
			return fail(name + ": " + value + " is no " + (row->value ? row->value : "value"));
	}
	if (std::string problem = check(o); !problem.empty())
		return fail(problem);
	return o;
}

} // namespace kubesim
