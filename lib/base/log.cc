// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/log.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "lib/base/recent.h"
#include "lib/base/text.h"

namespace sk8 {

namespace {

constexpr std::size_t max_line = 2048;

// Constant initialised and trivially destroyed: usable at any time of the process.
std::atomic<LogSink> sink_{nullptr};
std::atomic<LogLevel> max_level_{LogLevel::info};
std::atomic<LogLevel (*)()> ask_level_{nullptr}; // instead of max_level_
std::atomic<int> override_{-1}; // a LogLevel, or -1: off

constexpr const char *names[] = {"error", "warning", "info", "verbose", "debug"};

void to_stderr(LogLevel level, const char *text)
{
	// One write per line, so that lines of several threads do not mix.
	std::fprintf(stderr, "slurm-k8s: %s: %s\n", names[static_cast<int>(level)], text);
}

// Lines that only our own flag lets through.
bool overridden(LogLevel level)
{
	return level > LogLevel::info && static_cast<int>(level) <= override_.load(std::memory_order_relaxed);
}

} // namespace

void set_log_sink(LogSink sink, LogLevel max_level)
{
	sink_.store(sink, std::memory_order_release);
	max_level_.store(max_level, std::memory_order_release);
	ask_level_.store(nullptr, std::memory_order_release);
}

void set_log_sink(LogSink sink, LogLevel (*max_level)())
{
	sink_.store(sink, std::memory_order_release);
	ask_level_.store(max_level, std::memory_order_release);
}

bool log_enabled(LogLevel level)
{
	auto *ask = ask_level_.load(std::memory_order_acquire);
	return level <= (ask ? ask() : max_level_.load(std::memory_order_relaxed)) || overridden(level);
}

void set_log_override(std::optional<LogLevel> level)
{
	override_.store(level ? static_cast<int>(*level) : -1, std::memory_order_relaxed);
}

std::optional<LogLevel> log_override()
{
	const int level = override_.load(std::memory_order_relaxed);
	return level < 0 ? std::nullopt : std::optional(static_cast<LogLevel>(level));
}

void log_line(LogLevel level, const char *format, ...)
{
	if (!log_enabled(level))
		return;

	// Buffers on the stack: "out of memory" must be loggable.
	const int saved_errno = errno;
	char raw[max_line], line[max_line];
	std::va_list args;
	va_start(args, format);
	int n = std::vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	std::size_t size = n < 0 ? 0 : static_cast<std::size_t>(n);
	const bool cut = size >= sizeof(raw);
	if (cut)
		size = sizeof(raw) - 1;
	else if (size > 0 && raw[size - 1] == '\n')
		size--; // a habit from other loggers
	std::size_t prefix = 0;
	if (overridden(level)) {
		prefix = static_cast<std::size_t>(std::snprintf(line, sizeof(line), "%s: ", names[static_cast<int>(level)]));
		level = LogLevel::info;
	}
	escape_line({raw, size}, cut, line + prefix, sizeof(line) - prefix);
	if (level <= LogLevel::warning)
		remember_trouble(level, line);

	LogSink sink = sink_.load(std::memory_order_acquire);
	(sink ? sink : to_stderr)(level, line);
	errno = saved_errno;
}

} // namespace sk8
