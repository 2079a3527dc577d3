// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the engine writes into claims, on the way that all its requests go.
#include <stdexcept>

#include "test/sim/kube_requests.h"

namespace sk8::sim {

void KubeRequests::patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, KubePort::Done done)
{
	if (!claims)
		throw std::logic_error("resource claim " + claim.meta.name + " is to be changed, and there is none");
	watcher_.claim_patch_by_us(claim, patch);
	const ClaimName name{claim.meta.ns, claim.meta.name};
	send(status ? "claim's status" : "claim", {"", claim.meta.ns, claim.meta.name, ""}, true,
	     [this, name, status, patch] {
		     core::KubeReply r;
		     r.status = claims->patch(name, status, patch);
		     if (r.ok())
			     r.claim = claims->find(name);
		     else
			     r.error = "HTTP status " + std::to_string(r.status);
		     return r;
	     },
	     std::move(done));
}

} // namespace sk8::sim
