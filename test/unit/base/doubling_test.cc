// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/doubling.h"

#include <climits>

#include "test/unit/catch.h"

using namespace sk8;

TEST_CASE("doubling: each pause is twice the one before, and none is longer than the longest")
{
	struct Row {
		int failures;
		int pause; // ms
	};
	const Row row = GENERATE(Row{-1, 500}, Row{0, 500}, Row{1, 1'000}, Row{2, 2'000}, Row{5, 16'000}, Row{6, 30'000}, Row{40, 30'000},
				 Row{INT_MAX, 30'000});
	CAPTURE(row.failures);
	CHECK(doubled(Millis(500), Millis(30'000), row.failures) == Millis(row.pause));
}
