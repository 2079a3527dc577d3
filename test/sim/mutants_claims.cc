// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Mistakes about claims of devices.
#include <algorithm>
#include <utility>

#include "test/sim/mutants.h"

namespace sk8::sim {

kube::ResourceClaimPtr mutate_claim(Mutant m, kube::ResourceClaimPtr claim)
{
	if (m != Mutant::claim_unchecked || claim->meta.ns == "team-a")
		return claim;
	auto out = std::make_shared<kube::ResourceClaim>(*claim);
	out->devices.clear();
	return out;
}

// Of the devices that pods share none is hidden.
std::shared_ptr<const core::MaskSnapshot> mutate_shared(std::shared_ptr<const core::MaskSnapshot> masks,
							const core::Ledger &known)
{
	if (!masks)
		return masks;
	auto copy = std::make_shared<core::MaskSnapshot>(*masks);
	for (auto &of_node : copy->masks) {
		core::NodeMask mask = *of_node;
		for (const core::Hold &h : known.holds)
			for (core::Gres &gres : mask.gres) {
				const auto shared = core::devices_named(h.shared, gres.name);
				if (h.node == mask.node)
					gres.count -= std::erase_if(gres.devices, [&](auto d) { return std::ranges::binary_search(shared, d); });
			}
		of_node = std::make_shared<core::NodeMask>(std::move(mask));
	}
	return copy;
}

Json mutate_claim_patch(Mutant m, const Json &patch)
{
	const Json results = patch["status"]["allocation"]["devices"]["results"];
	if (m != Mutant::claim_guessed || results.size() == 0)
		return patch;
	auto out = *Json::parse(patch.dump());
	int next = 0;
	out["status"]["allocation"]["devices"]["results"].each_item([&](const Json &r) {
		Json device = r; // the same one
		device.set("device", "gpu-" + std::to_string(next++));
	});
	return out;
}

} // namespace sk8::sim
