// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/node_list.h"

#include <algorithm>
#include <map>
#include <vector>

namespace sk8 {

// More would not fit into any number of nodes.
static constexpr std::size_t max_digits = 9;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

// At most max_digits of them.
static std::uint64_t number(std::string_view digits)
{
	std::uint64_t out = 0;
	for (char c : digits)
		out = out * 10 + static_cast<std::uint64_t>(c - '0');
	return out;
}

static std::string padded(std::uint64_t number, std::size_t digits)
{
	std::string out = std::to_string(number);
	if (out.size() < digits)
		out.insert(0, digits - out.size(), '0');
	return out;
}

static bool all_digits(std::string_view text)
{
	return !text.empty() && text.size() <= max_digits && std::ranges::all_of(text, is_digit);
}

std::string NodeRange::name(std::uint64_t number) const
{
	return std::string(prefix) + (digits ? padded(number, digits) : "");
}

bool NodeRange::has(std::string_view name) const
{
	if (!digits)
		return name == prefix;
	if (!name.starts_with(prefix))
		return false;
	const std::string_view rest = name.substr(prefix.size());
	if (!all_digits(rest))
		return false;
	const std::uint64_t n = number(rest);
	return low <= n && n <= high && padded(n, digits) == rest;
}

// ---- to write one ----

// Of the names that begin alike. Sorted by how many digits they have: then those that follow each other are side by side.
using Numbers = std::vector<std::pair<std::size_t, std::uint64_t>>;

static std::string ranges(Numbers numbers)
{
	std::ranges::sort(numbers);
	std::string out;
	for (std::size_t from = 0, to = 1; from < numbers.size(); from = to++) {
		const auto [digits, low] = numbers[from];
		// The next one is as Slurm would write it: n9 and n10, n09 and n10, but neither n9 and n010 nor n99 and n0100.
		const auto follows = [&](std::size_t i) {
			const std::uint64_t n = low + (i - from);
			return numbers[i] == std::pair(padded(n, digits).size(), n);
		};
		while (to < numbers.size() && to - from < max_node_range && follows(to))
			to++;
		out += (out.empty() ? "" : ",") + padded(low, digits);
		if (to - from > 1)
			out += "-" + padded(low + (to - from) - 1, digits);
	}
	return out;
}

std::string compress_nodes(const std::set<std::string> &names)
{
	std::map<std::string_view, Numbers> alike; // by what is before the number; none: the whole name
	for (const std::string_view name : names) {
		std::size_t at = name.size();
		while (at > 1 && name.size() - at < max_digits && is_digit(name[at - 1]))
			at--;
		Numbers &numbers = alike[name.substr(0, at)];
		if (at < name.size())
			numbers.emplace_back(name.size() - at, number(name.substr(at)));
	}
	std::string out;
	for (const auto &[prefix, numbers] : alike) {
		const auto add = [&out](std::string text) { out += (out.empty() ? "" : ",") + std::move(text); };
		if (const std::string name(prefix); names.contains(name))
			add(name);
		if (numbers.size() == 1)
			add(std::string(prefix) + padded(numbers[0].second, numbers[0].first));
		else if (!numbers.empty())
			add(std::string(prefix) + "[" + ranges(numbers) + "]");
	}
	return out;
}

// ---- to read one ----

static bool read_range(std::string_view text, NodeRange &range)
{
	const std::size_t dash = text.find('-');
	const std::string_view low = text.substr(0, dash), high = dash == text.npos ? low : text.substr(dash + 1);
	if (!all_digits(low) || !all_digits(high))
		return false;
	range.low = number(low);
	range.high = number(high);
	range.digits = low.size();
	return range.low <= range.high && range.size() <= max_node_range;
}

bool each_node_range(std::string_view list, const std::function<bool(const NodeRange &)> &f)
{
	while (!list.empty()) {
		const std::size_t end = list.find_first_of(",[]");
		NodeRange range{.prefix = list.substr(0, end)};
		if (range.prefix.empty())
			return false;
		std::size_t next = end;
		if (end != list.npos && list[end] == '[') {
			const std::size_t close = list.find(']', end);
			if (close == list.npos)
				return false;
			std::string_view inside = list.substr(end + 1, close - end - 1);
			for (std::size_t comma = 0; comma != inside.npos;) {
				comma = inside.find(',');
				if (!read_range(inside.substr(0, comma), range) || !f(range))
					return false;
				inside.remove_prefix(comma == inside.npos ? inside.size() : comma + 1);
			}
			next = close + 1 < list.size() ? close + 1 : list.npos;
		} else if (!f(range)) {
			return false;
		}
		if (next == list.npos)
			return true;
		if (list[next] != ',' || next + 1 == list.size())
			return false;
		list.remove_prefix(next + 1);
	}
	return true;
}

std::optional<std::set<std::string>> expand_nodes(std::string_view list, std::size_t max)
{
	std::set<std::string> out;
	std::size_t left = max;
	const bool all = each_node_range(list, [&](const NodeRange &r) {
		if (r.size() > left)
			return false;
		left -= r.size();
		for (std::uint64_t n = r.low; n <= r.high; n++)
			out.insert(r.name(n));
		return true;
	});
	return all ? std::optional(std::move(out)) : std::nullopt;
}

bool has_node(std::string_view list, std::string_view name)
{
	bool found = false;
	each_node_range(list, [&](const NodeRange &r) { return !(found = r.has(name)); });
	return found;
}

std::size_t count_nodes(std::string_view list)
{
	std::size_t count = 0;
	each_node_range(list, [&](const NodeRange &r) {
		count += r.size();
		return true;
	});
	return count;
}

std::string first_node(std::string_view list)
{
	std::string first;
	each_node_range(list, [&](const NodeRange &r) {
		first = r.name(r.low);
		return false;
	});
	return first;
}

} // namespace sk8
