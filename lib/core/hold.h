// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What pods hold on nodes, as plain values: in memory hold_table.h, on disk
// hold_journal.h, for Slurm's scheduler mask_index.h.
#ifndef SK8_CORE_HOLD_H
#define SK8_CORE_HOLD_H

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "lib/core/gres.h"
#include "lib/core/pod_key.h"
#include "lib/core/resubmit.h"

namespace sk8::core {

// What of an unsigned amount is above a limit.
template <class T>
T above(T what, T limit)
{
	return what > limit ? what - limit : 0;
}

// What one pod holds on one node.
struct Hold {
	PodKey key;
	std::string node;
	std::vector<std::uint16_t> cores; // these cores of the node (Slurm's abstract index)
	std::uint32_t more_cores = 0;     // and so many others: adopted pods have no cores of their own
	std::uint64_t memory_mb = 0;
	bool lost_node = false;           // it was bound there, and etcd from a backup does not know
	// Somebody else placed it: no job of ours ever covers it. Its cores are those that its kubelet
	// keeps for it alone (pinned_cores.h); for most that is none, but milli_cpu (1000 = one hardware
	// thread), of which whole cores are made for all foreign pods of a node together.
	bool foreign = false;
	std::int64_t milli_cpu = 0;
	bool overhead = false; // ForeignPod::overhead
	// The job of Slurm's own whose reservation pod it is; some_jobs: of several. Not saved: its name says so.
	std::uint32_t job_id = 0;
	bool some_jobs = false;
	// Of a job that wants its nodes without others' pods (names::exclusive_feature). evictable: goes before such a job is
	// launched; stays: such a job gets no such node. Not saved: it is known again when the pod has been seen again.
	enum class InWay { no, evictable, stays } in_way = InWay::no;
	std::int64_t grace_seconds = 30; // of a foreign pod, from its deletion to SIGKILL
	GresList gres;         // devices that are not known are any that no job has
	// Devices, each named, of resource claims that it has together with other pods: of those one pod's job has them in Slurm, or
	// none has any more. A job of its own never covers them.
	GresList shared;
	// Hardware threads that it requests, of one of ours; 0: not known, as in ledgers of former versions. What it holds are cores
	// all the same: a core may have fewer threads one day.
	std::uint32_t cpus = 0;

	std::uint32_t core_count() const { return static_cast<std::uint32_t>(cores.size()) + more_cores; }
	bool operator==(const Hold &) const = default;
};

// As many cores as it needs on a node whose cores have so many threads now. Never fewer than before: they are held.
inline void fit_cores(Hold &hold, std::uint32_t threads_per_core)
{
	const std::uint32_t threads = std::max(threads_per_core, 1u);
	hold.more_cores += above(hold.cpus / threads + (hold.cpus % threads != 0), hold.core_count());
}

// A person's word that no process of this pod is left. Its object may say otherwise for
// ever, so it counts until that object is gone, or until the pod gets a node anew.
struct Released {
	PodKey key;
	static constexpr std::size_t max_by = 255;
	std::string by; // who, for logs; printable, 1 to max_by bytes
	bool foreign = false;

	bool operator==(const Released &) const = default;
};

// What the saved ledger knows.
struct Ledger {
	// Of some nodes nobody has told yet what runs there: the ledger before it was lost, and
	// this one may lack what it had.
	bool partial = false;
	bool first = false; // ... where nothing says that there was a ledger before
	std::vector<Hold> holds;
	std::vector<Released> released;
	std::vector<Resubmit> resubmits;

	// What another one knows. All members are named, so that none is forgotten here.
	void add(Ledger other)
	{
		auto &[other_partial, other_first, other_holds, other_released, other_resubmits] = other;
		partial |= other_partial;
		first |= other_first;
		std::ranges::move(other_holds, std::back_inserter(holds));
		std::ranges::move(other_released, std::back_inserter(released));
		std::ranges::move(other_resubmits, std::back_inserter(resubmits));
	}
};

} // namespace sk8::core

#endif
