// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Log lines go to one sink that the host process sets (slurmctld's log, a test's
// vector, stderr). Any thread may log. The sink must not block on anything but
// its own short lock and must not throw.
#ifndef SK8_BASE_LOG_H
#define SK8_BASE_LOG_H

#include <atomic>
#include <optional>
#include <string>

namespace sk8 {

enum class LogLevel { error, warning, info, verbose, debug };

// text: one line, no newline; control characters have been replaced.
using LogSink = void (*)(LogLevel level, const char *text);

// nullptr restores the default, stderr. Lines above the level are dropped early.
void set_log_sink(LogSink sink, LogLevel max_level);
// The same with a level that may change at any time: it is asked for each line, from
// any thread, also under locks of the host, so it must only read a variable.
void set_log_sink(LogSink sink, LogLevel (*max_level)());
bool log_enabled(LogLevel level);

// Our own debug flag, whatever the host logs: lines up to this level are written, at
// the level info (and its name before them) so that the host keeps them too. Nothing:
// off. Any thread.
void set_log_override(std::optional<LogLevel> level);
std::optional<LogLevel> log_override();

// printf-like; lines longer than 2 KiB are cut. Bytes below 0x20 and 0x7f that
// came in through arguments are written as \\xNN, so that hostile names cannot
// forge a line.
void log_line(LogLevel level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) ::sk8::log_line(::sk8::LogLevel::error, __VA_ARGS__)
#define log_warning(...) ::sk8::log_line(::sk8::LogLevel::warning, __VA_ARGS__)
#define log_info(...) ::sk8::log_line(::sk8::LogLevel::info, __VA_ARGS__)
#define log_verbose(...) ::sk8::log_line(::sk8::LogLevel::verbose, __VA_ARGS__)
#define log_debug(...) \
	do { \
		if (::sk8::log_enabled(::sk8::LogLevel::debug)) \
			::sk8::log_line(::sk8::LogLevel::debug, __VA_ARGS__); \
	} while (0)

} // namespace sk8

#endif
