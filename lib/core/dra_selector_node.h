// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What dra_selector_parser.cc makes of a text and dra_selector.cc computes with.
#ifndef SK8_CORE_DRA_SELECTOR_NODE_H
#define SK8_CORE_DRA_SELECTOR_NODE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/result.h"
#include "lib/kube/dra_objects.h"

namespace sk8::core {

struct SelectorQuantity {
	std::int64_t milli = 0;
};
// device, device.attributes, device.attributes["domain"]
struct SelectorDevice {};
struct SelectorGroup {
	bool capacity = false;  // or attributes
	bool has_domain = false;
	std::string domain;
};
struct SelectorValue;
using SelectorList = std::vector<SelectorValue>;
struct SelectorValue {
	std::variant<bool, std::int64_t, std::string, kube::Version, SelectorQuantity, SelectorDevice, SelectorGroup, SelectorList> is;
};

struct SelectorNode {
	enum class Kind {
		literal,     // value
		name,        // name: device, or what cel.bind() has named
		member,      // args[0].name
		index,       // args[0][args[1]]
		list,        // [args...]
		negation,    // !args[0]
		minus,       // -args[0]
		all, any,    // args joined by && or ||
		compare,     // args[0] name args[1]
		conditional, // args[0] ? args[1] : args[2]
		has,         // has(args[0]), which is a member
		bind,        // cel.bind(name, args[0], args[1])
		call,        // name(args...), or of args[0] if method
	} kind = Kind::literal;
	std::string name;
	SelectorValue value{};
	std::vector<SelectorNode> args{};
	bool method = false;
};

// Deeper than anybody writes; nodes are computed and destroyed one within the other.
inline constexpr std::size_t max_selector_depth = 64;

Result<SelectorNode> parse_selector(std::string_view text);
// Is there such a function, of so many arguments (without its receiver)?
bool is_selector_function(const std::string &name, bool method, std::size_t args);

} // namespace sk8::core

#endif
