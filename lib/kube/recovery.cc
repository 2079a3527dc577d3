// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
// What happened                        -> what is done
//   start                                 list
//   list complete                         hand it on, watch from its resourceVersion
//   list failed, or an event that cannot  back off (or Retry-After), list
//     be read
//   watch ended when it was agreed        watch from the last resourceVersion
//   ... earlier, or broke off, or is      check, watch from there, once a second at most
//     silent or overdue
//   ... after less than 1 s without news  back off, check, watch from there
//   watch refused: no answer for 60 s,    back off (or Retry-After), check, watch from
//     401, 403, 429, 5xx, also as an        there; after five times 5xx, or when there was
//     ERROR event                           no answer for a minute: list
//   410 by status or ERROR event, or a    list: the place is lost
//     resourceVersion the server does
//     not know yet, or an event or a
//     check that is older than what was
//     seen (it was restored)
//   any other refusal or ERROR event      back off, list
//   whoever takes a list fails            back off, list
//   ... takes an event                    the watch goes on behind it; back off, list
// The check: a server that was restored from a backup accepts a watch from a
// resourceVersion that is still to come and is silent until it comes (Kubernetes API
// concepts, "Unavailable resource versions"); what happens until then would never be
// seen. A list of one object tells where the server is.
#include "lib/kube/recovery.h"

#include <algorithm>
#include <utility>

namespace sk8::kube {

static constexpr Millis long_outage{60'000};   // in which a server could have been restored
static constexpr int max_refusals = 5;         // of a watch with 5xx, then a list
static constexpr int max_short_watches = 3;    // in a row, then it counts as lost

// A Status that says: from that resourceVersion nobody can go on.
static bool place_is_lost(int code, const Json &status)
{
	if (code == 410)
		return true;
	bool too_new = status["message"].str().find("Too large resource version") != std::string_view::npos;
	status["details"]["causes"].each_item([&](const Json &cause) {
		too_new = too_new || cause["reason"].str() == "ResourceVersionTooLarge";
	});
	return too_new;
}

// Another try of the same watch may succeed.
static bool may_pass(int code)
{
	return code == 0 || code == 401 || code == 403 || code == 429 || code >= 500;
}

Recovery::Recovery(Random random, BackoffLimits limits) : failures_(random, limits), expiries_(std::move(random), limits)
{
}

void Recovery::list_begins()
{
	no_answer_ = false;
	refusals_ = short_watches_ = 0;
}

void Recovery::works()
{
	refusals_ = 0;
}

Recovery::Step Recovery::again(Millis now, Next next, std::optional<Millis> retry_after)
{
	const Millis delay = std::max(failures_.next(now), retry_after.value_or(Millis(0)));
	return {.next = next, .delay = delay, .asked_to_wait = retry_after.has_value()};
}

Recovery::Step Recovery::list_failed(Millis now, std::optional<Millis> retry_after)
{
	return again(now, Next::list, retry_after);
}

Recovery::Step Recovery::refused(Millis now, int code, const Json &status, std::optional<Millis> retry_after)
{
	no_answer_ = code == 0;
	if (place_is_lost(code, status))
		return expired(now);
	const bool relist = !may_pass(code) || (code >= 500 && ++refusals_ >= max_refusals);
	return again(now, relist ? Next::list : Next::check, retry_after);
}

Recovery::Step Recovery::ended(Millis now, const Ended &how)
{
	if (how.lasted >= short_watch) {
		short_watches_ = 0;
		return {.next = how.agreed ? Next::watch : Next::check, .lost = false};
	}
	// However many news come: not more often than that.
	if (how.news)
		return {.next = Next::check,
			.delay = std::exchange(short_watches_, std::max(short_watches_, 1)) ? short_watch - how.lasted : Millis(0),
			.lost = false};
	short_watches_++;
	Step step = again(now, Next::check, {});
	step.lost = short_watches_ >= max_short_watches;
	return step;
}

// That happens to the best, and to all watches of a server that was started anew: only
// when it happens again soon there is a pause.
Recovery::Step Recovery::expired(Millis now)
{
	const bool first = expiries_.fresh(now);
	const Millis delay = expiries_.next(now);
	return {.next = Next::list, .delay = first ? Millis(0) : delay};
}

Recovery::Next Recovery::after_pause(Next planned, Millis lost_for) const
{
	return no_answer_ && lost_for >= long_outage ? Next::list : planned;
}

} // namespace sk8::kube
