// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/http_listener.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>

#include "lib/base/file.h"
#include "lib/base/guard.h"

namespace sk8 {

static constexpr unsigned max_connections = 64;
static constexpr std::size_t max_request = 16 * 1024;
static constexpr int backlog = 128; // else a full queue delays honest clients by seconds

// ---- addresses ----

Result<SocketAddress> parse_loopback(std::string_view text)
{
	static const char *const example = ", use for example 127.0.0.1:9410 or [::1]:9410";
	const std::size_t colon = text.rfind(':');
	unsigned port = 0;
	if (colon != text.npos) {
		const char *const end = text.data() + text.size();
		const auto [rest, wrong] = std::from_chars(text.data() + colon + 1, end, port);
		if (wrong != std::errc() || rest != end || port > 65535)
			port = 0;
	}
	if (!port)
		return Error{std::string("is no address with a port from 1 to 65535") + example};
	const std::string host(text.substr(0, colon));
	SocketAddress out;
	sockaddr_in v4{};
	sockaddr_in6 v6{};
	if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1 && ntohl(v4.sin_addr.s_addr) >> 24 == 127) {
		v4.sin_family = AF_INET;
		v4.sin_port = htons(static_cast<std::uint16_t>(port));
		std::memcpy(&out.address, &v4, out.size = sizeof(v4));
		return out;
	}
	if (host.starts_with('[') && host.ends_with(']') &&
	    inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) == 1 &&
	    IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)) {
		v6.sin6_family = AF_INET6;
		v6.sin6_port = htons(static_cast<std::uint16_t>(port));
		std::memcpy(&out.address, &v6, out.size = sizeof(v6));
		return out;
	}
	return Error{std::string("is no loopback address") + example};
}

// ---- server ----

class HttpListener::Impl {
public:
	explicit Impl(Page page) : page_(std::move(page)) {}

	~Impl()
	{
		if (daemon_)
			MHD_stop_daemon(daemon_); // closes the socket, too
	}

	Result<void> open(const SocketAddress &at)
	{
		Fd fd(::socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
		const int on = 1;
		if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		    ::bind(fd.get(), reinterpret_cast<const sockaddr *>(&at.address), at.size) ||
		    ::listen(fd.get(), backlog))
			return Error{std::strerror(errno)};
		daemon_ = MHD_start_daemon(MHD_USE_EPOLL, 0, nullptr, nullptr,
					   on_request, this,
					   MHD_OPTION_LISTEN_SOCKET, fd.get(),
					   MHD_OPTION_CONNECTION_LIMIT, max_connections,
					   MHD_OPTION_CONNECTION_MEMORY_LIMIT, max_request,
					   MHD_OPTION_NOTIFY_CONNECTION, on_connection, this,
					   MHD_OPTION_END);
		if (!daemon_)
			return Error{"libmicrohttpd does not start"};
		fd.release(); // the daemon's
		return {};
	}

	void serve(Millis max_wait, const Wakeup &wake)
	{
		pollfd wait[] = {{MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, POLLIN, 0},
				 {wake.fd(), POLLIN, 0}};
		MHD_UNSIGNED_LONG_LONG ms = 0;
		if (MHD_get_timeout(daemon_, &ms) == MHD_YES)
			max_wait = std::min(max_wait, Millis(static_cast<Millis::rep>(ms)));
		if (!began_.empty())
			max_wait = std::min(max_wait, page_.longest_connection / 10); // for drop_slow()
		::poll(wait, 2, static_cast<int>(max_wait.count()));
		// It accepts again only at the begin of a run after one has ended: nothing
		// would wake us for those who wait.
		do {
			ended_ = false;
			MHD_run(daemon_);
		} while (ended_);
		drop_slow();
	}

private:
	// libmicrohttpd's own limit starts anew with each byte.
	void drop_slow()
	{
		const Millis now = clock_.monotonic();
		for (auto &[connection, since] : began_) {
			if (now - since <= page_.longest_connection)
				continue;
			const auto *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
			if (info)
				::shutdown(info->connect_fd, SHUT_RDWR); // libmicrohttpd sees its end
		}
	}

	static void on_connection(void *self, MHD_Connection *connection, void **,
				  MHD_ConnectionNotificationCode what)
	{
		auto &impl = *static_cast<Impl *>(self);
		guard("metrics listener", [&] {
			if (what == MHD_CONNECTION_NOTIFY_STARTED)
				impl.began_[connection] = impl.clock_.monotonic();
			else
				impl.ended_ = impl.began_.erase(connection) > 0;
		});
	}

	static MHD_Result on_request(void *self, MHD_Connection *connection, const char *url,
				     const char *method, const char *, const char *, std::size_t *upload,
				     void **slot)
	{
		return guard("metrics listener", MHD_NO, [&] {
			if (*upload)
				return MHD_NO; // a body that nobody asked for
			if (!*slot) {
				*slot = self; // the headers only: MHD calls again
				return MHD_YES;
			}
			return static_cast<Impl *>(self)->answer(connection, url, method);
		});
	}

	MHD_Result answer(MHD_Connection *connection, std::string_view url, std::string_view method)
	{
		if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD)
			return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n", "text/plain");
		if (url != page_.path)
			return reply(connection, MHD_HTTP_NOT_FOUND, "there is only " + page_.path + "\n",
				     "text/plain");
		return reply(connection, MHD_HTTP_OK, page_.text(), page_.content_type);
	}

	static MHD_Result reply(MHD_Connection *connection, unsigned status, const std::string &text,
				const std::string &type)
	{
		MHD_Response *response = MHD_create_response_from_buffer(
			text.size(), const_cast<char *>(text.data()), MHD_RESPMEM_MUST_COPY);
		if (!response)
			return MHD_NO;
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type.c_str());
		// One request each: then the time of a connection is the time of a request.
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
		const MHD_Result queued = MHD_queue_response(connection, status, response);
		MHD_destroy_response(response);
		return queued;
	}

	const Page page_;
	const SystemClock clock_;
	std::map<MHD_Connection *, Millis> began_;
	bool ended_ = false; // a connection, in this run
	MHD_Daemon *daemon_ = nullptr;
};

HttpListener::HttpListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpListener::~HttpListener() = default;

Result<std::unique_ptr<HttpListener>> HttpListener::open(const SocketAddress &address, Page page)
{
	auto impl = std::make_unique<Impl>(std::move(page));
	if (auto r = impl->open(address); !r)
		return r.error();
	return std::unique_ptr<HttpListener>(new HttpListener(std::move(impl)));
}

void HttpListener::serve(Millis max_wait, const Wakeup &wake)
{
	impl_->serve(max_wait, wake);
}

} // namespace sk8
