// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/exposition.h"

#include <array>

#include "test/unit/catch.h"

using namespace sk8;

static std::string after_header(const Exposition &out)
{
	const std::string &text = out.text();
	const std::size_t at = text.find('\n', text.find('\n') + 1);
	return text.substr(at + 1);
}

TEST_CASE("exposition: a family has its help and type once, then its samples")
{
	const MetricInfo info{"x_total", MetricType::counter, {"verb", "code"}, "Counts\nlines \\ of \"x\"."};
	Exposition out;
	out.family(info);
	out.sample({"get", "200"}, 5);
	out.sample({"list", "0"}, 0);
	CHECK(out.text() == "# HELP x_total Counts\\nlines \\\\ of \"x\".\n"
			    "# TYPE x_total counter\n"
			    "x_total{verb=\"get\",code=\"200\"} 5\n"
			    "x_total{verb=\"list\",code=\"0\"} 0\n");
}

TEST_CASE("exposition: hostile values of labels stay inside their quotes")
{
	const MetricInfo info{"x", MetricType::gauge, {"name"}, "h"};
	Exposition out;
	out.family(info);
	out.sample({"a\"} 1\ny 2\\"}, 1);
	out.sample({"bad \xff utf-8"}, 1);
	CHECK(after_header(out) == "x{name=\"a\\\"} 1\\ny 2\\\\\"} 1\n"
				   "x{name=\"bad ? utf-8\"} 1\n");
}

TEST_CASE("exposition: numbers are read back as they were")
{
	const MetricInfo info{"x", MetricType::gauge, {}, "h"};
	for (double v : {0.1, 1.0 / 3, 1e300, 1234567890123.0, -2.5}) {
		Exposition out;
		out.family(info);
		out.sample({}, v);
		CAPTURE(out.text());
		CHECK(std::stod(after_header(out).substr(2)) == v);
	}
	Exposition out;
	out.family(info);
	out.sample({}, 1.0 / 0.0);
	CHECK(after_header(out) == "x +Inf\n");
}

TEST_CASE("exposition: buckets are cumulative, exact at their bounds, and end with all")
{
	static constexpr std::array<std::uint64_t, 3> bounds = {5, 100, 2500};
	Histogram h(bounds);
	for (std::uint64_t ms : {0, 5, 6, 100, 101, 2500, 99999})
		h.record(ms);
	const MetricInfo info{"x_seconds", MetricType::histogram, {"hook"}, "h"};
	Exposition out;
	out.family(info);
	out.histogram({"fini"}, h, 1e-3);
	CHECK(after_header(out) == "x_seconds_bucket{hook=\"fini\",le=\"0.005\"} 2\n"
				   "x_seconds_bucket{hook=\"fini\",le=\"0.1\"} 4\n"
				   "x_seconds_bucket{hook=\"fini\",le=\"2.5\"} 6\n"
				   "x_seconds_bucket{hook=\"fini\",le=\"+Inf\"} 7\n"
				   "x_seconds_sum{hook=\"fini\"} 102.711\n"
				   "x_seconds_count{hook=\"fini\"} 7\n");
}

TEST_CASE("exposition: a histogram without labels and values")
{
	static constexpr std::array<std::uint64_t, 1> bounds = {1000};
	const Histogram h(bounds);
	const MetricInfo info{"x_seconds", MetricType::histogram, {}, "h"};
	Exposition out;
	out.family(info);
	out.histogram({}, h, 1e-6);
	CHECK(after_header(out) == "x_seconds_bucket{le=\"0.001\"} 0\n"
				   "x_seconds_bucket{le=\"+Inf\"} 0\n"
				   "x_seconds_sum 0\nx_seconds_count 0\n");
}

TEST_CASE("counter family: however many values come, the series are bounded and nothing is lost")
{
	CounterFamily f(4);
	for (int i = 0; i < 100; i++)
		f.add({"get", std::to_string(i)});
	f.add({"get", "1"}, 5);
	std::vector<std::string> seen;
	std::uint64_t sum = 0;
	f.each([&](const CounterFamily::Values &v, std::uint64_t n) {
		seen.push_back(v[0] + " " + v[1]);
		sum += n;
	});
	CHECK(seen == std::vector<std::string>{"get 0", "get 1", "get 2", "other other"});
	CHECK(sum == 105);
}
