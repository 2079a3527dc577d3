// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Lines about one pod: all begin alike, so that grep for a uid, a name or a job id
// finds the whole story, and are limited (lib/base/log_limit.h). What each level is for:
//
//	error    a person must act
//	warning  something is wrong and is tried again by itself
//	info     the story: queued, started, bound, ended, refused
//	verbose  a single step failed and is tried again
//	debug    each decision
#ifndef SK8_CORE_POD_LOG_H
#define SK8_CORE_POD_LOG_H

#include <cstdint>
#include <string>

#include "lib/base/log_limit.h"
#include "lib/core/pod_key.h"

namespace sk8::core {

// "pod prod/ml-vision/train-7 uid 0b7f9c1e-... job 1042"; job 0: "job none".
std::string pod_text(const PodKey &key, std::uint32_t job_id);

// format: a literal. The arguments are evaluated only if the level is enabled.
#define log_pod(level, key, job_id, format, ...) \
	log_limited(::sk8::LogLevel::level, (key).uid, "%s: " format, \
		    ::sk8::core::pod_text(key, job_id).c_str() __VA_OPT__(, ) __VA_ARGS__)

} // namespace sk8::core

#endif
