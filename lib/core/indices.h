// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What others may have written, the saved ledger and annotations: lists of small numbers (cores, devices) in it. Pure.
#ifndef SK8_CORE_INDICES_H
#define SK8_CORE_INDICES_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/result.h"

namespace sk8::core {

// An annotation's text. Error: it has more than `most` bytes or is no JSON.
Result<Json> parse_annotation_json(std::string_view text, std::size_t most);
Json indices_to_json(const std::vector<std::uint16_t> &indices);
// As they stand there. Nothing: it is no list, has more than `most`, or one that is not below `end` (at most 65,536).
std::optional<std::vector<std::uint16_t>> indices_from_json(const Json &list, std::size_t most, std::size_t end);
// Sorted, each once.
void sort_indices(std::vector<std::uint16_t> &indices);

} // namespace sk8::core

#endif
