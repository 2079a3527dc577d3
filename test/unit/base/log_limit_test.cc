// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/log_limit.h"

#include <vector>

#include "test/unit/catch.h"

using namespace sk8;

namespace {

std::vector<std::string> lines;

void to_lines(LogLevel, const char *text)
{
	lines.emplace_back(text);
}

class TestClock final : public Clock {
public:
	Millis monotonic() const override { return now; }
	std::int64_t wall_seconds() const override { return 0; }
	Millis now{5'000};
};

// A limiter with a clock of its own; lines go to a vector.
struct Rig {
	Rig()
	{
		lines.clear();
		set_log_sink(to_lines, LogLevel::debug);
	}
	~Rig() { set_log_sink(nullptr, LogLevel::info); }

	// How many of count lines about the subject are written.
	unsigned say(const LogSite &where, LogLevel level, const std::string &subject, unsigned count)
	{
		unsigned written = 0;
		for (unsigned i = 0; i < count; i++)
			written += limiter.admit(where, level, subject, "cannot reach it");
		return written;
	}

	TestClock clock;
	LogLimiter limiter{clock};
	LogSite site, other;
};

constexpr Millis minute{60'000};

} // namespace

TEST_CASE("log limit: one pod that fails all the time has a few lines a minute, other pods have theirs")
{
	Rig r;
	CHECK(r.say(r.site, LogLevel::warning, "a", 1000) == LogLimiter::per_subject);
	CHECK(r.say(r.site, LogLevel::warning, "b", 2) == 2);
	CHECK(r.say(r.other, LogLevel::warning, "a", 2) == 2); // another thing about the same pod
}

TEST_CASE("log limit: what is left out is told once a minute, with an example")
{
	Rig r;
	r.say(r.site, LogLevel::warning, "a", 105);
	r.clock.now += minute - Millis(1);
	r.limiter.tell();
	CHECK(lines.empty());
	r.clock.now += Millis(1);
	r.limiter.tell();
	r.limiter.tell();
	CHECK(lines == std::vector<std::string>{
			       "100 similar lines suppressed in a minute, the last: cannot reach it"});
}

TEST_CASE("log limit: a new minute begins with what the last one left out")
{
	Rig r;
	r.say(r.site, LogLevel::warning, "a", 7);
	r.clock.now += minute;
	CHECK(r.say(r.site, LogLevel::warning, "a", 1) == 1);
	CHECK(lines.size() == 1);
	r.clock.now += minute;
	r.limiter.tell(); // nothing was left out in this one
	CHECK(lines.size() == 1);
}

TEST_CASE("log limit: a failing API server fills no log, however many pods and minutes")
{
	Rig r;
	unsigned written = 0;
	for (int m = 0; m < 10; m++) {
		for (int pod = 0; pod < 5000; pod++)
			written += r.say(r.site, LogLevel::warning, "pod " + std::to_string(pod), 3);
		r.clock.now += minute;
		r.limiter.tell();
	}
	CHECK(written == 10 * LogLimiter::per_site_trouble);
	CHECK(lines.size() == 10); // one a minute says how many more there were
}

TEST_CASE("log limit: the stories of thousands of pods are written whole")
{
	Rig r;
	unsigned written = 0;
	for (int pod = 0; pod < 3000; pod++)
		written += r.say(r.site, LogLevel::info, "pod " + std::to_string(pod), 2);
	CHECK(written == 6000);
	CHECK(r.say(r.site, LogLevel::info, "one more", 1) == 0);
}

TEST_CASE("log limit: debug is never limited")
{
	Rig r;
	CHECK(r.say(r.site, LogLevel::debug, "a", 1000) == 1000);
}

TEST_CASE("log limit: each place of the code is limited by itself, and what is dropped is counted")
{
	Rig r;
	const std::uint64_t before = log_lines_suppressed();
	for (int i = 0; i < 8; i++) {
		log_limited(LogLevel::warning, "a", "first %d", i);
		log_limited(LogLevel::warning, "a", "second %d", i);
	}
	CHECK(lines.size() == 2 * LogLimiter::per_subject);
	CHECK(lines[1] == "second 0");
	CHECK(log_lines_suppressed() - before == 6);
}
