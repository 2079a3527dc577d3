// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Asks the engine in slurmctld (lib/core/control.h says what).
#ifndef SK8_TOOLS_ASK_H
#define SK8_TOOLS_ASK_H

#include <string>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/result.h"

namespace sk8::tools {

// Blocks up to timeout. The answer is ok; what slurmctld refuses is an error.
Result<Json> ask(const std::string &state_dir, const Json &request, Millis timeout = Millis(10'000));

} // namespace sk8::tools

#endif
