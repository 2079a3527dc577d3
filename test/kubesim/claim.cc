// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/claim.h"

namespace kubesim {

void default_claim(const J &claim)
{
	claim.path("spec.devices.requests").each_item([](const J &request) {
		J exactly = request["exactly"];
		if (!exactly)
			return;
		exactly.set_default("allocationMode", "ExactCount");
		if (exactly["allocationMode"].str() == "ExactCount")
			exactly.set_default("count", 1);
	});
}

std::vector<FieldError> validate_claim_update(const J &now, const J &before)
{
	std::vector<FieldError> errors;
	const J allocation = now.path("status.allocation"), old = before.path("status.allocation");
	if (!(now["spec"] == before["spec"]))
		errors.push_back(field_invalid("spec", now["spec"].dump(), "field is immutable"));
	if (allocation && old && !(allocation == old))
		errors.push_back(field_invalid("status.allocation", allocation.dump(), "field is immutable"));
	if (!allocation && now.path("status.reservedFor").size() > 0)
		errors.push_back(field_forbidden("status.reservedFor", "may not be specified when `allocated` is not set"));
	return errors;
}

} // namespace kubesim
