// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The little protobuf that kubectl insists on: `kubectl auth can-i` sends its
// SelfSubjectAccessReview in no other form. All other protobuf bodies get 415.
#ifndef KUBESIM_PROTOBUF_H
#define KUBESIM_PROTOBUF_H

#include <string>

#include "test/kubesim/jv.h"

namespace kubesim {

// The review as JSON; absent if the bytes are not one.
J decode_access_review(const std::string &body);

} // namespace kubesim

#endif
