// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurmctld's answer to "status" as text for people. Pure.
#ifndef SK8_TOOLS_SHOW_H
#define SK8_TOOLS_SHOW_H

#include <string>
#include <vector>

#include "lib/base/json.h"

namespace sk8::tools {

// Whatever comes from elsewhere may not move the cursor of a terminal: on one line, 512 bytes at most.
std::string text_of(const Json &j, const char *key, const char *otherwise = "-");

// Left-aligned columns, two blanks between them, each row with a newline. The last
// column is as long as it is.
std::string table(const std::vector<std::vector<std::string>> &rows, const std::string &indent = "");

// Everything: engine, clusters, masks, last errors.
std::string show_status(const Json &status);
// status was asked for one node: what pods hold or use there.
std::string show_node(const Json &status, const std::string &node);
// status was asked for one pod; empty if no engine knows it.
std::string show_pod(const Json &status);

} // namespace sk8::tools

#endif
