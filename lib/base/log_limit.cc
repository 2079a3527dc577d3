// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/log_limit.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "lib/base/metrics.h"

namespace sk8 {

static constexpr std::size_t max_subjects = 10'000; // of one site, remembered
static constexpr std::size_t max_last = 400;        // bytes of the line that is shown
static constexpr std::size_t max_line = 2048;

static Counter &suppressed_lines()
{
	static Counter &lines = counter("log_lines_suppressed");
	return lines;
}

bool LogLimiter::admit(const LogSite &site, LogLevel level, std::string_view subject, std::string_view line)
{
	if (level == LogLevel::debug)
		return true;
	const Millis now = clock_.monotonic();
	Window ended;
	bool admitted;
	{
		const std::lock_guard lock(mutex_);
		Window &w = windows_[&site];
		if (w.lines == 0 || now - w.began >= window) {
			std::swap(ended, w);
			w.began = now;
		}
		w.level = level;
		w.lines++;
		unsigned of_subject = 1;
		if (auto at = w.subjects.find(subject); at != w.subjects.end())
			of_subject = ++at->second;
		else if (w.subjects.size() < max_subjects)
			w.subjects.emplace(subject, 1);
		const bool trouble = level <= LogLevel::warning || level == LogLevel::verbose;
		const std::uint64_t written = w.lines - w.suppressed;
		admitted = of_subject <= per_subject && written <= (trouble ? per_site_trouble : per_site_story);
		if (!admitted) {
			w.suppressed++;
			w.last = line.substr(0, max_last);
		}
	}
	tell(ended);
	if (!admitted)
		suppressed_lines().add();
	return admitted;
}

void LogLimiter::tell()
{
	const Millis now = clock_.monotonic();
	std::vector<Window> ended;
	{
		const std::lock_guard lock(mutex_);
		for (auto &[site, w] : windows_)
			if (w.lines > 0 && now - w.began >= window) {
				ended.push_back(std::move(w));
				w = {};
			}
	}
	for (const Window &w : ended)
		tell(w);
}

void LogLimiter::tell(const Window &window)
{
	if (window.suppressed)
		log_line(window.level, "%llu similar lines suppressed in a minute, the last: %s",
			 static_cast<unsigned long long>(window.suppressed), window.last.c_str());
}

LogLimiter &log_limiter()
{
	// Leaked: no static destructors.
	static auto *const limiter = new LogLimiter(*new SystemClock);
	return *limiter;
}

std::uint64_t log_lines_suppressed()
{
	return suppressed_lines().get();
}

void log_limited_line(const LogSite &site, LogLevel level, std::string_view subject, const char *format, ...)
{
	const int saved_errno = errno;
	char line[max_line];
	std::va_list args;
	va_start(args, format);
	std::vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (log_limiter().admit(site, level, subject, line))
		log_line(level, "%s", line);
	errno = saved_errno;
}

} // namespace sk8
