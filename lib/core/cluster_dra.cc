// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The watches of Dynamic Resource Allocation: only where the settings name a deviceClass.
#include "lib/core/cluster_engine.h"

namespace sk8::core {

static constexpr Millis longest_pause{10'000}; // as of the other watches

static kube::ReflectorOptions options_for(const std::string &name, const kube::ResourceType &type)
{
	kube::ReflectorOptions out;
	out.name = name;
	out.path = resource_path(type);
	out.backoff.most = longest_pause;
	return out;
}

void ClusterEngine::watch_dra()
{
	if (!dra_.wanted())
		return;
	watch_slices();
	watch_device_classes();
	watch_claims();
}

// A pod's devices are known when its claims are.
void ClusterEngine::foreign_known()
{
	if (foreign_listed_ && dra_.synced())
		pods_->expect_foreign(true);
}

void ClusterEngine::watch_slices()
{
	kube::Reflector<kube::ResourceSlice>::Callbacks call;
	call.on_replace = [this, first = true](std::vector<kube::ResourceSlicePtr> slices) mutable {
		listed("resourceslices", std::exchange(first, false));
		back("resource slices");
		dra_.inventory.slices_replaced(slices);
		dra_stale_ = true;
	};
	call.on_upsert = [this](kube::ResourceSlicePtr slice) {
		dra_.inventory.slice_changed(slice);
		dra_stale_ = true;
	};
	call.on_delete = [this](kube::ResourceSlicePtr last) {
		dra_.inventory.slice_removed(last);
		dra_stale_ = true;
	};
	call.on_lost = [this](std::string why) { link_.lost("resource slices", why); };
	call.on_regained = [this] { back("resource slices"); };
	slice_reflector_ = std::make_unique<kube::Reflector<kube::ResourceSlice>>(
		*client_, options_for("resource slices of cluster " + settings_.name, kube::resource_slices_resource),
		kube::decode_resource_slice, call, [this] { return random(); });
	slice_reflector_->start();
}

void ClusterEngine::watch_device_classes()
{
	kube::Reflector<kube::DeviceClass>::Callbacks call;
	call.on_replace = [this, first = true](std::vector<kube::DeviceClassPtr> classes) mutable {
		listed("deviceclasses", std::exchange(first, false));
		back("device classes");
		dra_.inventory.classes_replaced(classes);
		dra_stale_ = true;
	};
	call.on_upsert = [this](kube::DeviceClassPtr c) {
		dra_.inventory.class_changed(c);
		dra_stale_ = true;
	};
	call.on_delete = [this](kube::DeviceClassPtr last) {
		dra_.inventory.class_removed(last);
		dra_stale_ = true;
	};
	call.on_lost = [this](std::string why) { link_.lost("device classes", why); };
	call.on_regained = [this] { back("device classes"); };
	class_reflector_ = std::make_unique<kube::Reflector<kube::DeviceClass>>(
		*client_, options_for("device classes of cluster " + settings_.name, kube::device_classes_resource),
		kube::decode_device_class, call, [this] { return random(); });
	class_reflector_->start();
}

void ClusterEngine::watch_claims()
{
	kube::Reflector<kube::ResourceClaim>::Callbacks call;
	call.on_replace = [this, first = true](std::vector<kube::ResourceClaimPtr> claims) mutable {
		listed("resourceclaims", std::exchange(first, false));
		back("resource claims");
		dra_.claims_replaced(claims);
		dra_stale_ = true;
	};
	call.on_upsert = [this](kube::ResourceClaimPtr claim) {
		if (!dra_.claim_changed(claim))
			return;
		foreign_->claim_changed(claim->meta.ns, claim->meta.name);
		pods_->claim_changed(claim->meta.ns, claim->meta.name);
	};
	call.on_delete = [this](kube::ResourceClaimPtr last) {
		dra_.claim_removed(last);
		foreign_->claim_changed(last->meta.ns, last->meta.name);
		pods_->claim_changed(last->meta.ns, last->meta.name);
	};
	call.on_lost = [this](std::string why) { link_.lost("resource claims", why); };
	call.on_regained = [this] { back("resource claims"); };
	claim_reflector_ = std::make_unique<kube::Reflector<kube::ResourceClaim>>(
		*client_, options_for("resource claims of cluster " + settings_.name, kube::resource_claims_resource),
		kube::decode_resource_claim, call, [this] { return random(); });
	claim_reflector_->start();
}

} // namespace sk8::core
