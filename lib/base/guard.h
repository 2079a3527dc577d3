// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The exception barrier: every function that C code calls (hooks, curl and
// libyaml callbacks, thread functions) runs its body through guard().
#ifndef SK8_BASE_GUARD_H
#define SK8_BASE_GUARD_H

#include <cxxabi.h>
#include <exception>
#include <new>

#include "lib/base/log.h"

namespace sk8 {

// Runs f; whatever it throws is logged and becomes on_error. Not noexcept, and
// thread cancellation passes: swallowing it would abort the process.
template <class R, class F>
R guard(const char *where, R on_error, F &&f)
{
	try {
		return static_cast<F &&>(f)();
	} catch (abi::__forced_unwind &) {
		throw;
	} catch (const std::bad_alloc &) {
		log_error("%s: out of memory", where);
	} catch (const std::exception &e) {
		log_error("%s: %s", where, e.what());
	} catch (...) {
		log_error("%s: unknown exception", where);
	}
	return on_error;
}

template <class F>
void guard(const char *where, F &&f)
{
	guard(where, 0, [&] {
		static_cast<F &&>(f)();
		return 0;
	});
}

} // namespace sk8

#endif
