// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Kubernetes quantities ("250m", "4Gi", "1e3"), exact.
// Source of the rules: Kubernetes API reference, resource.Quantity
// (k8s.io/apimachinery/pkg/api/resource).
#ifndef SK8_BASE_QUANTITY_H
#define SK8_BASE_QUANTITY_H

#include <cstdint>
#include <string_view>

#include "lib/base/result.h"

namespace sk8 {

// Both round up, as Kubernetes does, and accept n, u, m, none, k, M, G, T, P, E,
// Ki, Mi, Gi, Ti, Pi, Ei and decimal exponents (e3, E-2). Negative values,
// anything else and what does not fit are errors.
Result<std::int64_t> parse_milli(std::string_view text); // thousandths: "250m" -> 250
Result<std::int64_t> parse_whole(std::string_view text); // units: "4Gi" -> 4294967296

} // namespace sk8

#endif
