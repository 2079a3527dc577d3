// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/fuzz/fuzz.h"

#include <cstdio>
#include <cstdlib>

#include "lib/base/text.h"

namespace sk8::fuzz {

void finding(const char *property, std::string_view shown)
{
	std::fprintf(stderr, "FINDING: not so: %s: %s\n", property, one_line(shown, 4096).c_str());
	std::abort();
}

void expect_sentence(std::string_view text, std::size_t most)
{
	expect(!text.empty(), "there is a sentence");
	expect(text.size() <= most, "a sentence has an end", text);
	expect(one_line(text, 4 * text.size() + 8) == text, "a sentence is one printable line", text);
}

} // namespace sk8::fuzz
