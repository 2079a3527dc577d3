// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// ContainerAllocateResponse as device plugins write it (deviceplugin/v1beta1/api.proto).
#ifndef SK8_TEST_UNIT_AGENT_ANSWERS_H
#define SK8_TEST_UNIT_AGENT_ANSWERS_H

#include <string>

namespace sk8::agent::test {

inline std::string varint(std::size_t n)
{
	std::string out;
	for (; n > 0x7f; n >>= 7)
		out += static_cast<char>((n & 0x7f) | 0x80);
	return out + static_cast<char>(n);
}

// One that has bytes.
inline std::string field(unsigned number, const std::string &bytes)
{
	return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

inline std::string variable(const std::string &name, const std::string &value)
{
	return field(1, field(1, name) + field(2, value));
}

inline std::string mount(const std::string &inside, const std::string &outside)
{
	return field(2, field(1, inside) + field(2, outside) + std::string("\x18\x01", 2));
}

inline std::string device(const std::string &inside, const std::string &outside, const std::string &permissions)
{
	return field(3, field(1, inside) + field(2, outside) + field(3, permissions));
}

inline std::string annotation(const std::string &name, const std::string &value)
{
	return field(4, field(1, name) + field(2, value));
}

} // namespace sk8::agent::test

#endif
