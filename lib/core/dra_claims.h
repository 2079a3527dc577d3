// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// From a pod's ResourceClaims to Slurm's GRES, and back: Slurm chooses the node and the devices, and we write into the claims
// that it is just these. Pure.
//
// So that any choice of Slurm's will do, a node counts only if each of its devices of the class is one that the claim can have.
// Nodes with several kinds of devices want a class, and a type in Slurm, for each.
#ifndef SK8_CORE_DRA_CLAIMS_H
#define SK8_CORE_DRA_CLAIMS_H

#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/core/dra_inventory.h"
#include "lib/core/dra_selector.h"
#include "lib/core/gres.h"
#include "lib/kube/dra_objects.h"

namespace sk8::core {

using Claims = std::vector<kube::ResourceClaimPtr>; // of one pod

std::string claim_text(const std::string &name); // for people

// What they are together in Slurm. Error: why we cannot honour them.
Result<GresList> gres_of_claims(const Claims &claims, const std::vector<ResourceSettings> &settings);
// Where they can be had. The selectors are read once for all nodes. What they may cost is bounded, for all of them together: as
// kube-scheduler, which gives them ten seconds, but by work, so that it does not depend on the machine.
class ClaimPlaces {
public:
	explicit ClaimPlaces(const Claims &claims); // which must outlive it
	// Empty: whatever of its devices Slurm chooses there, the claims can have them. Else why not, a few words.
	std::string objection(const std::string &node, const DraInventory &inventory);

private:
	std::string objection(std::size_t claim, const std::string &node, const DraInventory &inventory);

	const Claims &claims_;
	std::vector<std::vector<std::vector<DeviceSelector>>> selectors_; // by claim and request
	std::string problem_;                                             // with one of them
	std::size_t allowance_;
};

// All that ClaimPlaces looks at: the same text, the same answer.
std::string wishes_text(const Claims &claims);

struct ClaimDevices {
	kube::ResourceClaimPtr claim;
	std::vector<kube::AllocatedDevice> devices;
};
// Which of the job's devices on that node each claim gets: all of them are given away. Error: they do not fit.
Result<std::vector<ClaimDevices>> share_out(const Claims &claims, const GresList &job, const std::string &node, const DraInventory &inventory);

// Merge patches for an object of this version. The first is for the claim itself, the others for its status.
Json protecting_patch(const kube::ResourceClaim &claim); // with the finalizer of Kubernetes' own scheduler
bool is_protected(const kube::ResourceClaim &claim);
Json freeing_patch(const kube::ResourceClaim &claim);
Json reserving_patch(const kube::ResourceClaim &claim, const std::string &pod, const std::string &uid); // for it, too
Json allocating_patch(const ClaimDevices &wanted, const std::string &node, const std::string &pod, const std::string &uid,
		      const DraInventory &inventory);

} // namespace sk8::core

#endif
