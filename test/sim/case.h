// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A case: everything that comes from outside (people, users' programs, faults), as a
// short text that can be kept and replayed:
//
//   seed 17
//   nodes 2
//   1.500 create pod=a cpu=2 life=20 exit=3
//   9.000 crash after=4 down=2
//
// Times are seconds of virtual time. What the models add by chance (delays, the order
// of things) comes from the seed.
#ifndef SK8_SIM_CASE_H
#define SK8_SIM_CASE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "test/sim/schedule.h"

namespace sk8::sim {

struct Action {
	Micros at = 0;
	std::string verb;
	std::map<std::string, std::string> with;

	bool has(const std::string &key) const { return with.contains(key); }
	std::string text(const std::string &key) const;
	// otherwise: if it has no such key
	std::int64_t number(const std::string &key, std::int64_t otherwise = 0) const;
	Micros seconds(const std::string &key, std::int64_t otherwise = 0) const { return number(key, otherwise) * second; }
	std::string line() const;
};

struct Case {
	std::uint64_t seed = 1;
	int nodes = 2, cores = 4;
	std::int64_t memory = 4000;      // MB of a node
	// ... and what slurm.conf sets aside there beside them (CoreSpecCount, MemSpecLimit)
	int aside = 0;
	std::int64_t aside_memory = 0;
	int gpus = 0;                    // of each node
	// Where no node is mixed: the GPUs of Slurm's own jobs are held by pods, and these jobs go through the gate.
	bool device_pods = false;
	bool claims = false;             // pods have GPUs by claims (Dynamic Resource Allocation); where no node is mixed
	bool device_plugin = false;      // kubelets choose which GPUs a pod gets, and agents tell
	int slots = 0;                   // pods that a node can have; 0: as many as come
	int grace = 0;                   // GraceTime of its partitions, seconds
	bool node_state = false;         // the engine carries the state of nodes from side to side
	bool unnamed = false;            // slurm-k8s.yaml does not name the shared nodes (nodes.names)
	int job_ids = 10'000;            // then Slurm begins again with the first one
	// The first so many nodes are shared as mixed, and every job of Slurm's own goes through the gate.
	int mixed = 0;
	std::string eviction = "ignore"; // reservations.eviction
	int gate_timeout = 60;           // seconds
	int shared = 0;                  // reservations.shared.maxCpus
	int faults = 0;                  // permille of the requests to Kubernetes that go wrong
	std::string mutant;              // empty: the product as it is
	std::vector<Action> actions;     // by time

	std::string text() const;
};

Result<Case> parse_case(const std::string &text);
// One of infinitely many: the same seed gives the same case.
// mixed: some have nodes that are shared so.
Case make_case(std::uint64_t seed, bool mixed);
// Its part with nodes that are shared as mixed, in some; make_mixed.cc
void make_mixed(Case &c, Micros length);
// Its part with GPUs of Slurm's own jobs where no node is mixed; the same file
void make_device_pods(Case &c, Micros length);

} // namespace sk8::sim

#endif
