// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurmctld's answer to "gres" as text for people, and as lines for Slurm's configuration. Pure.
#ifndef SK8_TOOLS_GRES_H
#define SK8_TOOLS_GRES_H

#include <cstdint>
#include <functional>
#include <string>

#include "lib/base/json.h"
#include "lib/core/gres.h"

namespace sk8::tools {

// A table of nodes, and what is odd about them.
std::string show_gres(const Json &answer);
// A table of the devices that DRA drivers tell of.
std::string show_devices(const Json &answer);
// For slurm.conf and gres.conf. What Slurm could not read there is left out.
std::string gres_lines(const Json &answer);
// How many nodes the answer has.
std::size_t gres_nodes(const Json &answer);
// f(its name, what is told of it) for each node whose name slurm.conf could have.
void each_gres_node(const Json &answer, const std::function<void(const std::string &, const Json &)> &f);
// What Slurm can read of such a list, of which there are at least so many.
core::GresList gres_list(const Json &list, std::int64_t least = 1);
// Of gres.conf. files, cores: "" if it is not known which they are.
std::string gres_conf_line(const std::string &node, const core::Gres &gres, const std::string &files,
			   const std::string &cores = "");
// "/dev/nvidia[0-3]", as File= has them. count: at least 1.
std::string numbered_files(const std::string &begin, std::uint64_t first, std::uint64_t count);
// Clusters of whose nodes nothing is known, a line each, which begins so.
std::string silent_clusters(const Json &answer, const std::string &begin);
// "gpu:a100:4(S:0-1),hca:no_consume:2,token:1K" of slurm.conf or scontrol: what jobs can have, by name and type.
core::GresList parse_gres(const std::string &text);

} // namespace sk8::tools

#endif
