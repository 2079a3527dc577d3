// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/http_transfer.h"

#include <algorithm>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <sys/socket.h>
#include <utility>

#include "lib/base/guard.h"
#include "lib/base/text.h"

#if LIBCURL_VERSION_NUM < 0x074d00
#error "libcurl 7.77 or newer is needed: older ones take certificates only from files"
#endif

namespace sk8::kube {

namespace {

// A peer that is gone is noticed after half a minute, whatever the kernel's defaults say.
constexpr long keepalive_idle_s = 15, keepalive_interval_s = 5;
constexpr unsigned tcp_user_timeout_ms = 30'000;
// A name that leads elsewhere by now is followed after that: libcurl's cache, and
// connections that still work.
constexpr long dns_cache_s = 30, connection_life_s = 600;
constexpr std::size_t max_error_body = 1u << 20;
constexpr std::size_t max_headers = 64u << 10;
constexpr Millis longest_retry_after{300'000};
constexpr Millis never = Millis::max();

bool is_success(int status)
{
	return status >= 200 && status < 300;
}

// "https://host:port/path" -> {"host", ":port", "/path"}; the host with its brackets.
struct UrlParts {
	std::string host, port, rest;
};

UrlParts url_parts(const std::string &url)
{
	std::size_t from = sizeof("https://") - 1;
	std::size_t slash = std::min(url.find('/', from), url.size());
	std::string authority = url.substr(from, slash - from);
	std::size_t colon = authority.rfind(':');
	if (colon != authority.npos && authority.find(']', colon) != authority.npos)
		colon = authority.npos; // inside an IPv6 address
	if (colon == authority.npos)
		colon = authority.size();
	return {authority.substr(0, colon), authority.substr(colon), url.substr(slash)};
}

curl_blob blob_of(const std::string &text)
{
	// NOCOPY: the request keeps the material alive.
	return {const_cast<char *>(text.data()), text.size(), CURL_BLOB_NOCOPY};
}

} // namespace

HttpTransfer::HttpTransfer(HttpLoop::RequestId id, HttpRequest request, HttpLoop::Done done,
			   Millis now)
	: id_(id), request_(std::move(request)), done_(std::move(done)), started_(now), last_byte_(now)
{
}

template <class T>
void HttpTransfer::set(CURLoption option, T value)
{
	if (curl_easy_setopt(easy_.get(), option, value) != CURLE_OK)
		prepared_ = false; // never send half of what was meant
}

bool HttpTransfer::prepare(bool doubt)
{
	if (!request_.url.starts_with("https://")) {
		fail("only https:// is spoken");
		return false;
	}
	easy_.reset(curl_easy_init());
	if (!easy_)
		throw std::bad_alloc();
	set(CURLOPT_PRIVATE, static_cast<void *>(this));
	set(CURLOPT_ERRORBUFFER, error_.data());
#if LIBCURL_VERSION_NUM >= 0x075500
	set(CURLOPT_PROTOCOLS_STR, "https");
#else
	set(CURLOPT_PROTOCOLS, long(CURLPROTO_HTTPS));
#endif
	set(CURLOPT_PATH_AS_IS, 1L);
	set(CURLOPT_FOLLOWLOCATION, 0L);
	set(CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_1_1));
	set(CURLOPT_NOSIGNAL, 1L);
	set(CURLOPT_CONNECTTIMEOUT_MS, long(request_.connect_timeout.count()));
	set(CURLOPT_TCP_KEEPALIVE, 1L);
	set(CURLOPT_TCP_KEEPIDLE, keepalive_idle_s);
	set(CURLOPT_TCP_KEEPINTVL, keepalive_interval_s);
	set(CURLOPT_DNS_CACHE_TIMEOUT, doubt ? 0L : dns_cache_s);
	if (doubt)
		set(CURLOPT_MAXAGE_CONN, 0L);
#if LIBCURL_VERSION_NUM >= 0x075000
	set(CURLOPT_MAXLIFETIME_CONN, connection_life_s);
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	set(CURLOPT_QUICK_EXIT, 1L); // or the end of a request waits for a resolver that hangs
#endif
	set(CURLOPT_SOCKOPTFUNCTION, &on_socket_made);
	set(CURLOPT_OPENSOCKETFUNCTION, &on_socket_wanted);
	set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	set(CURLOPT_HEADERFUNCTION, &on_header);
	set(CURLOPT_HEADERDATA, static_cast<void *>(this));
	set(CURLOPT_WRITEFUNCTION, &on_body);
	set(CURLOPT_WRITEDATA, static_cast<void *>(this));
	// Not what the environment of the host process says.
	set(CURLOPT_PROXY, request_.proxy_url.c_str());
	set(CURLOPT_NOPROXY, "");
	set(CURLOPT_NETRC, long(CURL_NETRC_IGNORED));
	if (request_.own_connection) {
		set(CURLOPT_FRESH_CONNECT, 1L);
		set(CURLOPT_FORBID_REUSE, 1L);
	}
	set_tls();
	set_body();
	if (!set_name())
		return false;
	set_headers();
	return prepared_;
}

void HttpTransfer::set_tls()
{
	set(CURLOPT_SSL_VERIFYPEER, 1L);
	set(CURLOPT_SSL_VERIFYHOST, 2L);
	set(CURLOPT_SSLVERSION, long(CURL_SSLVERSION_TLSv1_2));
	const TlsMaterial *tls = request_.tls.get();
	if (!tls)
		return;
	if (!tls->ca.empty()) {
		curl_blob ca = blob_of(tls->ca);
		set(CURLOPT_CAINFO_BLOB, &ca);
		// or the system's folder would be believed beside it
		set(CURLOPT_CAINFO, static_cast<char *>(nullptr));
		set(CURLOPT_CAPATH, static_cast<char *>(nullptr));
	}
	if (!tls->certificate.empty()) {
		curl_blob certificate = blob_of(tls->certificate), key = blob_of(tls->key);
		set(CURLOPT_SSLCERTTYPE, "PEM");
		set(CURLOPT_SSLCERT_BLOB, &certificate);
		set(CURLOPT_SSLKEYTYPE, "PEM");
		set(CURLOPT_SSLKEY_BLOB, &key);
	}
}

void HttpTransfer::set_body()
{
	if (request_.method != "GET")
		set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
	if (!request_.body.empty() || request_.method == "POST") {
		set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
		set(CURLOPT_POSTFIELDS, request_.body.data());
	}
}

// The certificate is compared with the host of the URL. If it names another one,
// the URL gets that name, the connection goes to the real host, and the Host header
// says what Go's client would say.
bool HttpTransfer::set_name()
{
	std::string url = request_.url;
	if (request_.tls && !request_.tls->server_name.empty()) {
		UrlParts parts = url_parts(url);
		const std::string &name = request_.tls->server_name;
		std::string port = parts.port.empty() ? ":443" : parts.port;
		connect_to_.reset(curl_slist_append(nullptr, ("::" + parts.host + port).c_str()));
		if (!connect_to_)
			throw std::bad_alloc();
		set(CURLOPT_CONNECT_TO, connect_to_.get());
		add_header("Host: " + parts.host + parts.port);
		url = "https://" + name + parts.port + parts.rest;
	}
	set(CURLOPT_URL, url.c_str());
	return prepared_;
}

void HttpTransfer::set_headers()
{
	add_header("Accept: application/json");
	add_header("User-Agent: slurm-k8s");
	add_header("Expect:");
	if (!request_.content_type.empty())
		add_header("Content-Type: " + request_.content_type);
	if (!request_.bearer_token.empty())
		add_header("Authorization: Bearer " + request_.bearer_token);
	set(CURLOPT_HTTPHEADER, headers_.get());
}

void HttpTransfer::add_header(const std::string &line)
{
	curl_slist *longer = curl_slist_append(headers_.get(), line.c_str());
	if (!longer)
		throw std::bad_alloc();
	headers_.release(); // is the head of longer
	headers_.reset(longer);
}

Millis HttpTransfer::deadline() const
{
	Millis total = request_.timeout > Millis(0) ? started_ + request_.timeout : never;
	Millis idle = sent_ && request_.idle_timeout > Millis(0) ? last_byte_ + request_.idle_timeout : never;
	return std::min(total, idle);
}

void HttpTransfer::expire(Millis now)
{
	if (std::exchange(bytes_came_, false))
		last_byte_ = now;
	if (complete_ || failed_ || now < deadline())
		return;
	auto seconds = [](Millis t) { return strprintf("%.3g s", double(t.count()) / 1000); };
	if (!sent_)
		fail("not sent within " + seconds(request_.timeout) + ": others are before it");
	else if (request_.timeout > Millis(0) && now >= started_ + request_.timeout)
		fail("no complete answer within " + seconds(request_.timeout));
	else
		fail("nothing came for " + seconds(request_.idle_timeout));
}

void HttpTransfer::sent(Millis now)
{
	sent_ = true;
	started_ = last_byte_ = now;
}

void HttpTransfer::fail(std::string why)
{
	if (failed_ || complete_)
		return;
	failed_ = true;
	response_.not_sent = nothing_sent();
	response_.error = std::move(why);
}

// Of the request's head; on a connection that was found dead it counts both tries.
bool HttpTransfer::nothing_sent() const
{
	long bytes = 0;
	return !sent_ || (curl_easy_getinfo(easy_.get(), CURLINFO_REQUEST_SIZE, &bytes) == CURLE_OK && bytes == 0);
}

void HttpTransfer::completed(CURLcode result)
{
	if (failed_ || complete_)
		return;
	complete_ = true;
	long status = 0;
	curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
	response_.status = static_cast<int>(status);
	curl_off_t retry = 0;
	if (curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &retry) == CURLE_OK && retry > 0)
		response_.retry_after =
			std::min(Millis(std::min<curl_off_t>(retry, 86400) * 1000), longest_retry_after);
	response_.certificate_problem = result == CURLE_SSL_CERTPROBLEM || result == CURLE_PEER_FAILED_VERIFICATION;
	if (result != CURLE_OK && !response_.stopped) {
		response_.error = reason(result);
		response_.not_sent = nothing_sent();
		broken_off_ = true;
	}
	if (wrong_type_)
		response_.status = 0; // whoever answered, it was not the API server
}

