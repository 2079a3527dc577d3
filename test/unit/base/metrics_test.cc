// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/metrics.h"

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "test/unit/catch.h"

using sk8::Histogram;
using sk8::HistogramReading;

TEST_CASE("metrics: a name is one counter, shown by name")
{
	sk8::counter("test_b").add();
	sk8::counter("test_b").add(4);
	sk8::histogram("test_a").record(10);
	sk8::histogram("test_a").record(20);
	CHECK(&sk8::counter("test_b") == &sk8::counter("test_b"));
	const std::vector<std::string> lines = sk8::metric_lines();
	const auto a = std::find(lines.begin(), lines.end(),
				 "test_a count=2 sum=30 p50=10 p99=20 max=20");
	REQUIRE(a != lines.end());
	CHECK(a[1] == "test_b 5");
}

TEST_CASE("metrics: small and extreme values")
{
	Histogram h;
	CHECK(h.read().p99 == 0);
	h.record(0);
	CHECK(h.read().p99 == 0);
	CHECK(h.read().count == 1);
	h.reset();
	for (std::uint64_t v = 0; v < 16; v++)
		h.record(v);
	CHECK(h.read().p50 == 7);
	CHECK(h.read().max == 15);
	h.reset();
	h.record(UINT64_MAX);
	CHECK(h.read().max == UINT64_MAX);
	CHECK(h.read().p50 == UINT64_MAX);
}

TEST_CASE("metrics: percentiles are never below the truth and at most an eighth above")
{
	std::mt19937_64 random(7);
	for (int round = 0; round < 200; round++) {
		Histogram h;
		std::vector<std::uint64_t> values(1 + random() % 300);
		for (std::uint64_t &v : values) {
			v = random() >> (random() % 64);
			h.record(v);
		}
		std::sort(values.begin(), values.end());
		const HistogramReading r = h.read();
		for (const auto &[percent, got] : {std::pair{50, r.p50}, std::pair{99, r.p99}}) {
			const std::size_t rank = (values.size() * static_cast<std::size_t>(percent) + 99) / 100;
			const std::uint64_t truth = values[rank - 1];
			CAPTURE(round, percent, got, truth);
			REQUIRE(got >= truth);
			REQUIRE(got - truth <= truth / 8);
		}
		REQUIRE(r.count == values.size());
		REQUIRE(r.max == values.back());
	}
}

TEST_CASE("metrics: nothing is lost between threads")
{
	Histogram h;
	std::vector<std::thread> threads;
	for (int t = 0; t < 4; t++)
		threads.emplace_back([&h] {
			for (std::uint64_t i = 0; i < 10000; i++) {
				h.record(i);
				sk8::counter("test_threads").add();
			}
		});
	for (std::thread &t : threads)
		t.join();
	CHECK(h.read().count == 40000);
	CHECK(h.read().max == 9999);
	CHECK(sk8::counter("test_threads").get() == 40000);
}
