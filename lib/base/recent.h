// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The last errors and warnings that were logged, for `slurm-k8s status`: what went
// wrong lately, without reading the host's log.
#ifndef SK8_BASE_RECENT_H
#define SK8_BASE_RECENT_H

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/log.h"

namespace sk8 {

struct Trouble {
	std::int64_t at = 0;     // when it was logged last, seconds since 1970
	std::uint64_t times = 1; // in a row
	LogLevel level = LogLevel::error;
	std::string text;        // at most 500 bytes
};

// Called by log_line(). Any thread; a short lock, no allocation.
void remember_trouble(LogLevel level, const char *text);
// The last 20, oldest first. Any thread.
std::vector<Trouble> recent_trouble();

} // namespace sk8

#endif
