// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// JSON that Go's encoding/json takes and jansson does not. An API server keeps what stands in runtime.RawExtension (the
// parameters of a resource claim's drivers), and in maps of texts, as somebody has sent it, and what we cannot read would hide
// from us: a pod that runs, or a claim that has devices.
#ifndef SK8_BASE_JSON_MEND_H
#define SK8_BASE_JSON_MEND_H

#include <string>
#include <string_view>

#include "lib/base/json.h"
#include "lib/base/result.h"

namespace sk8 {

// The same text, but: a zero character (\u0000) and half of a surrogate pair are U+FFFD, bytes that are no UTF-8 are '?', integers
// are bounded by 64 bits, numbers that no double holds are 0, and what is nested deeper than max_mended_depth is null. Of a text
// that is no JSON something that is none. Linear in its size. Pure, any thread.
static constexpr int max_mended_depth = 512;
std::string mended_json(std::string_view text);

// As Json::parse(), and what that refuses once more as mended; of a name that is there twice the last one counts, as for Go.
Result<Json> parse_sent_json(std::string_view text);

} // namespace sk8

#endif
