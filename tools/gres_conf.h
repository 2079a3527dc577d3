// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What slurmctld answers to "gres" as a file that gres.conf includes.
#ifndef SK8_TOOLS_GRES_CONF_H
#define SK8_TOOLS_GRES_CONF_H

#include <cstddef>
#include <string>

#include "lib/base/json.h"
#include "lib/base/result.h"

namespace sk8::tools {

struct GresConf {
	std::string text;
	std::size_t nodes = 0; // that have lines in it
};

// A line for each GRES of each node that slurm.conf gives some of. Never fewer than slurm.conf says, or of other types: Slurm
// drains a node whose slurmd has fewer (gres_node_config_validate(), interfaces/gres.c); what would be is left out, and a comment
// in its place says why. An error if not all nodes are known. Pure.
Result<GresConf> gres_conf(const Json &answer);
// Blocks on the disk. false: the file had just this. An error if something else than gres_conf()'s is there.
Result<bool> write_gres_conf(const std::string &path, const std::string &text);

} // namespace sk8::tools

#endif
