// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Names of nodes for tests of lists of them: few of each kind, so that many follow each other.
#ifndef SK8_TEST_NODE_NAMES_H
#define SK8_TEST_NODE_NAMES_H

#include <random>
#include <set>
#include <string>

namespace sk8::test {

inline std::set<std::string> some_nodes(unsigned seed)
{
	std::mt19937 random(seed);
	const auto below = [&random](unsigned n) { return static_cast<std::size_t>(random() % n); };
	static const char *const prefixes[] = {"n", "n1", "n-", "rack-a.n", "r2n", "login"};
	static const char *const suffixes[] = {"", "", "", "", "", "-ib", "x"};
	std::set<std::string> out;
	for (std::size_t i = below(60); i > 0; i--) {
		std::string digits = std::to_string(below(4) ? below(30) : 90 + below(20));
		if (const std::size_t width = below(5); digits.size() < width)
			digits.insert(0, width - digits.size(), '0');
		out.insert(prefixes[below(6)] + (below(20) ? digits : "") + suffixes[below(7)]);
	}
	return out;
}

} // namespace sk8::test

#endif
