// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A YAML tree as text again: in flow style, as JSON has it, everything quoted.
#ifndef SK8_TEST_FUZZ_YAML_TEXT_H
#define SK8_TEST_FUZZ_YAML_TEXT_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/text.h"
#include "lib/base/yaml.h"

namespace sk8::fuzz {

// text: valid UTF-8. In double quotes, every character but plain ones by its number.
inline std::string quoted(std::string_view text)
{
	std::string out = "\"";
	for (std::size_t i = 0; i < text.size();) {
		const auto first = static_cast<unsigned char>(text[i]);
		const int more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
		std::uint32_t code = more == 0 ? first : first & (0x3fu >> more);
		for (int k = 1; k <= more; k++)
			code = code << 6 | (static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]) & 0x3fu);
		i += static_cast<std::size_t>(more) + 1;
		const bool plain = (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
				   (code >= '0' && code <= '9') || code == '-' || code == '.';
		out += plain ? std::string(1, static_cast<char>(code)) : strprintf("\\U%08x", code);
	}
	return out + '"';
}

// Appends the tree to out.
inline void write(const YamlNode &node, std::string &out)
{
	const char *separator = "";
	switch (node.kind) {
	case YamlNode::Kind::scalar:
		out += node.is_null() ? "~" : quoted(node.text);
		return;
	case YamlNode::Kind::sequence:
		out += '[';
		for (const YamlNode &item : node.items) {
			out += std::exchange(separator, ", ");
			write(item, out);
		}
		out += ']';
		return;
	case YamlNode::Kind::mapping:
		out += '{';
		for (const YamlMember &member : node.members) {
			out += std::exchange(separator, ", ") + quoted(member.key) + ": ";
			write(member.value, out);
		}
		out += '}';
		return;
	}
}

} // namespace sk8::fuzz

#endif
