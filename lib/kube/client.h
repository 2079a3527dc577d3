// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Calls of the Kubernetes API: asynchronous, JSON, one Reply each. Everything runs
// on the HttpLoop's thread; done is called from run_once(), never from the call
// itself, exactly once unless cancelled.
#ifndef SK8_KUBE_CLIENT_H
#define SK8_KUBE_CLIENT_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/kube/http_loop.h"
#include "lib/kube/kubeconfig.h"
#include "lib/kube/url.h"

namespace sk8::kube {

struct Reply {
	int status = 0;    // HTTP status; 0: no (complete) answer, nobody knows what happened
	Json body;         // the object, a Status, or null
	bool not_sent = false; // with status 0: surely nothing happened, no byte of it left us
	std::string error; // empty for 2xx, else one sentence with verb, resource and reason
	std::optional<Millis> retry_after;
	std::optional<std::int64_t> date; // the server's clock, seconds since 1970

	bool ok() const { return status >= 200 && status < 300 && error.empty(); }
};

enum class PatchType { merge, strategic, json };

// One request and how it was answered.
struct Answer {
	const char *verb;          // "get"
	std::string_view resource; // "pods/binding"
	int status;                // HTTP; 0: none came
	Millis took;               // until its end; of a watch that is its length
};

struct ClientOptions {
	Millis timeout{30'000};         // of get, create, patch, replace, delete
	Millis connect_timeout{10'000}; // of all
	Millis list_idle{60'000};       // a list that stalls so long is given up
	Millis list_timeout{600'000};   // a list that takes so long is given up
	Millis watch_idle{150'000};     // a watch that is silent so long ends (servers send
					// bookmarks once a minute)
	std::size_t max_item = 16u << 20; // one object of a list or line of a watch, bytes
	std::size_t max_items = 1'000'000; // of a list
	Millis credentials_cache{60'000}; // files are looked at again after that
	// For those who count: called on the loop's thread, also for what is sent again.
	std::function<void(const Answer &)> answered;
};

// How a request ended, for whoever keeps count.
struct CallOutcome {
	const char *verb;     // of RBAC: get, list, watch, create, update, patch, delete
	std::string resource; // pods/binding
	std::string ns;       // may be empty
	const Reply &reply;
};

class Client {
public:
	using CallId = std::uint64_t; // never 0, never used twice
	using Done = std::function<void(Reply)>;

	// loop must outlive the client. Credentials are read at the first call and again
	// when their files change; what is wrong with them comes as Reply::error.
	Client(HttpLoop &loop, ClusterAccess access, ClientOptions options = {});
	// Calls in flight are dropped, their done is not called.
	~Client();
	Client(const Client &) = delete;
	Client &operator=(const Client &) = delete;

	// Told of each call's end before its done; of a watch when it is accepted, too. May
	// not call the client.
	void observe(std::function<void(const CallOutcome &)> observer);

	// path: from resource_path(), starts with "/".
	CallId get(const std::string &path, Done done);
	CallId create(const std::string &path, const Json &body, Done done,
		      Priority priority = Priority::normal); // POST
	CallId replace(const std::string &path, const Json &body, Done done); // PUT
	CallId patch(const std::string &path, PatchType type, const Json &body, Done done,
		     Priority priority = Priority::normal);
	// options: a DeleteOptions object, or null. Urgent.
	CallId delete_(const std::string &path, const Json &options, Done done);

	// item: the text of each object of the list as it arrives, valid during the call
	// (objects before an error have been seen: collect, and believe them when done
	// says ok). Reply::body is the list without its items.
	CallId list(const std::string &path, const Query &query,
		    std::function<void(std::string_view item)> item, Done done);

	// line: each event's text without the newline, valid during the call; false ends
	// the watch. cut: the line was longer than max_item and only its begin is given.
	// up: the server has accepted the watch. query must have watch=true. timeout: for
	// the whole watch. A watch that ended as it should (end of stream, also within a
	// line, silence, or false) has status 200 and no error.
	struct WatchHandler {
		std::function<void()> up;
		std::function<bool(std::string_view line, bool cut)> line;
		Done done;
	};
	CallId watch(const std::string &path, const Query &query, Millis timeout,
		     WatchHandler handler);

	void cancel(CallId id); // done will not be called; unknown or done: no effect

	HttpLoop &loop();
	const ClusterAccess &access() const;

private:
	class Impl;
	std::unique_ptr<Impl> impl_;
};

} // namespace sk8::kube

#endif
