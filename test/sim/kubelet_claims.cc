// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A kubelet prepares what a pod claims before its first container: of claims that are allocated and reserved for it, with the
// help of their driver (pkg/kubelet/cm/dra). What it has prepared the pod has until its last container is gone, whatever becomes
// of the claim.
#include <algorithm>

#include "lib/core/gres.h"
#include "test/sim/model_kubelet.h"

namespace sk8::sim {

// False: it tries again.
bool ModelKubelet::prepare_claims(Container &c)
{
	if (!claims || c.claims.empty())
		return true;
	if (!reachable(c.node) || !claims->has_driver(c.node))
		return false;
	std::vector<std::uint16_t> devices;
	for (const auto &name : c.claims) {
		const auto claim = claims->find(name);
		if (!claim || !claim->allocated || !is_reserved(*claim, c.uid))
			return false;
		for (auto d : devices_on(*claim, c.node))
			devices.push_back(d);
	}
	std::ranges::sort(devices);
	c.devices = std::move(devices);
	tell(story_, "kubelet ", c.node, ": ", c.pod, " (", c.uid, ") has prepared devices ", core::index_list(c.devices));
	return true;
}

} // namespace sk8::sim
