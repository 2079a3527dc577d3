// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Rules that hold for the objects of every kind.
#ifndef KUBESIM_META_H
#define KUBESIM_META_H

#include <string>
#include <vector>

#include "test/kubesim/failure.h"
#include "test/kubesim/jv.h"
#include "test/kubesim/kinds.h"

namespace kubesim {

std::string new_uid();
std::string random_suffix(); // what generateName appends

// Deletes null members (but for times that the real server writes as null).
void prune_nulls(J value);

std::vector<FieldError> validate_meta(const Kind &kind, const J &object);
// Defaults of all kinds but pods; false if a quantity cannot be read.
bool default_object(const Kind &kind, J object);
// Wrong labels or annotations are refused while decoding, with 400.
std::string malformed(const Kind &kind, const J &object); // what is wrong, or ""

} // namespace kubesim

#endif
