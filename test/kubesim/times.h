// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Kubernetes' time formats and the clocks behind them.
#ifndef KUBESIM_TIMES_H
#define KUBESIM_TIMES_H

#include <cstdint>
#include <string>

namespace kubesim {

std::int64_t now_us();       // wall clock, microseconds since 1970
std::int64_t now_s();        // wall clock, seconds since 1970
std::int64_t monotonic_us(); // for delays

std::string rfc3339(std::int64_t seconds);          // 2026-01-02T03:04:05Z
std::string rfc3339_micro(std::int64_t microseconds); // 2026-01-02T03:04:05.000006Z
// Seconds since 1970; 0 for anything that is not such a time. Fractions are cut.
std::int64_t parse_rfc3339(const std::string &text);

} // namespace kubesim

#endif