std::string HttpTransfer::reason(CURLcode result) const
{
	if (wrong_type_)
		return "the answer is " + one_line(response_.content_type, 64) + " instead of " +
		       request_.expected_type + "; the address leads to something else than an API server";
	if (header_bytes_ > max_headers)
		return "the answer's headers are larger than " + std::to_string(max_headers) + " bytes";
	if (too_large_)
		return "the answer is larger than " + std::to_string(request_.max_body) + " bytes";
	std::string text = error_[0] ? error_.data() : curl_easy_strerror(result);
	while (!text.empty() && (text.back() == '\n' || text.back() == '.'))
		text.pop_back();
	return one_line(text, 512);
}

void HttpTransfer::finish()
{
	if (!silent_ && done_)
		done_(std::move(response_));
}

// --- called by libcurl -----------------------------------------------------------

// The value if line is that header; name: lower case, with its colon.
static std::optional<std::string_view> header_value(std::string_view line, std::string_view name)
{
	auto same = [](char want, char got) { return (got >= 'A' && got <= 'Z' ? got + 32 : got) == want; };
	if (line.size() <= name.size() || !std::equal(name.begin(), name.end(), line.begin(), same))
		return std::nullopt;
	return trim(line.substr(name.size()).substr(0, 256));
}

bool HttpTransfer::header_line(std::string_view line)
{
	bytes_came_ = true;
	header_bytes_ += line.size();
	if (header_bytes_ > max_headers)
		return false;
	line = trim(line);
	if (auto type = header_value(line, "content-type:")) {
		response_.content_type = *type;
		return true;
	}
	if (auto date = header_value(line, "date:")) {
		const std::time_t t = curl_getdate(std::string(*date).c_str(), nullptr);
		if (t > 0)
			response_.date = t;
		return true;
	}
	return !line.empty() || status_told_ || headers_over();
}

