// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/base64.h"

namespace kubesim {

std::string base64_url(const std::string &bytes)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	std::string out;
	unsigned bits = 0;
	int count = 0;
	for (unsigned char c : bytes) {
		bits = (bits << 8) | c;
		for (count += 8; count >= 6; count -= 6)
			out += letters[(bits >> (count - 6)) & 63];
	}
	if (count)
		out += letters[(bits << (6 - count)) & 63];
	return out;
}

std::string base64_decode(const std::string &text)
{
	std::string out;
	unsigned bits = 0;
	int count = 0;
	for (char c : text) {
		int v = c >= 'A' && c <= 'Z'   ? c - 'A'
			: c >= 'a' && c <= 'z' ? c - 'a' + 26
			: c >= '0' && c <= '9' ? c - '0' + 52
			: c == '-' || c == '+' ? 62
			: c == '_' || c == '/' ? 63
					       : -1;
		if (c == '=')
			break;
		if (v < 0)
			return {};
		bits = (bits << 6) | static_cast<unsigned>(v);
		if ((count += 6) >= 8)
			out += static_cast<char>((bits >> (count -= 8)) & 255);
	}
	return out;
}

} // namespace kubesim
