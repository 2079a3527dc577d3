// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/request.h"

#include <algorithm>

namespace kubesim {

bool User::in(const std::string &group) const
{
	return std::find(groups.begin(), groups.end(), group) != groups.end();
}

std::string Request::arg(const std::string &key, const std::string &otherwise) const
{
	auto it = query.find(key);
	return it == query.end() ? otherwise : it->second;
}

bool Request::flag(const std::string &key) const
{
	auto it = query.find(key);
	return it != query.end() && it->second != "false" && it->second != "0" && it->second != "False";
}

static std::string verb_of(const Request &r)
{
	if (r.method == "GET" || r.method == "HEAD")
		return !r.name.empty() ? "get" : r.flag("watch") ? "watch" : "list";
	if (r.method == "POST")
		return "create";
	if (r.method == "PUT")
		return "update";
	if (r.method == "PATCH")
		return "patch";
	if (r.method == "DELETE")
		return r.name.empty() ? "deletecollection" : "delete";
	return r.method;
}

static std::vector<std::string> split_path(const std::string &path)
{
	std::vector<std::string> parts;
	for (std::size_t from = 0; from < path.size();) {
		std::size_t to = std::min(path.find('/', from), path.size());
		if (to > from)
			parts.push_back(path.substr(from, to - from));
		from = to + 1;
	}
	return parts;
}

void parse_path(Request &r)
{
	std::vector<std::string> p = split_path(r.path);
	r.verb = r.method;
	std::transform(r.verb.begin(), r.verb.end(), r.verb.begin(), ::tolower);
	std::size_t at;
	if (p.size() > 2 && p[0] == "api") {
		r.version = p[1];
		at = 2;
	} else if (p.size() > 3 && p[0] == "apis") {
		r.group = p[1];
		r.version = p[2];
		at = 3;
	} else {
		return;
	}
	if (p[at] == "watch") {
		r.query.emplace("watch", "1");
		if (++at >= p.size())
			return;
	}
	r.is_resource = true;
	// /namespaces/NS/pods/..., but /namespaces/NS and /namespaces/NS/status are the
	// namespace itself.
	if (p[at] == "namespaces" && at + 1 < p.size()) {
		r.ns = p[at + 1];
		if (at + 2 < p.size() && p[at + 2] != "status" && p[at + 2] != "finalize")
			at += 2;
	}
	r.resource = p[at];
	if (at + 1 < p.size())
		r.name = p[at + 1];
	if (at + 2 < p.size())
		r.subresource = p[at + 2];
	r.kind = find_kind(r.group, r.version, r.resource);
	r.verb = verb_of(r);
}

Reply Reply::json(int code, const std::string &body)
{
	Reply r;
	r.code = code;
	r.body = body;
	r.body += '\n';
	return r;
}

Reply Reply::refuse(const Failure &failure)
{
	Reply r = json(failure.code, failure.status().dump());
	if (J after = failure.details ? failure.details["retryAfterSeconds"] : J())
		r.headers.emplace_back("Retry-After", std::to_string(after.num()));
	return r;
}

Reply Reply::text(int code, const std::string &body)
{
	Reply r;
	r.code = code;
	r.type = "text/plain; charset=utf-8";
	r.body = body;
	return r;
}

} // namespace kubesim
