// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The devices that DRA drivers tell of as lines of gres.conf. Pure.
//
// The index that Slurm gives a device is its place among all of the GRES that slurmd takes (_merge_config() in gres.c, all
// releases alike): of each type that slurm.conf gives the node, in the order of slurm.conf, as many as it says there, in the
// order of gres.conf. A pod gets the device that has the index of its job's, so there are lines only if this is the driver's.
//
// Cores= has whole sockets: Slurm schedules by these alone, and 24.11 drains a node whose gres.conf names other cores
// (_check_core_range_matches_sock()). All lines of a GRES have cores or none has: else slurmctld complains of the node.
#ifndef SK8_TOOLS_DEVICE_LINES_H
#define SK8_TOOLS_DEVICE_LINES_H

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/core/gres.h"

namespace sk8::tools {

struct DeviceLines {
	std::string text;   // with a new line at its end; empty: there are none, ...
	std::string why;    // ... why, for people; also empty: which files the devices are is not known
	bool fewer = false; // ... because there are fewer than slurm.conf says, perhaps only now
};

// rows: all that slurmctld's answer to "gres" has of this GRES on the node. slurm: what slurm.conf gives the node, in its order.
DeviceLines device_lines(const std::string &node, const std::string &name, const std::vector<Json> &rows,
			 const core::GresList &slurm);

} // namespace sk8::tools

#endif
