// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The writes by which the claims of one pod get their devices, one after the other, before it is bound. Each names the claim's
// version: whoever else changes a claim meanwhile makes it fail. Engine thread only.
#ifndef SK8_CORE_CLAIM_WRITER_H
#define SK8_CORE_CLAIM_WRITER_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/dra.h"
#include "lib/core/dra_claims.h"
#include "lib/core/kube_port.h"

namespace sk8::core {

// Empty, or which of these devices another claim has, as far as is known now. own: the pod's, which are freed before.
std::string taken_by_another(const ClaimDevices &wanted, const std::string &node, const Dra &dra, const Claims &own = {});

// What is left of them is known by an answer a moment before the watch tells of it.
struct ClaimWrites {
	std::string pod, uid, node;       // whom they are for, and where
	std::vector<ClaimDevices> claims; // its own, and from shared_at on those that others have, too
	std::size_t shared_at = 0;
	std::size_t at = 0;       // the one that is written
	std::vector<int> tries{}; // of each
};

struct ClaimWrite {
	enum class Is { write, done, failed } is = Is::done;
	bool status = false; // of the claim's status; else of the claim itself
	Json patch;
	std::string why; // failed: as a part of a sentence
};
// The next one that is needed, of the claim `at`.
ClaimWrite next_write(ClaimWrites &w, const Dra &dra);

struct ClaimWritePorts {
	Dra &dra;
	std::function<void(const kube::ResourceClaim &, bool status, const Json &patch, KubePort::Done)> patch; // KubePort::patch_claim()
	std::function<bool()> goes_on; // asked before each; false: nobody waits for the end any more
	// why: empty, all of them have theirs. After a write that failed nobody may wait for it any more.
	std::function<void(const std::string &why, const KubeReply &)> done;
};
void write_claims(const std::shared_ptr<ClaimWrites> &writes, const ClaimWritePorts &ports);

} // namespace sk8::core

#endif
