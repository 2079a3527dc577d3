// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The three kinds of patch that clients send. None changes its arguments.
#ifndef KUBESIM_PATCH_H
#define KUBESIM_PATCH_H

#include "test/kubesim/failure.h"
#include "test/kubesim/jv.h"

namespace kubesim {

J merge_patch(const J &target, const J &patch); // RFC 7386
Outcome<J> json_patch(const J &target, const J &patch); // RFC 6902
// Kubernetes' strategic merge: lists of the kinds we hold merge by their key, with
// $patch and $deleteFromPrimitiveList directives.
Outcome<J> strategic_merge(const J &target, const J &patch);

} // namespace kubesim

#endif
