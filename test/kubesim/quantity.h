// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Quantities as the API server stores them: "0.5" becomes "500m", "1024Mi" "1Gi".
#ifndef KUBESIM_QUANTITY_H
#define KUBESIM_QUANTITY_H

#include <cstdint>
#include <optional>
#include <string>

#include "test/kubesim/jv.h"

namespace kubesim {

struct Quantity {
	__int128 nano = 0; // value * 10^9
	enum Format { decimal, binary, exponent } format = decimal;

	std::int64_t milli() const; // rounded up
	std::int64_t whole() const; // rounded up
	std::string canonical() const;
};

// nullopt: not a quantity, or beyond what 64 bits of whole units hold.
std::optional<Quantity> parse_quantity(const std::string &text);
// Of a string or a number.
std::optional<Quantity> parse_quantity(const J &value);

// Rewrites each value of a resource list canonically; false if one is no quantity.
bool canonicalize(J resource_list);

} // namespace kubesim

#endif
