// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How fields of hostile objects are read: bounded, and the first oddity is said in `problem`. Pure, any thread.
#ifndef SK8_KUBE_DECODE_H
#define SK8_KUBE_DECODE_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/kube/objects.h"

namespace sk8::kube {

inline constexpr std::size_t max_labels = 4096; // etcd's object limit comes first
inline constexpr std::size_t max_listed = 1024; // ports, volumes, tolerations, finalizers
inline constexpr std::size_t max_key = max_name + 1 + max_label_value;
inline constexpr std::int64_t max_seconds = std::numeric_limits<std::int32_t>::max();

// The first sentence stays.
void complain(std::string &problem, const std::string &sentence);
// For people: long texts end in "...", cut between two characters.
std::string shown(const Json &value);
// For the machine: what is too long is refused, never cut.
std::string word(const Json &value, std::size_t most, const char *what, std::string &problem);
bool countable(const Json &list, std::size_t most, const char *what, std::string &problem);
std::int64_t seconds(const Json &value); // since 1970; 0: none, or none that makes sense
std::int32_t small(const Json &value);
// Names become parts of paths, keys and log lines: nothing but what the API
// server accepts in them gets through.
bool is_name(std::string_view text);
std::map<std::string, std::string> decode_labels(const Json &labels, std::string &problem);
Result<Meta> decode_meta(const Json &object, const char *kind, std::string &problem);

} // namespace sk8::kube

#endif
