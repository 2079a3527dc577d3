// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The command line of slurm-k8s(1) as tables: the same rows parse it and print --help.
#ifndef SK8_TOOLS_OPTIONS_H
#define SK8_TOOLS_OPTIONS_H

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace sk8::tools {

// Exit codes, slurm-k8s(1).
enum Exit { exit_ok = 0, exit_problem = 1, exit_usage = 2 };

struct Option {
	const char *name; // "--node"
	const char *value; // "NODE"; nullptr: it takes none
	const char *help;
};

struct Arguments {
	std::map<std::string, std::string> options; // "--node" -> "n1"; "" for those without value
	std::vector<std::string> words;

	bool has(const std::string &option) const { return options.contains(option); }
	std::string get(const std::string &option, const std::string &otherwise = "") const;
};

struct Command {
	const char *name;
	const char *words;    // "NAMESPACE/NAME|UID", or ""
	std::size_t min_words, max_words;
	const char *summary;  // for the list of commands
	const char *help;     // more, for its own --help
	std::vector<Option> options;
	int (*run)(const Arguments &); // an Exit
};

// Options as "--node N" or "--node=N", mixed with words; "--" ends options.
Result<Arguments> parse_arguments(const Command &command, const std::vector<std::string> &argv);
// "slurm-k8s status [--node NODE] ..." and its options, one a line.
std::string help_of(const Command &command);

} // namespace sk8::tools

#endif
