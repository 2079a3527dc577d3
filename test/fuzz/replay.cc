// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// <target>_fuzz [FILE...]
//
// Runs a fuzz target on saved inputs, without a fuzzer. No FILE: all of
// test/fuzz/seeds/<target> and test/fuzz/findings/<target>. Prints the name of each
// before it runs; exit 0: none of them is a finding (any more).
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "test/fuzz/fuzz.h"

namespace fs = std::filesystem;

static bool replay(const fs::path &path)
{
	std::ifstream file(path, std::ios::binary);
	if (!file) {
		std::fprintf(stderr, "cannot read %s\n", path.c_str());
		return false;
	}
	const std::string bytes((std::istreambuf_iterator<char>(file)), {});
	std::printf("%s\n", path.c_str());
	std::fflush(stdout);
	// of exactly this size: the sanitizer sees the first byte too many
	const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[bytes.size()]);
	std::memcpy(exact.get(), bytes.data(), bytes.size());
	LLVMFuzzerTestOneInput(exact.get(), bytes.size());
	return true;
}

// "lt-splitter_fuzz" -> "splitter"
static std::string target_of(const char *program)
{
	std::string name = fs::path(program).filename();
	if (name.starts_with("lt-"))
		name.erase(0, 3);
	return name.substr(0, name.rfind("_fuzz"));
}

int main(int argc, char **argv)
{
	std::set<fs::path> inputs(argv + 1, argv + argc);
	if (inputs.empty()) {
		const std::string target = target_of(argv[0]);
		for (const char *kind : {"seeds", "findings"})
			if (const fs::path folder = fs::path(TOP_SRCDIR "/test/fuzz") / kind / target; fs::exists(folder))
				for (const auto &entry : fs::directory_iterator(folder))
					inputs.insert(entry.path());
	}
	for (const fs::path &path : inputs)
		if (!replay(path))
			return 1;
	std::printf("%zu inputs replayed\n", inputs.size());
	return inputs.empty(); // a target without a seed is a mistake
}
