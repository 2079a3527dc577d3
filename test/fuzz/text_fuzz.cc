// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Text helpers: escaping for logs, UTF-8, base64, hexadecimal, patterns, URLs, label
// selectors, lists of nodes.
#include <algorithm>
#include <array>

#include "lib/base/node_list.h"
#include "lib/base/text.h"
#include "lib/core/placement.h"
#include "lib/kube/url.h"
#include "test/fuzz/fuzz.h"

using namespace sk8;
using namespace sk8::fuzz;

namespace {

void check_one_line(std::string_view text, std::size_t most)
{
	const std::string line = one_line(text, most);
	expect(line.size() <= most, "a line keeps its limit", line);
	expect(is_valid_utf8(line), "a line is UTF-8", line);
	expect(one_line(line, 4 * most + 8) == line && is_printable(line), "nothing is left to escape", line);
	for (const char c : line)
		expect(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a line has no control character", line);
	expect(is_printable(text) == (one_line(text, 4 * text.size() + 8) == text), "what is printable stays as it is", text);
	const std::string valid = valid_utf8(text);
	expect(is_valid_utf8(valid) && (valid == text) == is_valid_utf8(text), "UTF-8 is mended where it is broken", text);
}

void check_codes(std::string_view text)
{
	const std::string base64 = base64_encode(text), hex = hex_encode(text);
	expect(base64_decode(base64, text.size()).value_or("?") == text, "base64 comes back", base64);
	expect(hex_decode(hex, text.size()).value_or("?") == text, "hexadecimal comes back", hex);
	if (!text.empty())
		expect(!base64_decode(base64, text.size() - 1) && !hex_decode(hex, text.size() - 1), "limits are kept");
	if (const auto bytes = base64_decode(text, 1 << 16)) {
		std::string plain(text);
		std::erase_if(plain, [](char c) { return c == '\r' || c == '\n'; });
		expect(base64_encode(*bytes) == plain, "only one text stands for these bytes", text);
	}
}

// The definition, in a table of pattern * text.
bool matches_glob(std::string_view p, std::string_view t)
{
	static std::array<std::array<bool, 65>, 65> m;
	for (std::size_t i = p.size() + 1; i-- > 0;)
		for (std::size_t k = t.size() + 1; k-- > 0;) {
			if (i == p.size())
				m[i][k] = k == t.size();
			else if (p[i] == '*')
				m[i][k] = m[i + 1][k] || (k < t.size() && m[i][k + 1]);
			else
				m[i][k] = k < t.size() && (p[i] == '?' || p[i] == t[k]) && m[i + 1][k + 1];
		}
	return m[0][0];
}

void check_glob(std::string_view text, std::size_t at)
{
	const std::string_view pattern = text.substr(0, std::min(at, text.size())).substr(0, 64);
	const std::string_view rest = text.substr(std::min(at, text.size())).substr(0, 64);
	expect(glob_match(pattern, rest) == matches_glob(pattern, rest), "a pattern matches as defined", text);
	expect(glob_match("*", text), "* matches all");
}

std::string percent_decode(std::string_view text)
{
	std::string out;
	for (std::size_t i = 0; i < text.size(); i++) {
		if (text[i] != '%') {
			out += text[i];
			continue;
		}
		out += hex_decode(text.substr(i + 1, 2), 1).value_or("");
		i += 2;
	}
	return out;
}

void check_url(std::string_view text)
{
	const std::string encoded = kube::percent_encode(text);
	expect(percent_decode(encoded) == text, "an encoded text comes back", encoded);
	const std::string path = kube::resource_path(kube::pods_resource, text, text, "binding");
	const std::size_t slashes = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
	expect(slashes == (text.empty() ? 4u : 7u), "no name adds a folder", path);
	expect(path.find_first_of("?#\\ ") == path.npos && path.find("/../") == path.npos && path.find("/./") == path.npos,
	       "no name leaves its place", path);
	const std::string query = kube::encode_query({{std::string(text), std::string(text)}});
	expect(query == "?" + encoded + "=" + encoded, "a query has one parameter", query);
}

void check_selector(std::string_view text)
{
	const auto term = core::parse_selector(std::string(text));
	if (!term)
		expect_sentence(term.error().message, 512);
	else
		for (const auto &r : *term)
			expect(!r.key.empty(), "a requirement is about a label", text);
}

void check_node_list(std::string_view text)
{
	const auto names = expand_nodes(text, 10'000);
	if (!names)
		return;
	const std::string list = compress_nodes(*names);
	expect(expand_nodes(list, names->size()) == names, "what is compressed expands to the same", list);
	expect(count_nodes(list) == names->size() && count_nodes(text) >= names->size(), "each stands there once", list);
	for (const auto &name : *names)
		expect(has_node(list, name) && has_node(text, name), "each is found", list);
	expect(names->empty() ? first_node(text).empty() : names->contains(first_node(text)), "the first is one of them", text);
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	Input input(data, size);
	const unsigned n = input.byte();
	const std::string_view text = input.rest();
	check_one_line(text, 8 + n);
	check_codes(text);
	check_glob(text, n);
	check_url(text);
	check_selector(text);
	check_node_list(text);
	return 0;
}
