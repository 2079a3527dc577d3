// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Parts of generated cases that are added to what make_case.cc makes.
#ifndef SK8_SIM_MAKE_MORE_H
#define SK8_SIM_MAKE_MORE_H

#include "test/sim/case.h"
#include "test/sim/dice.h"

namespace sk8::sim {

// length: when all that people do has begun. The order of the actions is put right afterwards.
void add_preemption(Case &c, Dice &dice, Micros length);
void add_static_pods(Case &c, Dice &dice, Micros length);
// Of the pods that the case has already.
void add_resizes(Case &c, Dice &dice, Micros length);
// The same; chance of its own.
void make_claims(Case &c, Micros length);

} // namespace sk8::sim

#endif
