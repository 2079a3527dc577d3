// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/exclusive_step.h"

namespace sk8::core {

namespace {

using Facts = ExclusiveFacts;
using Step = ExclusiveStep;

struct Row {
	bool (*applies)(const Facts &);
	Step step;
};

// The first that applies counts.
constexpr Row rows[] = {
	{[](const Facts &f) { return !f.known; }, Step::wait},
	{[](const Facts &f) { return f.stays; }, Step::refuse_pod},
	// it was to be had so when the job was placed, perhaps beside pods
	{[](const Facts &f) { return !f.enabled && f.crowded; }, Step::refuse_pod},
	{[](const Facts &f) { return !f.enabled; }, Step::open},
	{[](const Facts &f) { return f.too_late && (f.crowded || !f.tainted); }, Step::refuse_late},
	// first, so that what is evicted is not placed here again, and nothing comes after the last one has gone
	{[](const Facts &f) { return !f.tainted; }, Step::taint},
	{[](const Facts &f) { return f.crowded; }, Step::evict},
	{[](const Facts &) { return true; }, Step::open},
};

} // namespace

ExclusiveStep exclusive_step(const ExclusiveFacts &facts)
{
	for (const Row &row : rows)
		if (row.applies(facts))
			return row.step;
	return Step::wait;
}

bool wants_exclusive_taint(const ExclusiveUse &use, Millis idle)
{
	if (!use.enabled)
		return false;
	if (use.has_job)
		return true;
	// Nobody needs it now: it stays if it is there.
	return use.tainted && (!use.jobs_known || (!use.refused && use.free_for < idle));
}

} // namespace sk8::core
