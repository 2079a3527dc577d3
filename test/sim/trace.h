// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What test/slurm/record_traces wrote down of a real Slurm, replayed through the model:
// the same hooks in the same order, the same outcomes, the same jobs.
#ifndef SK8_SIM_TRACE_H
#define SK8_SIM_TRACE_H

#include <string>

namespace sk8::sim {

// Empty if the model says the same; else the first line where it does not.
std::string replay_trace(const std::string &text);

} // namespace sk8::sim

#endif
