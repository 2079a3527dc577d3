// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// HTTPS requests, timers and posted functions on one thread: the owner's, who calls
// run_once() again and again. Nothing here blocks outside run_once() and nothing
// is ever called back outside it. That thread must have SIGPIPE blocked or ignored.
// HTTP/1.1 only: one connection per watch, a small pool for the rest.
#ifndef SK8_KUBE_HTTP_LOOP_H
#define SK8_KUBE_HTTP_LOOP_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/kube/request_queue.h"

namespace sk8::kube {

// What TLS needs, all PEM. Shared by requests, never changed: new credentials are
// a new object (and HttpLoop::renew_connections()). A request never uses a
// connection that was made with another object; a loop is made for one at a time,
// several in turn cost connections.
struct TlsMaterial {
	std::string ca;          // empty: the system's certificates
	std::string certificate; // empty: no client certificate
	std::string key;
	std::string server_name; // empty: the host of the URL
};

struct HttpRequest {
	std::string method = "GET";
	std::string url; // https://..., already encoded; everything else is refused
	std::string content_type;
	std::string body;
	// If set: a 2xx answer that says to be of another type is none (status 0).
	std::string expected_type;
	std::string bearer_token; // never logged; empty: none
	std::shared_ptr<const TlsMaterial> tls;
	std::string proxy_url;
	Priority priority = Priority::normal; // of no interest with own_connection
	Millis timeout{30'000};         // until it is sent, and again until all has come; 0: none
	Millis connect_timeout{10'000}; // until TLS stands
	Millis idle_timeout{0};         // without a byte from the server; 0: no limit
	std::size_t max_body = 16u << 20; // of a collected body, bytes
	bool own_connection = false;      // for watches: HTTP/1.1, neither taken from nor
					  // given to the pool, ended by renew_connections()
	// If set, the body of a 2xx answer comes here in pieces instead of being
	// collected; false ends the request (done is called with stopped). May call
	// anything of the loop.
	std::function<bool(std::string_view)> on_data;
	// If set: called once with the final status, before the body.
	std::function<void(int)> on_status;
};

struct HttpResponse {
	int status = 0; // 0: no (complete) status line came
	std::string content_type;
	std::optional<Millis> retry_after; // Retry-After, at most 5 minutes
	std::optional<std::int64_t> date;  // the server's clock, seconds since 1970
	std::string body;                  // unless on_data took it
	std::string error;    // empty: the answer is complete; else one sentence. status
			      // may be set: the body ended early
	bool stopped = false; // on_data said so
	bool not_sent = false; // with an error: surely no byte of the request left us
	bool certificate_problem = false; // ours is unusable, or we do not believe the server's
};

// Prepares libcurl. Call it once before threads exist (a constructor of HttpLoop
// does otherwise); nothing ever undoes it.
void http_global_init();

class HttpLoop {
public:
	using RequestId = std::uint64_t; // never 0, never used twice
	using TimerId = std::uint64_t;
	using Done = std::function<void(HttpResponse)>;

	// clock must outlive the loop and drives timers, limits, timeout and idle_timeout.
	// Throws std::bad_alloc if libcurl cannot be set up.
	explicit HttpLoop(const Clock &clock);
	// Requests in flight are dropped, their done is not called. Owner's thread, not
	// from a callback.
	~HttpLoop();
	HttpLoop(const HttpLoop &) = delete;
	HttpLoop &operator=(const HttpLoop &) = delete;

	// --- any thread ---

	// Ends the current or the next wait of run_once().
	void wake();
	// f runs in run_once(), in the order of the calls. It is dropped if the loop ends.
	void post(std::function<void()> f);

	// --- owner's thread only, callbacks included ---

	// Waits at most max_wait for network, wake(), post() or a timer, then calls
	// whatever is due. Exceptions of callbacks are logged and stopped.
	void run_once(Millis max_wait);

	// f runs once, delay from now.
	TimerId after(Millis delay, std::function<void()> f);
	void cancel_timer(TimerId id); // unknown or done: no effect

	// Never fails at once: what is wrong comes through done, exactly once, unless
	// the request is cancelled. It waits for its turn within the limits.
	RequestId start(HttpRequest request, Done done);
	void cancel(RequestId id); // done will not be called; unknown or done: no effect
	std::size_t in_flight() const;

	void set_limits(RequestLimits limits);
	// The server is overloaded: for so long only urgent requests go.
	void hold_back(Millis time);

	// From now on no request uses a connection made before: credentials have
	// changed. Requests with own_connection end with an error, others finish.
	void renew_connections();

	const Clock &clock() const;

private:
	class Impl;
	std::unique_ptr<Impl> impl_;
};

} // namespace sk8::kube

#endif
