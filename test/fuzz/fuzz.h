// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What all fuzz targets share. A target is one file with LLVMFuzzerTestOneInput();
// it asserts properties of what it calls, and a property that does not hold ends the
// program, as a crash does. libFuzzer drives it, or replay.cc does with saved inputs.
#ifndef SK8_TEST_FUZZ_FUZZ_H
#define SK8_TEST_FUZZ_FUZZ_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// The one entry of a target. data: size bytes of anybody's choice. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size);

namespace sk8::fuzz {

// A finding: prints the property that was broken, and what shows it, then aborts.
[[noreturn]] void finding(const char *property, std::string_view shown);

inline void expect(bool holds, const char *property, std::string_view shown = {})
{
	if (!holds)
		finding(property, shown);
}

// text goes to a log or to a person: one line, nothing invisible, at most so many bytes.
void expect_sentence(std::string_view text, std::size_t most);

// The input, taken from its front.
class Input {
public:
	Input(const std::uint8_t *data, std::size_t size)
		: rest_(reinterpret_cast<const char *>(data), size)
	{
	}
	unsigned byte() // 0 at the end
	{
		if (rest_.empty())
			return 0;
		const auto b = static_cast<unsigned char>(rest_[0]);
		rest_.remove_prefix(1);
		return b;
	}
	std::int64_t number() // of 8 bytes
	{
		std::uint64_t n = 0;
		for (int i = 0; i < 8; i++)
			n = n << 8 | byte();
		return static_cast<std::int64_t>(n);
	}
	std::string_view rest() const { return rest_; }

private:
	std::string_view rest_;
};

} // namespace sk8::fuzz

#endif
