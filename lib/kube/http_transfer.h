// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// One HTTPS request on one libcurl easy handle: options, callbacks, limits and the
// answer. Internal to HttpLoop, which moves the bytes.
#ifndef SK8_KUBE_HTTP_TRANSFER_H
#define SK8_KUBE_HTTP_TRANSFER_H

#include <array>
#include <curl/curl.h>
#include <memory>
#include <string>

#include "lib/kube/http_loop.h"

namespace sk8::kube {

class HttpTransfer {
public:
	// now: monotonic; the limits of time count from here.
	HttpTransfer(HttpLoop::RequestId id, HttpRequest request, HttpLoop::Done done, Millis now);
	HttpTransfer(const HttpTransfer &) = delete;
	HttpTransfer &operator=(const HttpTransfer &) = delete;

	// Creates the easy handle. False: fail() has been called or should be. doubt: names
	// are looked up anew, and no connection is used that was idle for a second.
	bool prepare(bool doubt = false);
	CURL *easy() const { return easy_.get(); }
	const HttpRequest &request() const { return request_; }
	// It is on its way now (monotonic): the limits of time begin again.
	void sent(Millis now);

	// When the next limit of time is reached (monotonic).
	Millis deadline() const;
	// Fails if a limit of time has been reached. Bytes that came since the last call
	// count as come now.
	void expire(Millis now);
	// The first of fail() and completed() decides.
	void fail(std::string why);
	void completed(CURLcode result);
	bool failed() const { return failed_; }
	bool was_sent() const { return sent_; }
	// ... and not left in the midst of it.
	bool answered() const { return response_.status != 0 && !broken_off_; }
	bool is_complete() const { return complete_; }

	// Calls done. Once, after failed() or is_complete(), detached from libcurl.
	void finish();
	// From now on no callback calls anybody.
	void silence() { silent_ = true; }

	void *pool = nullptr; // HttpLoop's: where the handle is attached

private:
	struct FreeEasy {
		void operator()(CURL *c) const { curl_easy_cleanup(c); }
	};
	struct FreeList {
		void operator()(curl_slist *l) const { curl_slist_free_all(l); }
	};

	bool nothing_sent() const;
	void set_tls();
	void set_body();
	void set_headers();
	bool set_name();
	void add_header(const std::string &line);
	bool header_line(std::string_view line);
	bool headers_over();
	bool take(std::string_view bytes);
	std::string reason(CURLcode result) const;
	template <class T>
	void set(CURLoption option, T value);

	static std::size_t on_header(char *bytes, std::size_t, std::size_t n, void *self);
	static std::size_t on_body(char *bytes, std::size_t, std::size_t n, void *self);
	static int on_socket_made(void *, curl_socket_t fd, curlsocktype);
	static curl_socket_t on_socket_wanted(void *, curlsocktype, curl_sockaddr *address);

	HttpLoop::RequestId id_;
	HttpRequest request_;
	HttpLoop::Done done_;
	HttpResponse response_;
	Millis started_, last_byte_;
	bool sent_ = false;
	bool bytes_came_ = false, status_told_ = false, too_large_ = false, wrong_type_ = false, broken_off_ = false;
	std::size_t header_bytes_ = 0;
	bool failed_ = false, complete_ = false, silent_ = false, prepared_ = true;
	std::array<char, CURL_ERROR_SIZE> error_{};
	std::unique_ptr<curl_slist, FreeList> headers_, connect_to_;
	std::unique_ptr<CURL, FreeEasy> easy_; // after what it points to
};

} // namespace sk8::kube

#endif
