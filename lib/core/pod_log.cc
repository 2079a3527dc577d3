// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pod_log.h"

namespace sk8::core {

std::string pod_text(const PodKey &key, std::uint32_t job_id)
{
	return "pod " + key.cluster + '/' + key.ns + '/' + key.name + " uid " + key.uid + " job " +
	       (job_id ? std::to_string(job_id) : "none");
}

} // namespace sk8::core
