// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Durations as people write them. Pure; no thread, no lock.
#ifndef SK8_BASE_DURATION_H
#define SK8_BASE_DURATION_H

#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/result.h"

namespace sk8 {

// Reads "1h30m", "40s", "250ms", "7d", "0"; the error says what would be right.
Result<Millis> parse_duration(std::string_view text);
// The shortest such text, "0s" for nothing; parse_duration() reads it.
std::string format_duration(Millis duration);

} // namespace sk8

#endif
