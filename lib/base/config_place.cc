// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/config_place.h"

#include <algorithm>
#include <cstdint>

#include "lib/base/text.h"

namespace sk8 {

namespace {

constexpr std::size_t max_problems = 100;

// Lower case without '-' and '_': scheduler_names is schedulerNames.
std::string normal_name(std::string_view name)
{
	std::string s;
	for (const char c : name) {
		if (c >= 'A' && c <= 'Z')
			s += static_cast<char>(c - 'A' + 'a');
		else if (c != '-' && c != '_')
			s += c;
	}
	return s;
}

// Insertions, removals, replacements and swaps of neighbours that make a from b.
std::size_t edit_distance(const std::string &a, const std::string &b)
{
	std::vector<std::vector<std::size_t>> d(a.size() + 1,
						std::vector<std::size_t>(b.size() + 1));
	for (std::size_t i = 0; i <= a.size(); i++) {
		for (std::size_t j = 0; j <= b.size(); j++) {
			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
					    d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[a.size()][b.size()];
}

} // namespace

void Problems::add(int line, std::string_view path, std::string_view what)
{
	if (found_.size() >= max_problems) {
		dropped_++;
		return;
	}
	std::string text = line > 0 ? strprintf("%s:%d: ", file_.c_str(), line) : file_ + ": ";
	if (!path.empty())
		text.append(path).append(": ");
	found_.push_back({line, text.append(what)});
}

std::vector<std::string> Problems::lines() const
{
	std::vector<Found> sorted = found_;
	std::stable_sort(sorted.begin(), sorted.end(),
			 [](const Found &a, const Found &b) { return a.line < b.line; });
	std::vector<std::string> texts;
	for (Found &found : sorted)
		texts.push_back(std::move(found.text));
	if (dropped_)
		texts.push_back(strprintf("%s: and %zu more problems", file_.c_str(), dropped_));
	return texts;
}

std::string Problems::text() const
{
	return join(lines(), "\n");
}

void Place::error(std::string_view key, std::string_view what) const
{
	for (const YamlMember &m : node_->members)
		if (m.key == key)
			return member(m).error(what);
	error(what);
}

Place Place::member(const YamlMember &member) const
{
	// A map or list begins in the line after its key: the key is what people look for.
	const bool inside = member.value.is_scalar() && !member.value.is_null();
	const std::string key = one_line(member.key, 64);
	return {member.value, inside ? member.value.line : member.line,
		path_.empty() ? key : path_ + "." + key, *problems_};
}

Place Place::item(std::size_t index) const
{
	const YamlNode &value = node_->items[index];
	return {value, value.line, strprintf("%s[%zu]", path_.c_str(), index), *problems_};
}

const char *kind_name(const YamlNode &node)
{
	if (node.is_null())
		return "nothing";
	return node.is_scalar() ? "text" : node.is_sequence() ? "a list" : "a map";
}

std::string nearest_name(std::string_view text, const std::vector<std::string> &keys)
{
	if (text.size() > 64) // no key is that long, and the distance costs length squared
		return {};
	const std::string wanted = normal_name(text);
	std::string best;
	std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
	for (const std::string &key : keys) {
		const std::size_t distance = edit_distance(wanted, normal_name(key));
		if (distance < best_distance) {
			best_distance = distance;
			best = key;
		}
	}
	return best;
}

std::string quoted_value(const YamlNode &node)
{
	if (!node.is_scalar() || node.is_null())
		return kind_name(node);
	return "\"" + one_line(node.text, 64) + "\"";
}

namespace config_detail {

bool read_members(const Place &place, const std::vector<std::string> &keys,
		  const std::vector<bool> &required,
		  const std::function<void(std::size_t, const Place &)> &read)
{
	const YamlNode &node = place.node();
	if (!node.is_mapping() && !node.is_null()) {
		place.error(strprintf("is %s, write a map (key: value)", kind_name(node)));
		return false;
	}
	std::vector<bool> given(keys.size());
	for (const YamlMember &member : node.members) {
		const auto at = std::find(keys.begin(), keys.end(), member.key);
		if (at != keys.end()) {
			const auto i = static_cast<std::size_t>(at - keys.begin());
			given[i] = true;
			read(i, place.member(member));
			continue;
		}
		const std::string nearest = nearest_name(member.key, keys);
		place.member(member).error(nearest.empty()
						   ? "is no known key, known are " + join(keys, ", ")
						   : "is no known key, did you mean " + nearest + "?");
	}
	for (std::size_t i = 0; i < keys.size(); i++)
		if (required[i] && !given[i])
			place.error("the key " + keys[i] + " is missing");
	return true;
}

bool read_items(const Place &place, std::size_t max_items,
		const std::function<void(const Place &)> &read)
{
	const YamlNode &node = place.node();
	if (node.is_null()) // all its items are commented out
		return true;
	if (!node.is_sequence()) {
		place.error(strprintf("is %s, write a list ([a, b] or lines that begin with -)",
				      kind_name(node)));
		return false;
	}
	if (node.items.size() > max_items) {
		place.error(strprintf("has %zu entries, at most %zu are allowed", node.items.size(),
				      max_items));
		return false;
	}
	for (std::size_t i = 0; i < node.items.size(); i++)
		read(place.item(i));
	return true;
}

std::size_t problem_count(const Place &place)
{
	return place.problems().size();
}

} // namespace config_detail

} // namespace sk8
