// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/recent.h"

#include "test/unit/catch.h"

using namespace sk8;

namespace {

std::vector<std::string> lines;

// Collects lines while it lives.
struct Sink {
	explicit Sink(LogLevel max)
	{
		lines.clear();
		set_log_sink([](LogLevel level, const char *text) {
			lines.push_back(std::to_string(static_cast<int>(level)) + " " + text);
		}, max);
	}
	~Sink()
	{
		set_log_override({});
		set_log_sink(nullptr, LogLevel::info);
	}
};

} // namespace

TEST_CASE("recent: errors and warnings are kept, repetitions counted, the oldest forgotten")
{
	Sink sink(LogLevel::info);
	log_info("not this one");
	log_error("first %d", 1);
	log_warning("twice");
	log_warning("twice");
	auto got = recent_trouble();
	REQUIRE(got.size() >= 2);
	CHECK(got[got.size() - 2].text == "first 1");
	CHECK(got[got.size() - 2].level == LogLevel::error);
	CHECK(got.back().text == "twice");
	CHECK(got.back().times == 2);
	CHECK(got.back().at > 1'700'000'000);

	for (int i = 0; i < 50; i++)
		log_error("number %d", i);
	got = recent_trouble();
	CHECK(got.size() == 20);
	CHECK(got.front().text == "number 30");
	CHECK(got.back().text == "number 49");

	log_error("%s", std::string(5000, 'x').c_str());
	CHECK(recent_trouble().back().text.size() <= 500);
}

TEST_CASE("log: our own debug flag shows debug lines at info, and only while it is set")
{
	Sink sink(LogLevel::info);
	log_debug("one");
	set_log_override(LogLevel::verbose);
	CHECK(log_override() == LogLevel::verbose);
	log_debug("two");
	log_verbose("three\nlines");
	set_log_override(LogLevel::debug);
	log_debug("four");
	log_error("five");
	set_log_override({});
	log_debug("six");
	CHECK_FALSE(log_override());
	CHECK(lines == std::vector<std::string>{"2 verbose: three\\x0alines", "2 debug: four", "0 five"});
}

TEST_CASE("log: our own debug flag raises lines that the host would keep by its own level too")
{
	// the host's level may be lowered at run time: at info they are kept all the same
	Sink sink(LogLevel::debug);
	set_log_override(LogLevel::debug);
	log_debug("one");
	CHECK(lines == std::vector<std::string>{"2 debug: one"});
}
