// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Lists of nodes as Slurm writes and reads them: "login,n[1-3,007]". Those that we write, and plain ones: a name has its ranges
// at its end, in one pair of brackets. Text only: nothing is asked of Slurm. Any thread.
#ifndef SK8_BASE_NODE_LIST_H
#define SK8_BASE_NODE_LIST_H

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace sk8 {

// A part of a list: prefix and each number of a range, or one name.
struct NodeRange {
	std::string_view prefix;
	std::uint64_t low = 0, high = 0;
	std::size_t digits = 0; // at least so many are written, with zeros before them; 0: the prefix is the whole name

	std::size_t size() const { return digits ? high - low + 1 : 1; }
	std::string name(std::uint64_t number) const;
	bool has(std::string_view name) const;
};

// Slurm reads no range of more.
constexpr std::size_t max_node_range = 65'536;

// Each name once; "" for none. What follows the digits of a name, as in n12-ib, is no range of Slurm's: such a name stands alone.
std::string compress_nodes(const std::set<std::string> &names);
// In their order, until f returns false. False: f did, or from there on it is no such list.
bool each_node_range(std::string_view list, const std::function<bool(const NodeRange &)> &f);
// nullopt: no such list, or more than max names.
std::optional<std::set<std::string>> expand_nodes(std::string_view list, std::size_t max);
bool has_node(std::string_view list, std::string_view name);
std::size_t count_nodes(std::string_view list); // one that stands there twice twice
std::string first_node(std::string_view list);  // ""; it is no such list, or has none

} // namespace sk8

#endif
