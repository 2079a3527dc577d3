// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/lost_pods.h"

#include <algorithm>
#include <cctype>

#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/node_state.h"

namespace sk8::core {

static constexpr std::size_t max_uid = 64;
static constexpr std::int64_t max_seconds = 99'999'999'999; // the year 5138

static bool is_uid(std::string_view uid)
{
	const auto good = [](unsigned char c) { return std::isalnum(c) || c == '-'; };
	return !uid.empty() && uid.size() <= max_uid && std::ranges::all_of(uid, good);
}

std::string lost_word(std::string_view uid, std::int64_t since)
{
	if (!is_uid(uid) || since < 0 || since > max_seconds)
		return "";
	return std::string(uid) + '@' + std::to_string(since);
}

std::string_view uid_of_lost(std::string_view word)
{
	return word.substr(0, word.find('@'));
}

static bool is_word(std::string_view word)
{
	const std::string_view uid = uid_of_lost(word);
	if (!is_uid(uid) || uid.size() == word.size())
		return false;
	const auto since = parse_integer(word.substr(uid.size() + 1), 0, max_seconds);
	return since && lost_word(uid, *since) == word;
}

std::string lost_text(const std::set<std::string> &words)
{
	std::string out;
	for (const std::string &word : words)
		out += (out.empty() ? "" : ",") + word;
	return out;
}

std::set<std::string> parse_lost(std::string_view text)
{
	std::set<std::string> out;
	while (!text.empty() && out.size() < max_lost_pods) {
		const std::string_view word = text.substr(0, text.find(','));
		text.remove_prefix(std::min(text.size(), word.size() + 1));
		if (is_word(word))
			out.emplace(word);
	}
	return out;
}

void LostPods::add(const std::string &uid, const std::string &node, std::int64_t since)
{
	remove(uid);
	std::string word = lost_word(uid, since);
	if (word.empty() || node.empty())
		return;
	by_node_[node].insert({since, uid, std::move(word)});
	nodes_[uid] = node;
	changed_.insert(node);
}

void LostPods::remove(const std::string &uid)
{
	const auto it = nodes_.find(uid);
	if (it == nodes_.end())
		return;
	const auto of = by_node_.find(it->second);
	std::erase_if(of->second, [&](const Lost &lost) { return lost.uid == uid; });
	if (of->second.empty())
		by_node_.erase(of);
	changed_.insert(it->second);
	nodes_.erase(it);
}

std::set<std::string> LostPods::asked(const std::string &node) const
{
	std::set<std::string> out;
	const auto of = by_node_.find(node);
	if (of == by_node_.end())
		return out;
	for (const Lost &lost : of->second) {
		if (out.size() >= max_lost_pods)
			break;
		out.insert(lost.word);
	}
	return out;
}

std::string LostPods::question(const std::string &node) const
{
	return lost_text(asked(node));
}

std::vector<std::string> LostPods::answered(const kube::Node &node) const
{
	std::vector<std::string> out;
	if (!by_node_.contains(node.meta.name)) // most of them: nothing is read
		return out;
	const std::set<std::string> asked_now = asked(node.meta.name);
	for (const std::string &word : parse_lost(annotation(node, names::gone)))
		if (asked_now.contains(word))
			out.emplace_back(uid_of_lost(word));
	return out;
}

} // namespace sk8::core
