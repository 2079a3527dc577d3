// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/times.h"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace kubesim {

std::int64_t now_us()
{
	return std::chrono::duration_cast<std::chrono::microseconds>(
		       std::chrono::system_clock::now().time_since_epoch())
		.count();
}

std::int64_t now_s()
{
	return now_us() / 1000000;
}

std::int64_t monotonic_us()
{
	return std::chrono::duration_cast<std::chrono::microseconds>(
		       std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

static std::string format(std::int64_t seconds)
{
	std::time_t t = seconds;
	std::tm tm{};
	gmtime_r(&t, &tm);
	char text[40];
	std::size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	return std::string(text, n);
}

std::string rfc3339(std::int64_t seconds)
{
	return format(seconds) + "Z";
}

std::string rfc3339_micro(std::int64_t microseconds)
{
	char fraction[16];
	std::snprintf(fraction, sizeof fraction, ".%06dZ", static_cast<int>(microseconds % 1000000));
	return format(microseconds / 1000000) + fraction;
}

std::int64_t parse_rfc3339(const std::string &text)
{
	std::tm tm{};
	const char *rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &tm);
	return rest ? timegm(&tm) : 0;
}

} // namespace kubesim
