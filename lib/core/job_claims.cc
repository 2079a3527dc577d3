// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/job_claims.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/claim_pods.h"
#include "lib/core/claim_writer.h"

namespace sk8::core {

using Is = JobClaims::Is;

static JobClaims not_ready(Is is, std::string why)
{
	return {is, std::move(why), {}};
}

// Those of the pod alone. One that another pod has, too, has that one's devices, which Slurm gives no second job.
static JobClaims find_claims(const ForeignPod &pod, const Dra &dra, Claims &out)
{
	for (const auto &c : pod.resource_claims) {
		if (c.claim.empty())
			return not_ready(Is::waits, "its claim " + one_line(c.name, 128) + " has not been made from its template yet, by kube-controller-manager");
		const auto claim = dra.find(pod.meta.ns, c.claim);
		if (!claim)
			return not_ready(Is::missing, claim_text(c.claim) + " does not exist in namespace " + pod.meta.ns);
		if (claim->meta.deleting)
			return not_ready(Is::waits, claim_text(c.claim) + " is being deleted");
		if (!is_only_for(*claim, pod.meta.uid))
			return not_ready(Is::waits, claim_text(c.claim) + " is in use by another pod");
		out.push_back(claim);
	}
	std::ranges::sort(out, {}, [](const auto &claim) { return claim->meta.name; }); // two jobs that want the same never have one each
	return {};
}

static std::string class_problem(const Claims &claims, const std::vector<ResourceSettings> &resources, const DraInventory &inventory)
{
	for (const auto &claim : claims)
		for (const kube::DeviceRequest &r : claim->requests)
			if (find_device_class(resources, r.device_class))
				if (std::string why = inventory.class_problem(r.device_class); !why.empty())
					return why;
	return "";
}

// A device that the job has and no claim is for would be in none of its containers, and one more than it has is somebody else's.
static std::string other_number(const GresList &wanted, const NativeShare &share, const std::vector<ResourceSettings> &resources)
{
	for (const ResourceSettings &r : resources) {
		if (r.device_class.empty())
			continue;
		const std::uint64_t wants = count_of(wanted, r.gres), has = count_of(share.gres, r.gres);
		const std::uint64_t of_type = count_of(wanted, r.gres, r.type);
		if (wants != has)
			return strprintf("its resource claims want %llu of Slurm's %s, and the job has %llu on node %s: ask for as many by --gres",
					 static_cast<unsigned long long>(wants), r.gres.c_str(), static_cast<unsigned long long>(has), share.node.c_str());
		if (!r.type.empty() && of_type > count_of(share.gres, r.gres, r.type))
			return strprintf("its resource claims want %llu of Slurm's %s:%s, and the job has %llu on node %s: ask for as many by --gres",
					 static_cast<unsigned long long>(of_type), r.gres.c_str(), r.type.c_str(),
					 static_cast<unsigned long long>(count_of(share.gres, r.gres, r.type)), share.node.c_str());
		if (devices_named(share.gres, r.gres).size() != has)
			return "nobody knows which of Slurm's " + r.gres + " the job has on node " + share.node + ": gres.conf names no files of them";
	}
	return "";
}

JobClaims claims_of_job(const ForeignPod &pod, const NativeShare &share, const Dra &dra, const std::vector<ResourceSettings> &resources)
{
	if (!dra.synced())
		return not_ready(Is::waits, "the cluster's resource claims and devices have not been listed yet");
	Claims claims;
	if (JobClaims found = find_claims(pod, dra, claims); found.is != Is::ready)
		return found;
	if (std::string why = class_problem(claims, resources, dra.inventory); !why.empty())
		return not_ready(Is::waits, std::move(why));
	const auto wanted = gres_of_claims(claims, resources);
	if (!wanted)
		return not_ready(Is::wrong, wanted.error().message);
	if (std::string why = other_number(*wanted, share, resources); !why.empty())
		return not_ready(Is::wrong, std::move(why));
	auto shares = share_out(claims, share.gres, share.node, dra.inventory);
	if (!shares)
		return not_ready(Is::waits, shares.error().message);
	for (const ClaimDevices &c : *shares)
		if (std::string why = taken_by_another(c, share.node, dra, claims); !why.empty())
			return not_ready(Is::waits, std::move(why));
	return {.devices = std::move(*shares)};
}

} // namespace sk8::core
