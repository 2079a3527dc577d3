// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A call of the API in words. Pure, any thread.
#ifndef SK8_KUBE_CALL_TEXT_H
#define SK8_KUBE_CALL_TEXT_H

#include <string>
#include <string_view>

namespace sk8::kube {

struct Target {
	std::string resource; // pods/binding
	std::string ns;       // may be empty
	std::string object;   // ml/web-1, or the namespace alone
};

// path: of resource_path().
Target target_of(std::string_view path);

// "Not Found"; never empty.
const char *reason_phrase(int status);

} // namespace sk8::kube

#endif
