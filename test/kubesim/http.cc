// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/http.h"

#include <arpa/inet.h>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <microhttpd.h>

#include "test/kubesim/times.h"

namespace kubesim {

namespace {
constexpr std::size_t max_body = 3 * 1024 * 1024; // as the real server
constexpr std::size_t stream_block = 32 * 1024;
} // namespace

struct Http::Exchange {
	Http &http;
	MHD_Connection *connection;
	Request request;
	std::string authorization, impersonated;
	std::vector<std::string> impersonated_groups;
	bool too_large = false;
	bool begun = false;    // faults were looked up
	bool suspended = false;
	bool gone = false;     // the client closed while we were suspended
	std::optional<Fault> fault;
	std::optional<Loop::Timer> timer;
	std::shared_ptr<Stream> stream;
	std::size_t sent = 0;
	int code = 0; // of the answer; 0: none was given

	int fd() const
	{
		auto *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		return info ? info->connect_fd : -1;
	}

	// Stops work on this connection until resume(); notices if the client goes away.
	void suspend()
	{
		suspended = true;
		MHD_suspend_connection(connection);
		http.loop_.add_fd(fd(), EPOLLRDHUP, [this] {
			gone = true;
			resume();
		});
	}

	void resume()
	{
		if (!suspended)
			return;
		suspended = false;
		http.loop_.remove_fd(fd());
		MHD_resume_connection(connection);
		http.loop_.post([] {}); // so that the loop runs the daemon
	}

	void read_headers();
	MHD_Result answer(const Reply &reply);
	MHD_Result reset();
	MHD_Result proceed();
	Reply reply();
	long read(char *buffer, std::size_t size);
};

namespace {

MHD_Result collect_argument(void *cls, MHD_ValueKind, const char *key, const char *value)
{
	auto &request = *static_cast<Request *>(cls);
	request.query.emplace(key, value ? value : "");
	return request.query.size() < 100 ? MHD_YES : MHD_NO;
}

MHD_Result collect_group(void *cls, MHD_ValueKind, const char *key, const char *value)
{
	if (strcasecmp(key, "Impersonate-Group") == 0 && value)
		static_cast<std::vector<std::string> *>(cls)->push_back(value);
	return MHD_YES;
}

} // namespace

void Http::Exchange::read_headers()
{
	auto header = [&](const char *name) {
		const char *v = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
		return std::string(v ? v : "");
	};
	request.accept = header("Accept");
	request.content_type = header("Content-Type");
	request.user_agent = header("User-Agent");
	authorization = header("Authorization");
	impersonated = header("Impersonate-User");
	MHD_get_connection_values(connection, MHD_HEADER_KIND, collect_group, &impersonated_groups);
	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, collect_argument, &request);
	auto *peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	char text[INET6_ADDRSTRLEN] = "";
	if (peer && peer->client_addr && peer->client_addr->sa_family == AF_INET)
		inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in *>(peer->client_addr)->sin_addr, text,
			  sizeof text);
	request.source_ip = text;
}

// Authentication, impersonation, then the API.
Reply Http::Exchange::reply()
{
	if (too_large)
		return Reply::refuse({413, "RequestEntityTooLarge",
				      "Request entity too large: limit is " + std::to_string(max_body), J::object()});
	if (request.user.name.empty())
		return Reply::refuse(unauthorized());
	if (!impersonated.empty()) {
		auto other = kubesim::impersonate(http.rbac_, request.user, impersonated, impersonated_groups);
		if (!other)
			return Reply::refuse(other.failure());
		request.user = *other;
	}
	if (fault && fault->action == Fault::deny) {
		parse_path(request);
		return Reply::refuse(Rbac::forbidden(request.user, {request.verb, request.group, request.resource,
								    request.subresource, request.ns, request.name,
								    request.path}));
	}
	if (fault && fault->action == Fault::status) {
		parse_path(request);
		const char *reason = fault->code == 429   ? "TooManyRequests"
				     : fault->code == 503 ? "ServiceUnavailable"
				     : fault->code == 504 ? "Timeout"
							  : "InternalError";
		Reply r = Reply::refuse({fault->code, reason, "ordered by a fault rule", {}});
		if (fault->retry_after >= 0)
			r.headers.emplace_back("Retry-After", std::to_string(fault->retry_after));
		return r;
	}
	if (fault && fault->action == Fault::answer) {
		parse_path(request); // for the audit log
		Reply r{fault->code, fault->type, fault->body, nullptr, {}};
		while (!fault->body.empty() && r.body.size() < fault->bytes)
			r.body += fault->body;
		return r;
	}
	return http.api_.handle(request);
}

