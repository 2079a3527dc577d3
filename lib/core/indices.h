// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Lists of small numbers (cores, devices) in what others may have written: the saved ledger, annotations. Pure.
#ifndef SK8_CORE_INDICES_H
#define SK8_CORE_INDICES_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/base/json.h"

namespace sk8::core {

Json indices_to_json(const std::vector<std::uint16_t> &indices);
// As they stand there. Nothing: it is no list, has more than `most`, or one that is not below `end` (at most 65,536).
std::optional<std::vector<std::uint16_t>> indices_from_json(const Json &list, std::size_t most, std::size_t end);
// Sorted, each once.
void sort_indices(std::vector<std::uint16_t> &indices);

} // namespace sk8::core

#endif
