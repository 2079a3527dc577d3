// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/device_order.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace sk8::agent {

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

// "gpu2" before "gpu10".
static bool comes_before(std::string_view a, std::string_view b)
{
	const std::string_view all_a = a, all_b = b;
	auto number = [](std::string_view &text) {
		while (text.size() > 1 && text.front() == '0' && is_digit(text[1]))
			text.remove_prefix(1);
		const auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
		const std::string_view out = text.substr(0, end);
		text.remove_prefix(end);
		return out;
	};
	while (!a.empty() && !b.empty()) {
		if (is_digit(a.front()) && is_digit(b.front())) {
			const std::string_view x = number(a), y = number(b);
			if (x != y)
				return x.size() != y.size() ? x.size() < y.size() : x < y;
		} else if (a.front() != b.front()) {
			return a.front() < b.front();
		} else {
			a.remove_prefix(1);
			b.remove_prefix(1);
		}
	}
	return a.empty() != b.empty() ? a.empty() : all_a < all_b;
}

std::vector<std::string> by_id(const std::set<std::string> &ids)
{
	std::vector<std::string> out(ids.begin(), ids.end());
	std::ranges::sort(out, comes_before);
	return out;
}

// ---- NVIDIA ----

// "GPU UUID: \t GPU-8d.." of a driver's list of properties; empty: it is not there.
static std::string property(std::string_view text, std::string_view name)
{
	for (std::size_t at = 0; at < text.size();) {
		const std::size_t end = std::min(text.find('\n', at), text.size());
		std::string_view line = text.substr(at, end - at);
		at = end + 1;
		if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':')
			continue;
		line.remove_prefix(name.size() + 1);
		const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
		while (!line.empty() && blank(line.front()))
			line.remove_prefix(1);
		while (!line.empty() && blank(line.back()))
			line.remove_suffix(1);
		return std::string(line);
	}
	return "";
}

std::map<std::string, unsigned> nvidia_minors(const std::string &folder)
{
	static constexpr std::size_t max_gpus = 256, max_information = 16'384;
	std::map<std::string, unsigned> out;
	std::error_code none;
	for (std::filesystem::directory_iterator at(folder + "/gpus", none), end; !none && at != end && out.size() < max_gpus; at.increment(none)) {
		const auto text = read_file(at->path().string() + "/information", max_information);
		const auto minor = parse_integer(text ? property(*text, "Device Minor") : "", 0, 65'535);
		const std::string uuid = text ? property(*text, "GPU UUID") : "";
		if (minor && !uuid.empty())
			out[uuid] = static_cast<unsigned>(*minor);
	}
	return out;
}

std::vector<std::string> DeviceOrder::operator()(const std::set<std::string> &ids, const std::vector<std::string> &former)
{
	static constexpr std::size_t max_known = 64;
	if (const auto at = known_.find(ids); at != known_.end())
		return at->second;
	std::vector<std::string> out = by_id(ids);
	const auto minors = nvidia_minors(nvidia_folder_);
	if (out.empty() || !std::ranges::all_of(out, [&](const std::string &id) { return minors.contains(id); }))
		return std::set(former.begin(), former.end()) == ids ? former : out;
	std::ranges::stable_sort(out, {}, [&](const std::string &id) { return minors.at(id); });
	if (known_.size() > max_known)
		known_.clear();
	return known_[ids] = out;
}

} // namespace sk8::agent
