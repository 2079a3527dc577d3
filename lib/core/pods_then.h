// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How an answer finds its pod again. Only for pods_*.cc.
#ifndef SK8_CORE_PODS_THEN_H
#define SK8_CORE_PODS_THEN_H

#include "lib/core/pods_controller.h"

namespace sk8::core {

// The entry may be gone when the answer comes, or be about something else: then the
// answer is of no interest, since whatever it did will be seen in a list or watch.
template <class Reply>
std::function<void(const Reply &)> PodsController::then(Entry &e, Op op,
							void (PodsController::*f)(Entry &, const Reply &))
{
	return [this, uid = e.key.uid, op, f](const Reply &reply) {
		auto it = entries_.find(uid);
		if (it == entries_.end() || it->second.op != op)
			return;
		it->second.op = Op::none;
		(this->*f)(it->second, reply);
		sync(uid);
	};
}

} // namespace sk8::core

#endif
