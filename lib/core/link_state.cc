// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/link_state.h"

#include "lib/base/log.h"

namespace sk8::core {

// One that comes and goes fills no log.
static constexpr Millis between_lines{60'000};
// Of a right whose namespaces are not all remembered it is not known when all are given.
static constexpr std::size_t max_namespaces = 1000;

void LinkState::lost(const std::string &what, const std::string &why)
{
	const bool first = lost_.empty();
	lost_.insert(what);
	if (!first)
		return;
	trouble_ = why;
	since_ = timer_.now();
	told_ = false;
	const Millis wait = ever_told_ ? told_at_ + between_lines - since_ : Millis(0);
	if (wait <= Millis(0))
		return tell_lost();
	if (std::exchange(tell_planned_, true))
		return;
	timer_.after(wait, [this] {
		tell_planned_ = false;
		if (!lost_.empty() && !told_)
			tell_lost();
	});
}

void LinkState::tell_lost()
{
	told_ = ever_told_ = true;
	told_at_ = timer_.now();
	const std::string before =
		untold_ > 0 ? " (lost and back " + std::to_string(std::exchange(untold_, 0)) + " times before)" : "";
	log_error("cluster %s: lost%s: %s; Slurm goes on, what pods hold stays reserved", cluster_.c_str(),
		  before.c_str(), trouble_.c_str());
}

bool LinkState::back(const std::string &what)
{
	if (!lost_.erase(what))
		return false;
	if (!lost_.empty())
		return away_;
	const Millis now = timer_.now();
	const long long seconds = (now - since_).count() / 1000;
	since_ = now;
	if (told_)
		log_info("cluster %s: back after %lld s: all is known again", cluster_.c_str(), seconds);
	else
		untold_++;
	return std::exchange(away_, false);
}

// A refusal that says nothing about rights (a namespace that goes, a quota) is none.
static bool is_denied(const kube::Reply &reply)
{
	if (reply.status != 403)
		return false;
	const std::string_view why = reply.body["message"].str();
	return why.empty() || why.find(" cannot ") != why.npos;
}

void LinkState::denied(const Right &right, const kube::CallOutcome &outcome)
{
	auto [it, fresh] = denied_.try_emplace(right);
	Denial &d = it->second;
	if (d.namespaces.size() < max_namespaces)
		d.namespaces.insert(outcome.ns);
	if (fresh) {
		d.since = timer_.now();
		log_verbose("cluster %s: refused, which may pass: %s", cluster_.c_str(), outcome.reply.error.c_str());
	} else if (!d.told && timer_.now() - d.since >= denial_lasts) {
		d.told = true;
		log_error("cluster %s: a right is missing: %s; told once, tried again until it is given", cluster_.c_str(),
			  outcome.reply.error.c_str());
	}
}

void LinkState::called(const kube::CallOutcome &outcome)
{
	const Right right{outcome.verb, outcome.resource};
	if (is_denied(outcome.reply))
		return denied(right, outcome);
	const int status = outcome.reply.status;
	if (status == 0) // one that does not answer may be about to start
		std::erase_if(denied_, [](const auto &entry) { return !entry.second.told; });
	auto it = denied_.find(right);
	// Others than the authorizer may have refused it before it was asked.
	if (it == denied_.end() || status == 0 || status == 401 || status == 403 || status == 429 || status >= 500)
		return;
	it->second.namespaces.erase(outcome.ns);
	if (!it->second.namespaces.empty())
		return;
	if (it->second.told)
		log_info("cluster %s: %s %s is allowed now", cluster_.c_str(), right.first.c_str(), right.second.c_str());
	denied_.erase(it);
}

std::set<std::string> LinkState::missing_rights() const
{
	std::set<std::string> out;
	for (const auto &[right, denial] : denied_)
		if (denial.told)
			out.insert(right.first + " " + right.second);
	return out;
}

} // namespace sk8::core
