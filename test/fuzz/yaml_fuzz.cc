// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// YAML: there is a tree or a problem, never both or neither; trees keep their limits,
// and written down in another style they are read as the same tree.
#include <algorithm>

#include "lib/base/text.h"
#include "lib/base/yaml.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/yaml_text.h"

using namespace sk8;
using namespace sk8::fuzz;

namespace {

constexpr std::size_t longest_key = 900; // libyaml looks ahead 1024 characters for the colon

bool same(const YamlNode &a, const YamlNode &b)
{
	if (a.kind != b.kind || a.items.size() != b.items.size() || a.members.size() != b.members.size() ||
	    a.is_null() != b.is_null() || (!a.is_null() && a.text != b.text))
		return false;
	const auto member = [](const YamlMember &x, const YamlMember &y) { return x.key == y.key && same(x.value, y.value); };
	return std::equal(a.items.begin(), a.items.end(), b.items.begin(), same) &&
	       std::equal(a.members.begin(), a.members.end(), b.members.begin(), member);
}

// Checks limits; whether every key is short enough for libyaml to be read again.
bool walk(const YamlNode &node, int depth, int lines)
{
	expect(depth <= max_yaml_depth, "a tree is not too deep");
	expect(node.line >= 1 && node.line <= lines, "a line is a line of the file", std::to_string(node.line));
	expect(is_valid_utf8(node.text), "text is UTF-8", node.text);
	bool short_keys = true;
	for (const YamlNode &item : node.items)
		short_keys &= walk(item, depth + 1, lines);
	for (const YamlMember &member : node.members) {
		expect(node.find(member.key) == &member.value, "a key is there once", member.key);
		short_keys &= quoted(member.key).size() <= longest_key && walk(member.value, depth + 1, lines);
	}
	return short_keys;
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	const std::string_view text(reinterpret_cast<const char *>(data), size);
	// CR, NEL, LS and PS end a line for libyaml too: at most one for each byte
	const int lines = static_cast<int>(size) + 1;
	std::vector<YamlProblem> problems;
	const std::optional<YamlNode> tree = parse_yaml(text, problems);
	expect(tree.has_value() == problems.empty(), "there is a tree or a problem", text);
	for (const YamlProblem &p : problems) {
		expect_sentence(p.what, 256);
		expect(p.line >= 0 && p.line <= lines, "a problem is in a line of the file", std::to_string(p.line));
	}
	if (!tree || !walk(*tree, 1, lines))
		return 0;
	std::string again;
	write(*tree, again);
	if (again.size() > max_yaml_bytes)
		return 0;
	const std::optional<YamlNode> copy = parse_yaml(again, problems);
	expect(copy && same(*tree, *copy), "written in another style it is the same tree", again);
	return 0;
}
