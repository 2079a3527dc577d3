// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/metrics.h"

namespace sk8::core {

Metrics &metrics()
{
	// Leaked: no static destructors.
	static auto *m = new Metrics{
		histogram("start_to_binding_ms"), histogram("fini_to_delete_ms"),
		histogram("created_to_bound_ms"), histogram("write_lock_held_us"),
		histogram("read_lock_held_us"),   counter("pods_bound"),
		counter("jobs_submitted"),
	};
	return *m;
}

} // namespace sk8::core