// Called when the request is complete, and again after each resume.
MHD_Result Http::Exchange::proceed()
{
	if (gone)
		return MHD_NO;
	if (!begun) {
		begun = true;
		auto *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
		std::optional<User> user;
		if (info && info->tls_session)
			user = user_of_certificate(static_cast<gnutls_session_t>(info->tls_session));
		if (!user)
			user = http.tokens_.user_of(authorization);
		if (user)
			request.user = *user;
		fault = http.faults_.strike(request);
		if (fault && fault->action == Fault::hang) {
			suspend();
			return MHD_YES;
		}
		if (fault && fault->delay_us > 0) {
			suspend();
			timer = http.loop_.after_us(fault->delay_us, [this] {
				timer.reset();
				resume();
			});
			return MHD_YES;
		}
	}
	if (fault && fault->action == Fault::hang)
		return MHD_NO;
	if (fault && fault->action == Fault::reset)
		return reset();
	return answer(reply());
}

MHD_Result Http::Exchange::reset()
{
	linger l{1, 0};
	setsockopt(fd(), SOL_SOCKET, SO_LINGER, &l, sizeof l);
	return MHD_NO;
}

long Http::Exchange::read(char *buffer, std::size_t size)
{
	if (gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (fault && fault->action == Fault::truncate) {
		if (sent >= fault->bytes)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		size = std::min(size, fault->bytes - sent);
	}
	long n = stream->read(buffer, size);
	if (n > 0)
		sent += n;
	if (n == Stream::wait) {
		suspend();
		return 0;
	}
	return n == Stream::end	    ? static_cast<long>(MHD_CONTENT_READER_END_OF_STREAM)
	       : n == Stream::abort ? static_cast<long>(MHD_CONTENT_READER_END_WITH_ERROR)
				    : n;
}

namespace {

// The clock of the answer; without it libmicrohttpd's own, which is right.
std::string http_date(std::int64_t seconds)
{
	const std::time_t t = seconds;
	std::tm parts{};
	gmtime_r(&t, &parts);
	char text[64];
	std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
	return text;
}

class TextStream final : public Stream {
public:
	explicit TextStream(std::string text) : text_(std::move(text)) {}
	long read(char *buffer, std::size_t size) override
	{
		std::size_t n = text_.copy(buffer, size, at_);
		at_ += n;
		return n ? static_cast<long>(n) : end;
	}

private:
	std::string text_;
	std::size_t at_ = 0;
};

ssize_t read_stream(void *cls, std::uint64_t, char *buffer, std::size_t size)
{
	return static_cast<Http::Exchange *>(cls)->read(buffer, size);
}

} // namespace

MHD_Result Http::Exchange::answer(const Reply &r)
{
	code = r.code;
	if (request.verb == "watch" && r.stream)
		http.audit_.log(request, code, "ResponseStarted");
	MHD_Response *response;
	if (r.stream || (fault && fault->action == Fault::truncate)) {
		std::uint64_t size = r.stream ? MHD_SIZE_UNKNOWN : r.body.size();
		stream = r.stream ? r.stream : std::make_shared<TextStream>(r.body);
		stream->wake = [this] { resume(); };
		response = MHD_create_response_from_callback(size, stream_block, read_stream, this, nullptr);
	} else {
		response = MHD_create_response_from_buffer(r.body.size(), const_cast<char *>(r.body.data()),
							   MHD_RESPMEM_MUST_COPY);
	}
	MHD_add_response_header(response, "Content-Type", r.type.c_str());
	MHD_add_response_header(response, "Cache-Control", "no-cache, private");
	for (const auto &[key, value] : r.headers)
		MHD_add_response_header(response, key.c_str(), value.c_str());
	if (fault && fault->action == Fault::clock)
		MHD_add_response_header(response, "Date", http_date(now_us() / 1'000'000 + fault->ahead).c_str());
	MHD_Result queued = MHD_queue_response(connection, r.code, response);
	MHD_destroy_response(response);
	return queued;
}

namespace {

MHD_Result on_request(void *cls, MHD_Connection *connection, const char *url, const char *method, const char *,
		      const char *data, std::size_t *size, void **slot)
{
	auto *x = static_cast<Http::Exchange *>(*slot);
	if (!x) {
		x = new Http::Exchange{*static_cast<Http *>(cls), connection, {}, {}, {}, {}, false, false,
				       false, false, {}, {}, {}, 0, 0};
		*slot = x;
		x->request.method = method;
		x->request.path = url;
		x->request.received_us = now_us();
		x->read_headers();
		return MHD_YES;
	}
	if (*size) {
		if (x->request.body.size() + *size > max_body)
			x->too_large = true;
		else
			x->request.body.append(data, *size);
		*size = 0;
		return MHD_YES;
	}
	return x->proceed();
}

void quiet(void *, const char *format, va_list arguments)
{
	// Clients that leave without a TLS goodbye are not worth a line.
	(void)format;
	(void)arguments;
}

std::uint64_t run_completed(Audit &audit, Http::Exchange *x, Loop &loop)
{
	if (x->timer)
		loop.cancel(*x->timer);
	if (x->stream)
		x->stream->wake = nullptr;
	if (x->code)
		audit.log(x->request, x->code);
	delete x;
	return 0;
}

} // namespace

Http::Http(Loop &loop, Api &api, Rbac &rbac, Tokens &tokens, Faults &faults, Audit &audit)
	: loop_(loop), api_(api), rbac_(rbac), tokens_(tokens), faults_(faults), audit_(audit)
{
}

Http::~Http()
{
	if (daemon_)
		MHD_stop_daemon(daemon_);
}

void Http::pump()
{
	MHD_run(daemon_);
}

std::string Http::start(const HttpOptions &o)
{
	certificate_ = o.certificate;
	key_ = o.key;
	client_ca_ = o.client_ca;
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_port = htons(static_cast<std::uint16_t>(o.port));
	if (inet_pton(AF_INET, o.address.c_str(), &address.sin_addr) != 1)
		return "--listen needs an IPv4 address and a port, such as 127.0.0.1:0";
	auto completed = [](void *cls, MHD_Connection *, void **slot, MHD_RequestTerminationCode) {
		auto *http = static_cast<Http *>(cls);
		if (*slot)
			run_completed(http->audit_, static_cast<Exchange *>(*slot), http->loop_);
		*slot = nullptr;
	};
	void (*on_completed)(void *, MHD_Connection *, void **, MHD_RequestTerminationCode) = completed;
	MHD_OptionItem trust[] = {{MHD_OPTION_HTTPS_MEM_TRUST, 0, client_ca_.data()}, {MHD_OPTION_END, 0, nullptr}};
	if (client_ca_.empty())
		trust[0] = {MHD_OPTION_END, 0, nullptr};
	daemon_ = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_TLS | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, nullptr, nullptr,
		on_request, this, MHD_OPTION_EXTERNAL_LOGGER, quiet, nullptr, MHD_OPTION_SOCK_ADDR, &address,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, this, MHD_OPTION_HTTPS_MEM_CERT, certificate_.c_str(),
		MHD_OPTION_HTTPS_MEM_KEY, key_.c_str(), MHD_OPTION_LISTENING_ADDRESS_REUSE, 1U,
		MHD_OPTION_CONNECTION_LIMIT, 10000U, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		static_cast<std::size_t>(128 * 1024), MHD_OPTION_ARRAY, trust, MHD_OPTION_END);
	if (!daemon_)
		return "cannot listen on " + o.address + ":" + std::to_string(o.port) +
		       " (is the port taken, are certificate and key PEM files that belong together?)";
	port_ = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port;
	int epoll = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	loop_.add_fd(epoll, EPOLLIN, [] {});
	loop_.before_wait = [this]() -> std::int64_t {
		pump();
		MHD_UNSIGNED_LONG_LONG ms;
		return MHD_get_timeout(daemon_, &ms) == MHD_YES ? static_cast<std::int64_t>(ms) * 1000 : -1;
	};
	return {};
}

} // namespace kubesim
