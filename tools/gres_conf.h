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
// in its place says why. Where that may be only now, as a driver's devices are away while it starts anew, lines with File= of the
// former text stay. An error if not all nodes are known. Pure.
Result<GresConf> gres_conf(const Json &answer, const std::string &former = "");
// Blocks on the disk. What write_gres_conf() has written there; empty: nothing yet. An error if something else is there.
Result<std::string> former_gres_conf(const std::string &path);
// Blocks on the disk. false: the file had just this. Errors: as former_gres_conf()'s, and those of the disk.
Result<bool> write_gres_conf(const std::string &path, const std::string &text);

} // namespace sk8::tools

#endif
