// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Runs Slurm's own commands: what they print is stable, and libslurm, whose version
// must fit, is not linked. No shell.
#ifndef SK8_TOOLS_RUN_H
#define SK8_TOOLS_RUN_H

#include <functional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/result.h"

namespace sk8::tools {

// Blocks up to timeout, then kills it. argv[0] is looked for in PATH and where
// administrators' programs are. The result is its stdout, at most 64 MiB; ending with
// another code than 0 is an error with the last line of what it said.
Result<std::string> run_program(const std::vector<std::string> &argv, Millis timeout = Millis(15'000));

// In tests: something else.
using Runner = std::function<Result<std::string>(const std::vector<std::string> &argv)>;

} // namespace sk8::tools

#endif
