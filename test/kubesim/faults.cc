// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/faults.h"

#include "test/kubesim/api.h"

namespace kubesim {

std::string Pattern::set(const std::string &text)
{
	compiled_.reset();
	if (text.empty())
		return {};
	auto *raw = new regex_t;
	const int problem = regcomp(raw, ("^(" + text + ")$").c_str(), REG_EXTENDED | REG_NOSUB);
	if (problem) {
		char why[100];
		regerror(problem, raw, why, sizeof why);
		delete raw;
		return why;
	}
	compiled_ = std::shared_ptr<regex_t>(raw, [](regex_t *r) {
		regfree(r);
		delete r;
	});
	return {};
}

bool Pattern::matches(const std::string &text) const
{
	return !compiled_ || regexec(compiled_.get(), text.c_str(), 0, nullptr, 0) == 0;
}

static std::optional<Fault::Action> action_named(const std::string &name)
{
	static const std::pair<const char *, Fault::Action> names[] = {
		{"status", Fault::status},     {"hang", Fault::hang},
		{"delay", Fault::delay},       {"reset", Fault::reset},
		{"truncate", Fault::truncate}, {"expire-watches", Fault::expire},
		{"drop-events", Fault::drop},  {"duplicate-events", Fault::duplicate},
		{"answer", Fault::answer},     {"reorder-events", Fault::reorder},
		{"deny", Fault::deny},         {"clock", Fault::clock}};
	for (const auto &[text, action] : names)
		if (name == text)
			return action;
	return std::nullopt;
}

std::string Faults::add(const J &text)
{
	auto action = action_named(text["action"].str());
	if (!action)
		return "action must be one of status, hang, delay, reset, truncate, answer, expire-watches, "
		       "drop-events, duplicate-events, reorder-events, deny, clock";
	Rule rule;
	rule.text = text;
	const J match = text["match"];
	for (auto [key, pattern] : {std::pair("verb", &rule.verb), std::pair("resource", &rule.resource),
				    std::pair("path", &rule.path), std::pair("user", &rule.user)})
		if (std::string problem = pattern->set(match[key].str()); !problem.empty())
			return std::string("match.") + key + ": " + problem;
	rule.left = text["count"].num(-1);
	rule.fault.action = *action;
	rule.fault.code = static_cast<int>(text["code"].num(*action == Fault::answer ? 200 : 503));
	rule.fault.retry_after = static_cast<int>(text["retryAfter"].num(-1));
	rule.fault.delay_us = text["delayMs"].num() * 1000;
	rule.fault.bytes = text["bytes"].num(*action == Fault::answer ? 0 : 100);
	rule.fault.type = text["type"].str("application/json");
	rule.fault.body = text["body"].str();
	rule.fault.ahead = text["seconds"].num();
	if (!apply_to_watches(rule))
		rules_.push_back(std::move(rule));
	return {};
}

// Faults of open watches act at once and are not kept.
bool Faults::apply_to_watches(const Rule &rule)
{
	const Fault::Action a = rule.fault.action;
	if (a != Fault::expire && a != Fault::drop && a != Fault::duplicate && a != Fault::reorder)
		return false;
	if (a == Fault::expire)
		api_.store().forget_changes();
	const std::size_t n = rule.left < 0 ? SIZE_MAX : rule.left;
	api_.each_watch([&](Watch &w) {
		if (!rule.resource.matches(stored_kind(w.storage()).resource))
			return;
		if (a == Fault::expire)
			w.expire();
		else if (a == Fault::drop)
			w.drop_events(n);
		else if (a == Fault::duplicate)
			w.duplicate_events(n);
		else
			w.reorder_events(n);
	});
	return true;
}

Reply Faults::serve(const Request &r)
{
	Reply none;
	none.code = 0;
	if (r.path != "/kubesim/faults")
		return none;
	if (!r.user.in("system:masters"))
		return Reply::refuse({403, "Forbidden", "only system:masters may order faults", {}});
	if (r.method == "DELETE") {
		rules_.clear();
		return Reply::json(200, "{\"rules\":[]}");
	}
	if (r.method == "POST") {
		J body = J::parse(r.body);
		std::string problem = body ? "" : "the body is not JSON";
		if (body.is_array())
			body.each_item([&](const J &rule) { problem = problem.empty() ? add(rule) : problem; });
		else if (body)
			problem = add(body);
		if (!problem.empty())
			return Reply::refuse(bad_request(problem));
	}
	J list = J::array();
	for (const auto &rule : rules_)
		list.append(rule.text.copy().set("hits", static_cast<std::int64_t>(rule.hits)));
	return Reply::json(200, J::make("rules", list).dump());
}

std::optional<Fault> Faults::strike(const Request &r)
{
	if (rules_.empty() || r.path.compare(0, 9, "/kubesim/") == 0)
		return std::nullopt;
	Request copy;
	copy.method = r.method;
	copy.path = r.path;
	copy.query = r.query;
	parse_path(copy);
	const std::string what = copy.resource + (copy.subresource.empty() ? "" : "/" + copy.subresource);
	for (auto &rule : rules_) {
		if (rule.left == 0 || !rule.verb.matches(copy.verb) || !rule.resource.matches(what) ||
		    !rule.path.matches(r.path) || !rule.user.matches(r.user.name))
			continue;
		rule.hits++;
		if (rule.left > 0)
			rule.left--;
		return rule.fault;
	}
	return std::nullopt;
}

} // namespace kubesim
