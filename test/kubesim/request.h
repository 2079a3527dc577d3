// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A request as the API sees it, and what it answers.
#ifndef KUBESIM_REQUEST_H
#define KUBESIM_REQUEST_H

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/kubesim/failure.h"
#include "test/kubesim/jv.h"
#include "test/kubesim/kinds.h"

namespace kubesim {

struct User {
	std::string name, uid;
	std::vector<std::string> groups;
	bool in(const std::string &group) const;
};

struct Request {
	std::string method, path; // path without the query
	std::multimap<std::string, std::string> query;
	std::string accept, content_type, user_agent, source_ip, body;
	User user;
	std::int64_t received_us = 0;

	// Filled by parse_path().
	bool is_resource = false;
	std::string verb; // get list watch create update patch delete deletecollection, or the method
	std::string group, version, resource, ns, name, subresource;
	const Kind *kind = nullptr; // nullptr: not one of ours

	// Filled while it is served, for the audit log.
	std::string object_name, object_uid;

	std::string arg(const std::string &key, const std::string &otherwise = {}) const;
	bool flag(const std::string &key) const; // "1", "true", "True" ...
};

void parse_path(Request &request);

// A response body that comes bit by bit.
class Stream {
public:
	static constexpr long wait = 0, end = -1, abort = -2;
	virtual ~Stream() = default;
	// Bytes written to buffer, or one of the above. After wait it calls wake().
	virtual long read(char *buffer, std::size_t size) = 0;
	std::function<void()> wake; // set by who reads
};

struct Reply {
	int code = 200;
	std::string type = "application/json";
	std::string body;
	std::shared_ptr<Stream> stream; // if set, instead of body
	std::vector<std::pair<std::string, std::string>> headers;

	static Reply json(int code, const std::string &body);
	static Reply refuse(const Failure &failure);
	static Reply text(int code, const std::string &body);
};

} // namespace kubesim

#endif
