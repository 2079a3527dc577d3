// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A small HTTP server on a loopback address that answers GET of one path with a text
// (libmicrohttpd). Whoever asks is not trusted: at most 64 connections at a time, one
// request each, 16 KiB of request, some seconds from accept to close.
//
// It has no thread: its owner calls serve() in a loop.
#ifndef SK8_BASE_HTTP_LISTENER_H
#define SK8_BASE_HTTP_LISTENER_H

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/result.h"
#include "lib/base/thread.h"

namespace sk8 {

struct SocketAddress {
	sockaddr_storage address{};
	socklen_t size = 0;
};

// "127.0.0.1:9410" or "[::1]:9410": a number of the loopback network and a port. The
// error begins with a verb and is about the text: "is no loopback address, ...".
Result<SocketAddress> parse_loopback(std::string_view text);

class HttpListener {
public:
	struct Page {
		std::string path;         // "/metrics"
		std::string content_type;
		std::function<std::string()> text; // called by serve()
		Millis longest_connection{5'000};
	};

	// Listens when this returns. Error: why not ("Address already in use").
	static Result<std::unique_ptr<HttpListener>> open(const SocketAddress &address, Page page);
	// Closes all connections at once.
	~HttpListener();
	HttpListener(const HttpListener &) = delete;
	HttpListener &operator=(const HttpListener &) = delete;

	// Answers what has come; waits up to max_wait for something to come, or for wake.
	// One thread at a time.
	void serve(Millis max_wait, const Wakeup &wake);

private:
	class Impl;
	explicit HttpListener(std::unique_ptr<Impl> impl);
	std::unique_ptr<Impl> impl_;
};

} // namespace sk8

#endif
