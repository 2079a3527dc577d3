// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#ifndef KUBESIM_HANG_H
#define KUBESIM_HANG_H

#include "test/kubesim/options.h"

namespace kubesim {

// Accepts TCP connections and never answers, until SIGTERM. Returns an exit code.
int accept_and_hang(const Options &options);

} // namespace kubesim

#endif
