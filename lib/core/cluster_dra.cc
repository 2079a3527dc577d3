// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The watches of Dynamic Resource Allocation: only where the settings name a deviceClass.
#include "lib/core/cluster_watch.h"

namespace sk8::core {

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
	};
	call.on_upsert = [this](kube::ResourceSlicePtr slice) { dra_.inventory.slice_changed(slice); };
	call.on_delete = [this](kube::ResourceSlicePtr last) { dra_.inventory.slice_removed(last); };
	start_watch(slice_reflector_, "resource slices", {.path = resource_path(kube::resource_slices_resource)}, kube::decode_resource_slice, std::move(call));
}

void ClusterEngine::watch_device_classes()
{
	kube::Reflector<kube::DeviceClass>::Callbacks call;
	call.on_replace = [this, first = true](std::vector<kube::DeviceClassPtr> classes) mutable {
		listed("deviceclasses", std::exchange(first, false));
		back("device classes");
		dra_.inventory.classes_replaced(classes);
	};
	call.on_upsert = [this](kube::DeviceClassPtr c) { dra_.inventory.class_changed(c); };
	call.on_delete = [this](kube::DeviceClassPtr last) { dra_.inventory.class_removed(last); };
	start_watch(class_reflector_, "device classes", {.path = resource_path(kube::device_classes_resource)}, kube::decode_device_class, std::move(call));
}

void ClusterEngine::watch_claims()
{
	kube::Reflector<kube::ResourceClaim>::Callbacks call;
	call.on_replace = [this, first = true](std::vector<kube::ResourceClaimPtr> claims) mutable {
		listed("resourceclaims", std::exchange(first, false));
		back("resource claims");
		dra_.claims_replaced(claims);
		claims_stale_ = true;
	};
	call.on_upsert = [this](kube::ResourceClaimPtr claim) {
		if (!dra_.claim_changed(claim))
			return;
		foreign_->claim_changed(claim->meta.ns, claim->meta.name);
		pods_->claim_changed(claim->meta.ns, claim->meta.name);
		reservations_->claims_changed();
	};
	call.on_delete = [this](kube::ResourceClaimPtr last) {
		dra_.claim_removed(last);
		foreign_->claim_changed(last->meta.ns, last->meta.name);
		pods_->claim_changed(last->meta.ns, last->meta.name);
		reservations_->claims_changed();
	};
	start_watch(claim_reflector_, "resource claims", {.path = resource_path(kube::resource_claims_resource)}, kube::decode_resource_claim, std::move(call));
}

} // namespace sk8::core
