// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The ResourceClaims of the pod in which a job of Slurm's own has its container: they get the devices that the job has on the pod's
// node in Slurm, all of them and no others. Pure.
#ifndef SK8_CORE_JOB_CLAIMS_H
#define SK8_CORE_JOB_CLAIMS_H

#include <string>
#include <vector>

#include "lib/core/dra.h"
#include "lib/core/dra_claims.h"
#include "lib/core/foreign_pod.h"
#include "lib/core/native_job.h"

namespace sk8::core {

struct JobClaims {
	enum class Is {
		ready,
		waits,   // for somebody else
		missing, // a claim is, which may be made yet
		wrong,   // for good: what the user wants cannot be
	} is = Is::ready;
	std::string why; // a part of a sentence
	std::vector<ClaimDevices> devices;
};
// pod: of this share, without a node yet.
JobClaims claims_of_job(const ForeignPod &pod, const NativeShare &share, const Dra &dra, const std::vector<ResourceSettings> &resources);

} // namespace sk8::core

#endif
