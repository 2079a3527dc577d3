// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What is logged by any thread, for tests that wait for it.
#ifndef SK8_TEST_UNIT_CORE_LOG_LINES_H
#define SK8_TEST_UNIT_CORE_LOG_LINES_H

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/log.h"

namespace log_lines {

inline std::mutex mutex;
inline std::condition_variable logged;
inline std::vector<std::string> lines;

// For set_log_sink().
inline void keep(sk8::LogLevel, const char *text)
{
	const std::lock_guard lock(mutex);
	lines.emplace_back(text);
	logged.notify_all();
}

inline void forget()
{
	const std::lock_guard lock(mutex);
	lines.clear();
}

inline std::ptrdiff_t count_locked(const std::string &part)
{
	return std::ranges::count_if(lines, [&](const std::string &l) { return l.find(part) != l.npos; });
}

} // namespace log_lines

inline std::ptrdiff_t count_lines(const std::string &part)
{
	const std::lock_guard lock(log_lines::mutex);
	return log_lines::count_locked(part);
}

inline bool wait_for_line(const std::string &part)
{
	std::unique_lock lock(log_lines::mutex);
	return log_lines::logged.wait_for(lock, std::chrono::seconds(20), [&] { return log_lines::count_locked(part) > 0; });
}

#endif
