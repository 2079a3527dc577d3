// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What is known of Dynamic Resource Allocation in a cluster: devices (dra_inventory.h), and all claims with what they have
// got. Engine thread only, no I/O.
#ifndef SK8_CORE_DRA_H
#define SK8_CORE_DRA_H

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lib/core/dra_inventory.h"
#include "lib/core/gres.h"
#include "lib/kube/dra_objects.h"

namespace sk8::core {

class Dra {
public:
	explicit Dra(const std::vector<ResourceSettings> &settings) : inventory(settings) {}

	DraInventory inventory;

	void claims_replaced(const std::vector<kube::ResourceClaimPtr> &claims);
	// false: an older one than is known.
	bool claim_changed(const kube::ResourceClaimPtr &claim);
	void claim_removed(const kube::ResourceClaimPtr &last);

	bool wanted() const { return inventory.wanted(); }
	// Everything has been listed once, or there is nothing to list.
	bool synced() const { return !wanted() || (inventory.synced() && claims_synced_); }

	// null: there is none of this name.
	kube::ResourceClaimPtr find(const std::string &ns, const std::string &name) const;
	// Another claim that has this device for itself, as "ns/name"; empty: none.
	std::string holder(const kube::AllocatedDevice &device, const kube::ResourceClaim &but) const;
	struct Has {
		std::string node;
		GresList gres; // of Slurm's, each with its device
	};
	// What this claim has for itself. Error: a few words, that is not known, or is not of one node.
	Result<Has> devices_of(const kube::ResourceClaim &claim) const;
	// The same on that node, each with its device, as far as it is known which of Slurm's they are.
	GresList held(const kube::ResourceClaim &claim, const std::string &node) const;
	// And of all claims of a pod that are reserved for it.
	GresList held(const std::string &ns, const std::vector<kube::PodResourceClaim> &claims, const std::string &uid,
		      const std::string &node) const;

private:
	using DeviceKey = std::tuple<std::string, std::string, std::string>; // driver, pool, device
	using ClaimKey = std::pair<std::string, std::string>;                // namespace, name
	void keep(const kube::ResourceClaimPtr &claim);
	void drop(const ClaimKey &key);

	std::map<ClaimKey, kube::ResourceClaimPtr> claims_;
	std::map<DeviceKey, std::set<ClaimKey>> of_device_;
	bool claims_synced_ = false;
};

} // namespace sk8::core

#endif
