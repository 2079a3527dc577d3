// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// YAML text as a small tree with line numbers, for configuration and kubeconfig
// (JSON is YAML, so both forms of a kubeconfig are read).
// Refused: aliases (a few bytes could become gigabytes), tags other than !!str,
// several documents, keys that are not scalars, duplicate keys, depth above 32,
// text above 1 MiB, more than 100000 nodes.
#ifndef SK8_BASE_YAML_H
#define SK8_BASE_YAML_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace sk8 {

struct YamlMember;

// A value, immutable once parsed. Lines count from 1.
struct YamlNode {
	enum class Kind { scalar, sequence, mapping };
	Kind kind = Kind::scalar;
	int line = 0;
	std::string text;         // scalar: its text after unquoting
	bool plain = true;        // scalar without quotes: null, true, 5 mean what they say
	std::vector<YamlNode> items;     // sequence
	std::vector<YamlMember> members; // mapping, in the order of the file

	bool is_scalar() const { return kind == Kind::scalar; }
	bool is_sequence() const { return kind == Kind::sequence; }
	bool is_mapping() const { return kind == Kind::mapping; }
	// Nothing after the colon, ~ or null.
	bool is_null() const;
	// nullptr if this is no mapping or has no such key.
	const YamlNode *find(std::string_view key) const;
	// The member's text, or otherwise if it is absent, null or no scalar.
	std::string_view str(std::string_view key, std::string_view otherwise = {}) const;
};

struct YamlMember {
	std::string key;
	int line = 0; // of the key
	YamlNode value;
};

struct YamlProblem {
	int line = 0;
	std::string what; // one sentence
};

inline constexpr std::size_t max_yaml_bytes = 1024 * 1024;
inline constexpr int max_yaml_depth = 32;

// All that could be found is added to problems; nothing is returned if there was
// any. An empty text is a null scalar. Pure, any thread.
std::optional<YamlNode> parse_yaml(std::string_view text, std::vector<YamlProblem> &problems);
// The same with the first problem as "file:line: what".
Result<YamlNode> parse_yaml(std::string_view text, const std::string &file);

} // namespace sk8

#endif
