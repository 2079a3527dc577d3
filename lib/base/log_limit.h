// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A failing API server must not flood the log of the process that we live in: of what
// one place of the code says about one subject (a pod), a few lines a minute are
// written, and of what it says about all subjects together a bounded number. How many
// were left out is told once a minute. Lines of level debug are never left out:
// whoever wants them wants all.
//
//	log_limited(LogLevel::warning, key.uid, "...", ...);
#ifndef SK8_BASE_LOG_LIMIT_H
#define SK8_BASE_LOG_LIMIT_H

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/log.h"

namespace sk8 {

// A place of the code; its address is what counts. Only as static objects: the
// limiter keeps the address for ever.
struct LogSite {
	char unused = 0;
};

class LogLimiter {
public:
	// All in one minute, which begins with a site's first line.
	static constexpr Millis window{60'000};
	static constexpr unsigned per_subject = 5;
	// What tells the story of a pod is said once or twice of each: many pods, many
	// lines. What goes wrong is the same for all.
	static constexpr unsigned per_site_story = 6'000, per_site_trouble = 60;

	// clock must live as long.
	explicit LogLimiter(const Clock &clock) : clock_(clock) {}

	// Any thread. Whether a line may be written now. line: for tell().
	bool admit(const LogSite &site, LogLevel level, std::string_view subject, std::string_view line);
	// Any thread: logs "N similar lines suppressed in a minute, the last: ..." for
	// each site whose minute is over. Cheap if there is nothing to tell.
	void tell();

private:
	struct Window {
		Millis began{0};
		LogLevel level = LogLevel::info;
		unsigned lines = 0;
		std::uint64_t suppressed = 0;
		std::string last; // that was suppressed
		std::map<std::string, unsigned, std::less<>> subjects;
	};
	static void tell(const Window &window);

	const Clock &clock_;
	std::mutex mutex_; // not held while a line is written
	std::map<const LogSite *, Window> windows_;
};

// The one of the process.
LogLimiter &log_limiter();
// Lines that were left out since the process began.
std::uint64_t log_lines_suppressed();

void log_limited_line(const LogSite &site, LogLevel level, std::string_view subject, const char *format,
		      ...) __attribute__((format(printf, 4, 5)));

// subject: std::string_view; "" if it is about nothing in particular.
#define log_limited(level, subject, ...) \
	do { \
		static const ::sk8::LogSite log_site_; \
		if (::sk8::log_enabled(level)) \
			::sk8::log_limited_line(log_site_, level, subject, __VA_ARGS__); \
	} while (0)

} // namespace sk8

#endif
