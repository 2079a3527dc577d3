// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// select/cons_tres with lib/slurm/masks.c in front of it: which cores a job would get
// on a node, beside running jobs and what pods hold.
#ifndef SK8_SIM_MODEL_SELECT_H
#define SK8_SIM_MODEL_SELECT_H

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/core/hold_table.h"
#include "test/sim/slurm_job.h"

namespace sk8::sim {

struct SelectNode {
	std::vector<bool> used;   // by running jobs
	std::uint64_t memory = 0; // MB, the same
	std::vector<bool> gpus;   // the same
	bool usable = true;       // it has registered and is not down
	bool down = false;
	bool set_down = false;    // by an administrator: until somebody resumes it
	bool drain = false;
	bool fail = false, maint = false; // maint: a reservation for maintenance
	std::string reason;       // of the drain, or of what set it down
	std::uint32_t reason_uid = SK8_NO_UID;
	std::string features;     // available and active
	int completing = 0;       // ended jobs whose processes are still there
};

class ModelSelect {
public:
	struct Place {
		std::vector<std::uint16_t> cores, devices;
	};
	using Masks = core::MaskSnapshot; // may be null

	ModelSelect(int nodes, int cores, std::uint64_t memory, int gpus);

	// The cores and devices it would get there, the first ones first; nullopt: not now.
	// without: running jobs that are thought away (preemption).
	std::optional<Place> test(const SlurmJob &job, const std::string &node, const Masks *masks,
				  const std::vector<const SlurmJob *> &without = {}) const;
	void take(const SlurmJob &job);
	void take_devices(const SlurmJob &job, bool on);
	void give(const SlurmJob &job);
	void clear(); // no job runs

	std::map<std::string, SelectNode> nodes; // n1, n2 ...
	const int cores;
	const std::uint64_t memory;
	const int gpus;
};

} // namespace sk8::sim

#endif
