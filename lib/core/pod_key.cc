// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pod_key.h"

#include <array>

#include "lib/sk8_abi.h"

namespace sk8::core {

static constexpr std::string_view prefix = SK8_MARK_PREFIX;
static constexpr std::size_t max_part = 253;

std::string PodKey::mark() const
{
	return std::string(prefix) + cluster + '/' + ns + '/' + name + '/' + uid;
}

std::optional<PodKey> PodKey::from_mark(std::string_view mark)
{
	if (!mark.starts_with(prefix))
		return std::nullopt;
	mark.remove_prefix(prefix.size());

	std::array<std::string_view, 4> part;
	for (std::size_t i = 0; i < part.size(); i++) {
		const bool last = i + 1 == part.size();
		const std::size_t end = last ? mark.size() : mark.find('/');
		if (end == mark.npos)
			return std::nullopt;
		part[i] = mark.substr(0, end);
		if (part[i].empty() || part[i].size() > max_part ||
		    part[i].find('/') != part[i].npos)
			return std::nullopt;
		mark.remove_prefix(last ? end : end + 1);
	}
	return PodKey{std::string(part[0]), std::string(part[1]), std::string(part[2]),
		      std::string(part[3])};
}

} // namespace sk8::core
