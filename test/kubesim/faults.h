// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Faults that tests order: which requests they hit, how often, and what happens.
#ifndef KUBESIM_FAULTS_H
#define KUBESIM_FAULTS_H

#include <list>
#include <memory>
#include <optional>
#include <string>

#include <regex.h>

#include "test/kubesim/request.h"

namespace kubesim {

class Watch;
class Api;

struct Fault {
	enum Action { status, hang, delay, reset, truncate, answer, expire, drop, duplicate, reorder, deny,
		      clock } action = status;
	int code = 503;
	int retry_after = -1;      // seconds; -1: no header
	std::int64_t delay_us = 0; // also before any other action
	std::size_t bytes = 100;   // truncate: of the body that get through; answer: its body is
				   // repeated until it has so many
	std::string type, body;    // answer: what is said instead of an answer
	std::int64_t ahead = 0;    // clock: seconds by which the Date of the answer is wrong
};

// A POSIX extended regular expression that must match a whole text. (Not std::regex:
// g++ 12 warns about its insides under sanitizers.)
class Pattern {
public:
	// An empty pattern matches all. Returns an error sentence, or "".
	std::string set(const std::string &text);
	bool matches(const std::string &text) const;

private:
	std::shared_ptr<regex_t> compiled_;
};

class Faults {
public:
	explicit Faults(Api &api) : api_(api) {}
	// The admin path /kubesim/faults: POST adds, GET lists, DELETE clears.
	Reply serve(const Request &r);
	// The fault that this request shall meet, if any; counts it.
	std::optional<Fault> strike(const Request &r);

private:
	struct Rule {
		J text; // as it was given
		Pattern verb, resource, path, user;
		long left = -1; // -1: for ever
		long hits = 0;
		Fault fault;
	};
	std::string add(const J &rule); // an error sentence, or ""
	bool apply_to_watches(const Rule &rule);
	std::list<Rule> rules_;
	Api &api_;
};

} // namespace kubesim

#endif
