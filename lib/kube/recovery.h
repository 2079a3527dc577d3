// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What a reflector does after a list or a watch has ended, and when: the decisions
// alone, without a clock or a connection of its own. The rules are in recovery.cc.
// Times are monotonic. Not thread safe.
#ifndef SK8_KUBE_RECOVERY_H
#define SK8_KUBE_RECOVERY_H

#include <optional>

#include "lib/base/json.h"
#include "lib/kube/backoff.h"

namespace sk8::kube {

class Recovery {
public:
	enum class Next {
		list,  // all anew
		check, // is the server where it was? If so, watch
		watch, // from the last resourceVersion
	};
	struct Step {
		Next next;
		Millis delay{0};
		bool lost = true;           // objects may be out of date meanwhile
		bool asked_to_wait = false; // by the server
	};
	// Of a watch that ended without an error.
	struct Ended {
		Millis lasted{0};
		bool news = false;   // there were events
		bool agreed = false; // something came, and it ended when it was to end
	};

	// random: in [0, 1).
	Recovery(Random random, BackoffLimits limits);

	void list_begins();
	void works(); // the server has accepted a watch

	Step list_failed(Millis now, std::optional<Millis> retry_after);
	// A watch, or the check before it. code: 0 without an answer; status: the server's.
	Step refused(Millis now, int code, const Json &status, std::optional<Millis> retry_after);
	Step ended(Millis now, const Ended &how);
	// The place in the stream is gone, or it is behind what was seen.
	Step expired(Millis now);
	// Events that cannot be read.
	Step broken(Millis now) { return list_failed(now, {}); }
	// When the delay is over. lost_for: how long objects may have been out of date.
	Next after_pause(Next planned, Millis lost_for) const;

	// Longer watches are no busy loop.
	static constexpr Millis short_watch{1000};

private:
	Step again(Millis now, Next next, std::optional<Millis> retry_after);

	Backoff failures_, expiries_;
	int refusals_ = 0, short_watches_ = 0; // in a row
	bool no_answer_ = false;               // the last refusal was none, or no whole one
};

} // namespace sk8::kube

#endif
