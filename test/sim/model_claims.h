// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Dynamic Resource Allocation in the API server: what drivers tell of nodes' devices, and the claims that pods have for them.
// Each node has one pool of its driver, named as the node, of whole devices gpu-0, gpu-1 ... with Slurm's index as attribute.
// Requests take effect at once here, as in model_api.h. There is no backup of it: cases with claims restore no etcd.
#ifndef SK8_SIM_MODEL_CLAIMS_H
#define SK8_SIM_MODEL_CLAIMS_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/kube/dra_objects.h"
#include "test/sim/story.h"

namespace sk8::sim {

inline constexpr const char *claim_class = "gpu.example.com"; // the DeviceClass, and its driver

struct ClaimEvent { // of one of the two
	bool removed = false;
	kube::ResourceClaimPtr claim;
	kube::ResourceSlicePtr slice;
};

class ClaimListener {
public:
	virtual ~ClaimListener() = default;
	virtual void claim_event(const ClaimEvent &event) = 0;
};

using ClaimName = std::pair<std::string, std::string>; // namespace, name
using ClaimMap = std::map<ClaimName, kube::ResourceClaimPtr>;
using SliceMap = std::map<std::string, kube::ResourceSlicePtr>; // by node

class ModelClaims {
public:
	explicit ModelClaims(Story &story) : story_(story) {}
	void listen(ClaimListener *listener) { listeners_.push_back(listener); }

	// ---- drivers ----
	void driver_comes(const std::string &node, int devices); // or is there already: with no device tainted
	void driver_goes(const std::string &node);
	void taint(const std::string &node, std::size_t device);
	bool has_driver(const std::string &node) const { return slices_.contains(node); }
	const SliceMap &slices() const { return slices_; }
	static kube::DeviceClassPtr device_class();

	// ---- claims ----
	// owner: the uid of the pod for which it is made from a template; empty: it is anybody's.
	void create(const ClaimName &name, std::int64_t count, const std::string &owner);
	void remove(const ClaimName &name);
	const ClaimMap &all() const { return claims_; }
	kube::ResourceClaimPtr find(const ClaimName &name) const; // null: there is none
	std::string owner(const ClaimName &name) const;
	// A merge patch of the claim, or of its status, that names uid and version. Returns the HTTP status.
	int patch(const ClaimName &name, bool status, const Json &patch);
	// Of Kubernetes' own: a merge patch of what it is now.
	void change(const ClaimName &name, const Json &patch);

	const std::vector<ClaimEvent> &history() const { return history_; }

private:
	void show(kube::ResourceSlice slice);
	void store(const ClaimName &name, const Json &object);
	void publish(ClaimEvent event);

	Story &story_;
	std::vector<ClaimListener *> listeners_;
	SliceMap slices_;
	std::map<ClaimName, Json> objects_;
	ClaimMap claims_;
	std::map<ClaimName, std::string> owners_;
	std::vector<ClaimEvent> history_;
	std::int64_t version_ = 100;
	int made_ = 0;
};

// Is the claim for this pod, by its uid?
bool is_reserved(const kube::ResourceClaim &claim, const std::string &uid);
bool has_device(const kube::ResourceClaim &claim, const std::string &node, std::uint16_t device);
// Slurm's indices of what it has of this node, sorted.
std::vector<std::uint16_t> devices_on(const kube::ResourceClaim &claim, const std::string &node);

} // namespace sk8::sim

#endif
