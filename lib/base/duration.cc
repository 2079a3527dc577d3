// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/duration.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "lib/base/text.h"

namespace sk8 {

Result<Millis> parse_duration(std::string_view text)
{
	static constexpr struct {
		std::string_view name;
		std::int64_t millis;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	const auto refuse = [&](const char *why) {
		return Error{strprintf("\"%s\" %s", one_line(text, 64).c_str(), why)};
	};
	constexpr const char *wrong =
		"is no duration, write numbers with ms, s, m, h or d, for example 40s or 1h30m";

	if (text == "0")
		return Millis(0);
	std::int64_t total = 0;
	std::string_view rest = text;
	if (rest.empty())
		return refuse(wrong);
	while (!rest.empty()) {
		const std::string_view number =
			rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size()));
		rest.remove_prefix(number.size());
		const std::string_view name =
			rest.substr(0, std::min(rest.find_first_of("0123456789"), rest.size()));
		rest.remove_prefix(name.size());
		const auto unit = std::find_if(std::begin(units), std::end(units),
					       [&](const auto &u) { return u.name == name; });
		if (number.empty() || unit == std::end(units))
			return refuse(name.empty() && number == text
					      ? "has no unit, write ms, s, m, h or d after it"
					      : wrong);
		const std::optional<std::int64_t> n = parse_integer(number);
		std::int64_t part = 0;
		if (!n || __builtin_mul_overflow(*n, unit->millis, &part) ||
		    __builtin_add_overflow(total, part, &total))
			return refuse("is too long");
	}
	return Millis(total);
}

std::string format_duration(Millis duration)
{
	static constexpr struct {
		const char *name;
		std::int64_t millis;
	} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
	std::string s;
	std::int64_t rest = duration.count();
	for (const auto &unit : units) {
		if (rest / unit.millis > 0)
			s += std::to_string(rest / unit.millis) + unit.name;
		rest %= unit.millis;
	}
	return s.empty() ? "0s" : s;
}

} // namespace sk8
