// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// For the programs that print manual pages.
#ifndef SK8_DOC_ROFF_H
#define SK8_DOC_ROFF_H

#include <string>

// Text for roff: nothing in it is a request or an escape.
inline std::string roff(const std::string &text)
{
	std::string out;
	for (char c : text) {
		if (c == '\\')
			out += "\\e";
		else if (c == '-')
			out += "\\-";
		else if (c == '\'' && !out.empty())
			out += "\\(aq";
		else
			out += c;
	}
	return !out.empty() && (out[0] == '.' || out[0] == '\'') ? "\\&" + out : out;
}

#endif
