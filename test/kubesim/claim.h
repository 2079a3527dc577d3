// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the API server does with ResourceClaims beyond storing them.
// Source: Kubernetes v1.35, pkg/apis/resource/v1/defaults.go and pkg/apis/resource/validation.
#ifndef KUBESIM_CLAIM_H
#define KUBESIM_CLAIM_H

#include <vector>

#include "test/kubesim/failure.h"
#include "test/kubesim/jv.h"

namespace kubesim {

void default_claim(const J &claim);
// What is wanted never changes, and what is allocated is freed before it is another.
std::vector<FieldError> validate_claim_update(const J &now, const J &before);

} // namespace kubesim

#endif
