// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// From a case that breaks an invariant to a small one that breaks it too.
#ifndef SK8_SIM_SHRINK_H
#define SK8_SIM_SHRINK_H

#include "test/sim/case.h"

namespace sk8::sim {

// violation: of the case; the small one has the same but for numbers. Takes as many
// runs as it takes, some hundreds.
Case shrink(Case c, const std::string &violation);

} // namespace sk8::sim

#endif
