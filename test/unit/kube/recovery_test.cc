// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/recovery.h"

#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;
using Next = Recovery::Next;

namespace {

constexpr Millis start{1'000'000}, minute{60'000};

Recovery fresh()
{
	return Recovery({}, {.first = Millis(800), .most = Millis(10'000)});
}

Json status(const char *text)
{
	return *Json::parse(text);
}

} // namespace

TEST_CASE("recovery: what is tried again in place, and what leads to a list")
{
	const struct {
		int code;
		const char *status;
		Next next;
		Millis delay;
	} rows[] = {
		{0, "{}", Next::check, Millis(800)},	{401, "{}", Next::check, Millis(800)},
		{403, "{}", Next::check, Millis(800)},	{429, "{}", Next::check, Millis(800)},
		{500, "{}", Next::check, Millis(800)},	{503, "{}", Next::check, Millis(800)},
		{302, "{}", Next::list, Millis(800)},	{400, "{}", Next::list, Millis(800)},
		{404, "{}", Next::list, Millis(800)},	{409, "{}", Next::list, Millis(800)},
		{422, "{}", Next::list, Millis(800)},	{410, "{}", Next::list, Millis(0)},
		{504, R"({"message":"Too large resource version: 9, current: 5"})", Next::list, Millis(0)},
		{504, R"({"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}})", Next::list, Millis(0)},
	};
	for (const auto &row : rows) {
		CAPTURE(row.code, row.status);
		const auto step = fresh().refused(start, row.code, status(row.status), {});
		CHECK(step.next == row.next);
		CHECK(step.delay == row.delay);
		CHECK(step.lost);
		CHECK_FALSE(step.asked_to_wait);
	}
}

TEST_CASE("recovery: five refusals with 5xx in a row lead to a list, others never do")
{
	for (int code : {503, 403, 0}) {
		Recovery r = fresh();
		for (int i = 0; i < 4; i++)
			CHECK(r.refused(start, code, Json(), {}).next == Next::check);
		CHECK(r.refused(start, code, Json(), {}).next == (code == 503 ? Next::list : Next::check));
	}
	Recovery r = fresh();
	for (int i = 0; i < 10; i++) {
		CHECK(r.refused(start, 503, Json(), {}).next == Next::check);
		r.works();
	}
}

TEST_CASE("recovery: a server that wants more time gets it, one that wants less does not shorten the pause")
{
	const auto longer = fresh().refused(start, 429, Json(), minute);
	CHECK(longer.delay == minute);
	CHECK(longer.asked_to_wait);
	CHECK(fresh().list_failed(start, Millis(1)).delay == Millis(800));
}

TEST_CASE("recovery: the place in the stream may be lost once, after whatever else failed; soon again there is a pause")
{
	Recovery r = fresh();
	for (int i = 0; i < 5; i++)
		r.refused(start, 0, Json(), {});
	CHECK(r.expired(start).delay == Millis(0));
	CHECK(r.expired(start).delay == Millis(1600));
	CHECK(r.expired(start + 10 * minute).delay == Millis(0));
}

TEST_CASE("recovery: a watch that ends is gone on with, but not more than once a second")
{
	Recovery r = fresh();
	const Recovery::Ended agreed{minute, true, true}, early{minute, true, false}, news{Millis(300), true, false}, nothing{Millis(300), false, false};
	CHECK(r.ended(start, agreed).next == Next::watch);
	CHECK(r.ended(start, early).next == Next::check);
	CHECK(r.ended(start, news).delay == Millis(0));
	CHECK(r.ended(start, news).delay == Millis(700));
	CHECK(r.ended(start, news).delay == Millis(700));
	CHECK_FALSE(r.ended(start, news).lost);
	CHECK(r.ended(start, agreed).delay == Millis(0));
	CHECK_FALSE(r.ended(start, nothing).lost);
	CHECK(r.ended(start, nothing).delay == Millis(1600));
	CHECK(r.ended(start, nothing).lost);
}

TEST_CASE("recovery: who did not answer for a minute may have been restored, who refused was there")
{
	Recovery r = fresh();
	r.refused(start, 403, Json(), {});
	CHECK(r.after_pause(Next::check, 10 * minute) == Next::check);
	r.refused(start, 0, Json(), {});
	CHECK(r.after_pause(Next::check, Millis(59'999)) == Next::check);
	CHECK(r.after_pause(Next::check, minute) == Next::list);
	r.list_begins();
	CHECK(r.after_pause(Next::check, minute) == Next::check);
}
