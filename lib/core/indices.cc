// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/indices.h"

#include <algorithm>
#include <utility>

namespace sk8::core {

Result<Json> parse_annotation_json(std::string_view text, std::size_t most)
{
	if (text.size() > most)
		return Error{"is too long"};
	auto json = Json::parse(text);
	if (!json)
		return Error{"is no JSON"};
	return std::move(*json);
}

Json indices_to_json(const std::vector<std::uint16_t> &indices)
{
	Json out = Json::array();
	for (const std::uint16_t index : indices)
		out.append(Json::integer(index));
	return out;
}

std::optional<std::vector<std::uint16_t>> indices_from_json(const Json &list, std::size_t most, std::size_t end)
{
	if (!list.is_array() || list.size() > most)
		return std::nullopt;
	std::vector<std::uint16_t> out;
	for (std::size_t i = 0; i < list.size(); i++) {
		const std::int64_t index = list.at(i).integer_or(-1);
		if (index < 0 || static_cast<std::size_t>(index) >= end)
			return std::nullopt;
		out.push_back(static_cast<std::uint16_t>(index));
	}
	return out;
}

void sort_indices(std::vector<std::uint16_t> &indices)
{
	std::ranges::sort(indices);
	indices.erase(std::ranges::unique(indices).begin(), indices.end());
}

} // namespace sk8::core
