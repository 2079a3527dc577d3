// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/case.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace sk8::sim {

std::string Action::text(const std::string &key) const
{
	auto it = with.find(key);
	return it == with.end() ? "" : it->second;
}

std::int64_t Action::number(const std::string &key, std::int64_t otherwise) const
{
	auto it = with.find(key);
	return it == with.end() ? otherwise : std::strtoll(it->second.c_str(), nullptr, 10);
}

std::string Action::line() const
{
	char stamp[32];
	std::snprintf(stamp, sizeof(stamp), "%.6f ", static_cast<double>(at) / second);
	std::string out = stamp + verb;
	for (const auto &[key, value] : with)
		out += ' ' + key + '=' + value;
	return out;
}

std::string Case::text() const
{
	std::ostringstream out;
	out << "seed " << seed << "\nnodes " << nodes << "\ncores " << cores << "\nmemory " << memory << "\njob_ids "
	    << job_ids << "\nfaults " << faults << '\n';
	if (aside || aside_memory)
		out << "aside " << aside << "\naside_memory " << aside_memory << '\n';
	if (gpus)
		out << "gpus " << gpus << '\n';
	if (claims)
		out << "claims 1\n";
	if (device_plugin)
		out << "device_plugin 1\n";
	if (device_pods)
		out << "device_pods 1\neviction " << eviction << "\ngate_timeout " << gate_timeout << '\n';
	if (slots)
		out << "slots " << slots << '\n';
	if (grace)
		out << "grace " << grace << '\n';
	if (node_state)
		out << "node_state 1\n";
	if (unnamed)
		out << "unnamed 1\n";
	if (mixed)
		out << "mixed " << mixed << "\neviction " << eviction << "\ngate_timeout " << gate_timeout << '\n';
	if (shared)
		out << "shared " << shared << '\n';
	if (!mutant.empty())
		out << "mutant " << mutant << '\n';
	for (const auto &a : actions)
		out << a.line() << '\n';
	return out.str();
}

static bool read_setting(Case &c, const std::string &key, std::istringstream &value)
{
	if (key == "seed")
		value >> c.seed;
	else if (key == "nodes")
		value >> c.nodes;
	else if (key == "cores")
		value >> c.cores;
	else if (key == "memory")
		value >> c.memory;
	else if (key == "aside")
		value >> c.aside;
	else if (key == "aside_memory")
		value >> c.aside_memory;
	else if (key == "gpus")
		value >> c.gpus;
	else if (key == "claims")
		value >> c.claims;
	else if (key == "device_plugin")
		value >> c.device_plugin;
	else if (key == "device_pods")
		value >> c.device_pods;
	else if (key == "slots")
		value >> c.slots;
	else if (key == "grace")
		value >> c.grace;
	else if (key == "node_state")
		value >> c.node_state;
	else if (key == "unnamed")
		value >> c.unnamed;
	else if (key == "mixed")
		value >> c.mixed;
	else if (key == "eviction")
		value >> c.eviction;
	else if (key == "gate_timeout")
		value >> c.gate_timeout;
	else if (key == "shared")
		value >> c.shared;
	else if (key == "job_ids")
		value >> c.job_ids;
	else if (key == "faults")
		value >> c.faults;
	else if (key == "mutant")
		value >> c.mutant;
	else
		return false;
	return !value.fail();
}

static bool read_action(Case &c, const std::string &at, std::istringstream &rest)
{
	char *end = nullptr;
	const double seconds = std::strtod(at.c_str(), &end);
	Action a;
	if (*end || !(rest >> a.verb))
		return false;
	a.at = static_cast<Micros>(seconds * second + 0.5);
	for (std::string word; rest >> word;) {
		const auto equals = word.find('=');
		if (equals == word.npos)
			return false;
		a.with[word.substr(0, equals)] = word.substr(equals + 1);
	}
	c.actions.push_back(std::move(a));
	return true;
}

Result<Case> parse_case(const std::string &text)
{
	Case c;
	std::istringstream lines(text);
	int number = 0;
	for (std::string line; std::getline(lines, line);) {
		number++;
		std::istringstream words(line);
		std::string first;
		if (!(words >> first) || first[0] == '#')
			continue;
		const bool digit = first[0] >= '0' && first[0] <= '9';
		if (!(digit ? read_action(c, first, words) : read_setting(c, first, words)))
			return Error{"line " + std::to_string(number) + ": \"" + line + "\" is neither a setting nor an action"};
	}
	std::stable_sort(c.actions.begin(), c.actions.end(),
			 [](const Action &a, const Action &b) { return a.at < b.at; });
	return c;
}

} // namespace sk8::sim
