// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <algorithm>

#include "test/kubesim/api.h"
#include "test/kubesim/base64.h"
#include "test/kubesim/times.h"

namespace kubesim {
namespace {

struct ListOptions {
	Selector selector;
	std::uint64_t rv = 0;
	bool has_rv = false; // a value other than "" was given
	std::string match;
	std::size_t limit = 0;
	std::string token;
};

Failure bad_list_options(const std::string &field, const std::string &why)
{
	return invalid("meta.k8s.io", "ListOptions", "", {field_forbidden(field, why)});
}

Outcome<ListOptions> parse_list_options(const Request &r)
{
	ListOptions o;
	o.selector.ns = r.resource == "namespaces" ? "" : r.ns;
	auto labels = parse_label_selector(r.arg("labelSelector"));
	if (!labels)
		return labels.failure();
	auto fields = parse_field_selector(*r.kind, r.arg("fieldSelector"));
	if (!fields)
		return fields.failure();
	o.selector.labels = *labels;
	o.selector.fields = *fields;
	const std::string rv = r.arg("resourceVersion");
	if (rv.find_first_not_of("0123456789") != rv.npos || rv.size() > 19)
		return bad_request("Invalid value: \"" + rv + "\": strconv.ParseUint: parsing \"" + rv +
				   "\": invalid syntax");
	o.has_rv = !rv.empty();
	o.rv = o.has_rv ? std::stoull(rv) : 0;
	o.match = r.arg("resourceVersionMatch");
	o.token = r.arg("continue");
	o.limit = std::strtoull(r.arg("limit", "0").c_str(), nullptr, 10);
	return o;
}

Refusal check_match(const ListOptions &o, bool watch, const std::string &initial)
{
	if (!initial.empty()) {
		if (!watch)
			return bad_list_options("sendInitialEvents", "sendInitialEvents is forbidden for list");
		if (o.match != "NotOlderThan")
			return bad_list_options(
				"resourceVersionMatch",
				"sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
		return {};
	}
	if (o.match.empty())
		return {};
	if (watch)
		return bad_list_options("resourceVersionMatch", "resourceVersionMatch is forbidden for watch "
								"unless sendInitialEvents is provided");
	if (!o.has_rv)
		return bad_list_options("resourceVersionMatch",
					"resourceVersionMatch is forbidden unless resourceVersion is provided");
	if (!o.token.empty())
		return bad_list_options("resourceVersionMatch",
					"resourceVersionMatch is forbidden when continue is provided");
	if (o.match == "Exact" && o.rv == 0)
		return bad_list_options("resourceVersionMatch",
					"resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
	if (o.match != "Exact" && o.match != "NotOlderThan")
		return invalid("meta.k8s.io", "ListOptions", "",
			       {field_unsupported("resourceVersionMatch", o.match, {"Exact", "NotOlderThan", ""})});
	return {};
}

struct Token {
	std::uint64_t rv = 0; // 0: whatever is newest
	std::string start;    // last key that was given out
};

// The same form as the real server's, so that clients may look into it.
std::string make_token(std::uint64_t rv, const std::string &last_key, const std::string &ns)
{
	std::string start = last_key.substr(ns.size());
	return base64_url(J::make("v", "meta.k8s.io/v1", "rv", rv ? static_cast<std::int64_t>(rv) : -1, "start",
				  std::string(start + '\0'))
				  .dump());
}

Outcome<Token> parse_token(const std::string &text, const std::string &ns)
{
	J j = J::parse(base64_decode(text));
	if (!j)
		return bad_request("invalid continue token: continue key is not valid: invalid character");
	if (j["v"].str() != "meta.k8s.io/v1")
		return bad_request("invalid continue token: continue key is not valid: server does not recognize "
				   "this encoded version");
	Token t;
	t.rv = j["rv"].num() > 0 ? j["rv"].num() : 0;
	if (j["rv"].num() == 0)
		return bad_request("invalid continue token: continue key is not valid: incorrect encoded start "
				   "resourceVersion");
	t.start = j["start"].str();
	if (!t.start.empty() && t.start.back() == '\0')
		t.start.pop_back();
	if (!ns.empty())
		t.start = ns + t.start;
	return t;
}

Failure token_expired(const std::string &fresh_token)
{
	Failure f = expired(
		"The provided continue parameter is too old to display a consistent list result. You can start "
		"a new list without the continue parameter, or use the continue token in this response to "
		"retrieve the remainder of the results. Continuing with the provided token results in an "
		"inconsistent list - objects that were created, modified, or deleted between the time the first "
		"chunk was returned and now may show up in the list.");
	f.details = J::make("continue", fresh_token);
	return f;
}

} // namespace

Reply Api::get(Request &r)
{
	ObjectPtr o = store_.find(r.kind->storage, r.resource == "namespaces" ? "" : r.ns, r.name);
	if (!o)
		return Reply::refuse(not_found(*r.kind, r.name));
	return Reply::json(200, View(r).object(*o));
}

Reply Api::list(Request &r)
{
	auto options = parse_list_options(r);
	if (!options)
		return Reply::refuse(options.failure());
	if (auto f = check_match(*options, false, r.arg("sendInitialEvents")))
		return Reply::refuse(*f);
	if (options->rv > store_.rv())
		return Reply::refuse(too_large_resource_version(options->rv, store_.rv()));

	const std::string &ns = options->selector.ns;
	std::uint64_t at = 0, shown_rv = store_.rv();
	std::string after;
	if (!options->token.empty()) {
		auto token = parse_token(options->token, ns);
		if (!token)
			return Reply::refuse(token.failure());
		after = token->start;
		at = token->rv;
	} else if (options->match == "Exact" || (options->limit && options->rv && options->match.empty())) {
		at = options->rv;
	}
	auto found = store_.list(r.kind->storage, ns, after, at);
	if (!found) {
		if (options->token.empty())
			return Reply::refuse(expired("The resourceVersion for the provided list is too old."));
		Failure f = token_expired("");
		J status = f.status();
		status.set("metadata", J::make("continue", make_token(0, after, ns)));
		status.del("details");
		return Reply::json(410, status.dump());
	}
	if (at)
		shown_rv = at;

	std::vector<ObjectPtr> out;
	std::size_t seen = 0;
	for (const auto &o : *found) {
		if (options->limit && out.size() == options->limit)
			break;
		seen++;
		if (options->selector.matches(*o))
			out.push_back(o);
	}
	J meta = J::make("resourceVersion", std::to_string(shown_rv));
	if (seen < found->size()) {
		meta.set("continue", make_token(shown_rv, out.back()->key(), ns));
		if (options->selector.empty())
			meta.set("remainingItemCount", static_cast<std::int64_t>(found->size() - seen));
	}
	return Reply::json(200, View(r).list(out, meta));
}

Reply Api::watch(Request &r)
{
	auto options = parse_list_options(r);
	if (!options)
		return Reply::refuse(options.failure());
	const std::string initial = r.arg("sendInitialEvents");
	if (auto f = check_match(*options, true, initial))
		return Reply::refuse(*f);
	WatchOptions w;
	w.after_rv = options->rv;
	w.bookmarks = r.flag("allowWatchBookmarks");
	if (initial.empty()) {
		w.initial_state = options->rv == 0;
	} else if (r.flag("sendInitialEvents")) {
		if (options->rv > store_.rv())
			return Reply::refuse(too_large_resource_version(options->rv, store_.rv()));
		w.initial_state = true;
		w.initial_bookmark = w.bookmarks;
	} else if (options->rv == 0) {
		w.after_rv = store_.rv();
	}
	if (std::int64_t seconds = std::atoll(r.arg("timeoutSeconds", "0").c_str()); seconds > 0)
		w.deadline_us = monotonic_us() + seconds * 1000000;
	auto watch = std::make_shared<Watch>(store_, r.kind->storage, options->selector, View(r), w);
	watches_.push_back(watch);
	Reply reply;
	reply.stream = watch;
	return reply;
}

} // namespace kubesim
