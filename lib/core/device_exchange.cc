// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/device_exchange.h"

#include <algorithm>
#include <iterator>

#include "lib/base/doubling.h"

namespace sk8::core {

ExchangeStep next_step(const ExchangeFacts &f)
{
	if (!f.other)
		return ExchangeStep::none;
	if (f.container)
		return ExchangeStep::stays;
	return f.held || f.paused ? ExchangeStep::waits : ExchangeStep::give_back;
}

Millis exchange_pause(int tries)
{
	return doubled(Millis(5'000), Millis(600'000), tries);
}

GresList devices_without(const GresList &of, const GresList &these)
{
	GresList out;
	for (const Gres &g : of) {
		const std::vector<std::uint16_t> known = devices_named(these, g.name);
		std::vector<std::uint16_t> left;
		std::ranges::set_difference(g.devices, known, std::back_inserter(left));
		if (!left.empty())
			out.push_back({g.name, g.type, left.size(), left});
	}
	return out;
}

} // namespace sk8::core
