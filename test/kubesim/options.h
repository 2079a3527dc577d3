// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#ifndef KUBESIM_OPTIONS_H
#define KUBESIM_OPTIONS_H

#include <optional>
#include <string>
#include <vector>

namespace kubesim {

struct Options {
	std::string address = "127.0.0.1";
	int port = 0;
	std::string port_file, certificate, key, client_ca, token_file, data, audit_log, rbac;
	long watch_window = 20000;
	double bookmark_seconds = 10;
	bool accept_and_hang = false;

	std::vector<std::string> sim_kubelets;
	long fake_nodes = 0;
	std::string fake_prefix = "f";
	std::string node_cpus = "8", node_memory = "16Gi";
	long node_pods = 110;
	std::vector<std::string> node_labels; // KEY=VALUE
	std::string runtime_dir, runtime_log;
};

// Prints help or a one-sentence error; then *exit_code is set and nullopt returned.
std::optional<Options> parse_options(int argc, char **argv, int *exit_code);

} // namespace kubesim

#endif
