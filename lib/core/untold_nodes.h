// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Which nodes take no new job from a start of slurmctld on, or from when their cluster has come into its
// settings, until their cluster has told what runs there (the first list of all its pods has been read):
//
//   of its ledger there is          they are                          and that lasts
//   a whole one                     nodes.names, or all of Slurm's,   moment_wait, at most
//                                   where a node can be mixed
//   one that may lack pods,         nodes.names, or all of Slurm's    until it has told
//   or that cannot be read
//   none                            nodes.names                       until it has told
//   none, and nodes.names is empty  all of Slurm's                    longest_wait, at most
//
// A ledger says that there were pods, and so does who names his nodes. With neither there may never have been one: an
// API server that does not exist must not stop a whole Slurm for ever. A ledger that was begun without a list, where
// there was none before (Ledger::first), is none, unless there is a pod in it.
//
// A whole one has all that was told while slurmctld ran, not what others placed since. Only of mixed nodes it is promised that
// who comes second gets no core of who came first; pods for Slurm are bound by nobody but us, on dedicated nodes the taint keeps away
// all others but those that ask nobody (they may come second at any time), and where sharing is none nothing is promised.
// Which nodes are mixed their labels say, which nobody has told yet. And it is a moment only: what waits for an API
// server that is away waits at each reconfigure from 23.11 on.
#ifndef SK8_CORE_UNTOLD_NODES_H
#define SK8_CORE_UNTOLD_NODES_H

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/core/mask_index.h"
#include "lib/core/settings.h"

namespace sk8::core {

// From when slurmctld is in charge, or has the cluster. An API server that is there has told within two seconds, in a thousand nodes too; one that is
// restarted together with slurmctld needs some more.
inline constexpr Millis longest_wait{30'000};
inline constexpr Millis moment_wait{5'000};

struct UntoldNodes {
	std::string cluster;
	std::vector<std::string> nodes;
	Wait wait = Wait::until_it_has;
};

// ledgers: by cluster, is it whole? Not in it: there is none. A cluster that is in none of the two has no nodes.
std::vector<UntoldNodes> untold_nodes(const std::map<std::string, bool> &ledgers, const std::vector<ClusterSettings> &clusters,
				      const std::vector<std::string> &nodes_of_slurm);

// From then on; nothing: for ever. most: in the place of longest_wait, for tests.
std::optional<Millis> at_most(Wait wait, Millis most = longest_wait);

} // namespace sk8::core

#endif
