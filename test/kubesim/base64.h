// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#ifndef KUBESIM_BASE64_H
#define KUBESIM_BASE64_H

#include <string>

namespace kubesim {

std::string base64_url(const std::string &bytes);   // URL alphabet, no padding
std::string base64_decode(const std::string &text); // either alphabet; "" if wrong

} // namespace kubesim

#endif