bool HttpTransfer::headers_over()
{
	long status = 0;
	curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
	if (status < 200)
		return true; // another status follows
	response_.status = static_cast<int>(status);
	status_told_ = true;
	// "application/json; charset=utf-8" is meant, too. No type at all: the content tells.
	wrong_type_ = is_success(response_.status) && !response_.content_type.empty() &&
		      !response_.content_type.starts_with(request_.expected_type);
	if (wrong_type_)
		return false;
	if (request_.on_status && !silent_)
		request_.on_status(response_.status);
	return true;
}

bool HttpTransfer::take(std::string_view bytes)
{
	bytes_came_ = true;
	if (silent_ || failed_)
		return false;
	if (request_.on_data && is_success(response_.status)) {
		bool more = request_.on_data(bytes);
		if (!more)
			response_.stopped = true;
		return more && !silent_ && !failed_;
	}
	std::size_t most =
		is_success(response_.status) ? request_.max_body : std::min(request_.max_body, max_error_body);
	if (response_.body.size() + bytes.size() > most) {
		too_large_ = true;
		return false;
	}
	response_.body.append(bytes);
	return true;
}

std::size_t HttpTransfer::on_header(char *bytes, std::size_t, std::size_t n, void *self)
{
	return guard("kube: header", std::size_t(0), [&] {
		return static_cast<HttpTransfer *>(self)->header_line({bytes, n}) ? n : 0;
	});
}

std::size_t HttpTransfer::on_body(char *bytes, std::size_t, std::size_t n, void *self)
{
	// n is never 0 here; any other number than n ends the request.
	return guard("kube: body", std::size_t(0), [&] {
		return static_cast<HttpTransfer *>(self)->take({bytes, n}) ? n : 0;
	});
}

int HttpTransfer::on_socket_made(void *, curl_socket_t fd, curlsocktype)
{
	unsigned timeout = tcp_user_timeout_ms;
	// Not fatal: the watchdog of each watch is slower but sure.
	(void)::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
	return CURL_SOCKOPT_OK;
}

curl_socket_t HttpTransfer::on_socket_wanted(void *, curlsocktype, curl_sockaddr *address)
{
	int fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

} // namespace sk8::kube
