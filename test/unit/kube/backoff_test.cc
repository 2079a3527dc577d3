// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/backoff.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::kube;

TEST_CASE("delays double from 0.8 s and stay below 30 s whatever chance says")
{
	for (double chance : {0.0, 0.5, 0.999999}) {
		Backoff b([&] { return chance; });
		Millis now(0);
		const double steps[] = {800, 1600, 3200, 6400, 12800, 20000, 20000};
		for (double step : steps) {
			Millis d = b.next(now);
			CHECK(static_cast<double>(d.count()) >= step - 1);
			CHECK(static_cast<double>(d.count()) <= step * (1 + 0.5 * chance) + 1);
			CHECK(d <= Millis(30'000));
			now += d;
		}
	}
}

TEST_CASE("two healthy minutes make the first delay count again, less do not")
{
	Backoff b;
	CHECK(b.fresh(Millis(0)));
	CHECK(b.next(Millis(0)) == Millis(800));
	CHECK_FALSE(b.fresh(Millis(800)));
	CHECK(b.next(Millis(800 + 119'999)) == Millis(1600));
	CHECK(b.next(Millis(800 + 119'999 + 1600 + 120'000)) == Millis(800));
	b.reset();
	CHECK(b.fresh(Millis(0)));
}
