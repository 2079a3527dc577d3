// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/unit/kube/https_server.h"
#include "test/unit/kube/temp_folder.h"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

std::string slurp(const std::string &path)
{
	std::ifstream in(path);
	std::stringstream out;
	out << in.rdbuf();
	if (out.str().empty())
		throw std::runtime_error(path + " is empty: is openssl installed?");
	return out.str();
}

void run(const std::string &command)
{
	if (std::system((command + " 2>/dev/null").c_str()) != 0)
		throw std::runtime_error("failed: " + command);
}

const std::string new_key = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
			    "-nodes -days 2 ";

Pki::Identity signed_by_ca(const std::string &folder, const std::string &name, const std::string &san)
{
	run("cd " + folder + " && " + new_key + "-CA ca.crt -CAkey ca.key -subj /CN=" + name +
	    " -addext subjectAltName=" + san + " -keyout " + name + ".key -out " + name + ".crt");
	return {slurp(folder + "/" + name + ".crt"), slurp(folder + "/" + name + ".key")};
}

Pki::Identity expired_at_once(const std::string &folder, const std::string &san)
{
	run("cd " + folder + " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
	    "-subj /CN=expired -keyout expired.key -out expired.csr && echo subjectAltName=" + san +
	    " > expired.ext && openssl x509 -req -in expired.csr -CA ca.crt -CAkey ca.key -CAcreateserial "
	    "-days 0 -extfile expired.ext -out expired.crt");
	return {slurp(folder + "/expired.crt"), slurp(folder + "/expired.key")};
}

Pki make_pki(const std::string &folder)
{
	Pki out;
	for (const char *name : {"ca", "other"})
		run("cd " + folder + " && " + new_key + "-subj /CN=test-" + name + " -keyout " + name +
		    ".key -out " + name + ".crt");
	out.ca = slurp(folder + "/ca.crt");
	out.other_ca = slurp(folder + "/other.crt");
	const std::string here = "DNS:localhost,IP:127.0.0.1,IP:127.0.0.2,IP:::1";
	out.server = signed_by_ca(folder, "server", here);
	out.expired = expired_at_once(folder, here);
	out.elsewhere = signed_by_ca(folder, "elsewhere", "DNS:api.example");
	out.client = signed_by_ca(folder, "client", "DNS:client");
	return out;
}

int bound_port(int fd)
{
	sockaddr_in at{};
	socklen_t length = sizeof(at);
	::getsockname(fd, reinterpret_cast<sockaddr *>(&at), &length);
	return ntohs(at.sin_port);
}

sockaddr_in loopback(int port)
{
	sockaddr_in at{};
	at.sin_family = AF_INET;
	at.sin_port = htons(static_cast<std::uint16_t>(port));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return at;
}

int listen_on_any()
{
	int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_in at = loopback(0);
	if (::bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof(at)) != 0 || ::listen(fd, 16) != 0)
		throw std::runtime_error("cannot listen");
	return fd;
}

} // namespace

const Pki &Pki::get()
{
	// The folder goes at once: a test that is killed leaves nothing behind.
	static const Pki *pki = new Pki(make_pki(TempFolder().path));
	return *pki;
}

void Stream::send(const std::string &bytes)
{
	std::lock_guard lock(mutex_);
	waiting_ += bytes;
	changed_.notify_all();
}

void Stream::end()
{
	std::lock_guard lock(mutex_);
	if (then_ == Then::more)
		then_ = Then::end;
	changed_.notify_all();
}

void Stream::cut()
{
	std::lock_guard lock(mutex_);
	if (then_ == Then::more)
		then_ = Then::cut;
	changed_.notify_all();
}

bool Stream::sent()
{
	std::lock_guard lock(mutex_);
	return waiting_.empty();
}

struct HttpsServer::Request {
	Seen seen;
	bool begun = false;
};

struct HttpsServer::Hooks {
	static void *on_target(void *, const char *uri, MHD_Connection *)
	{
		auto *r = new Request;
		r->seen.target = uri;
		return r;
	}

	static void on_end(void *, MHD_Connection *, void **request, MHD_RequestTerminationCode)
	{
		delete static_cast<Request *>(*request);
		*request = nullptr;
	}

	static std::string header(MHD_Connection *c, const char *name)
	{
		const char *value = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
		return value ? value : "";
	}

	static MHD_Result on_request(void *self, MHD_Connection *c, const char *, const char *method,
				     const char *, const char *data, std::size_t *size, void **request)
	{
		auto *r = static_cast<Request *>(*request);
		if (!r->begun) {
			r->begun = true;
			r->seen.method = method;
			return MHD_YES;
		}
		if (*size) {
			r->seen.body.append(data, *size);
			*size = 0;
			return MHD_YES;
		}
		r->seen.authorization = header(c, "Authorization");
		r->seen.content_type = header(c, "Content-Type");
		r->seen.host = header(c, "Host");
		auto *at = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
		r->seen.connection = std::to_string(
			ntohs(reinterpret_cast<const sockaddr_in *>(at->client_addr)->sin_port));
		return static_cast<HttpsServer *>(self)->answer_next(c, r->seen);
	}

	static ssize_t on_read(void *of, std::uint64_t, char *to, std::size_t most)
	{
		auto *s = static_cast<std::shared_ptr<Stream> *>(of)->get();
		std::unique_lock lock(s->mutex_);
		s->changed_.wait(lock, [&] {
			return !s->waiting_.empty() || s->then_ != Stream::Then::more;
		});
		if (s->waiting_.empty())
			return s->then_ == Stream::Then::end ? MHD_CONTENT_READER_END_OF_STREAM
							     : MHD_CONTENT_READER_END_WITH_ERROR;
		std::size_t n = std::min(most, s->waiting_.size());
		std::memcpy(to, s->waiting_.data(), n);
		s->waiting_.erase(0, n);
		return static_cast<ssize_t>(n);
	}

	static void on_stream_end(void *of) { delete static_cast<std::shared_ptr<Stream> *>(of); }
};

HttpsServer::HttpsServer(const Pki::Identity &identity, int port, const std::string &address)
	: address_(address)
{
	std::signal(SIGPIPE, SIG_IGN);
	sockaddr_in at4 = loopback(port);
	sockaddr_in6 at6{};
	at6.sin6_family = AF_INET6;
	at6.sin6_port = at4.sin_port;
	const bool six = ::inet_pton(AF_INET6, address.c_str(), &at6.sin6_addr) == 1;
	if (!six && ::inet_pton(AF_INET, address.c_str(), &at4.sin_addr) != 1)
		throw std::runtime_error(address + " is no address");
	const sockaddr *at = six ? reinterpret_cast<const sockaddr *>(&at6) : reinterpret_cast<const sockaddr *>(&at4);
	daemon_ = MHD_start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_TLS |
			(six ? MHD_USE_IPv6 : MHD_NO_FLAG),
		static_cast<std::uint16_t>(port), nullptr, nullptr, &Hooks::on_request, this,
		MHD_OPTION_SOCK_ADDR, at, MHD_OPTION_HTTPS_MEM_KEY,
		identity.key.c_str(), MHD_OPTION_HTTPS_MEM_CERT, identity.certificate.c_str(),
		MHD_OPTION_URI_LOG_CALLBACK, &Hooks::on_target, nullptr, MHD_OPTION_NOTIFY_COMPLETED,
		&Hooks::on_end, nullptr, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, std::size_t(256) << 10, MHD_OPTION_END);
	if (!daemon_)
		throw std::runtime_error("the test's HTTPS server does not start at " + address);
	port_ = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port;
}

HttpsServer::~HttpsServer()
{
	release_all();
	MHD_stop_daemon(daemon_);
}

void HttpsServer::release_all()
{
	std::lock_guard lock(mutex_);
	stopping_ = true;
	stopped_.notify_all();
	for (auto &s : streams_)
		s->cut();
}

void HttpsServer::push(Answer answer)
{
	std::lock_guard lock(mutex_);
	if (answer.stream)
		streams_.push_back(answer.stream);
	answers_.push_back(std::move(answer));
}

std::shared_ptr<Stream> HttpsServer::push_stream()
{
	auto s = std::make_shared<Stream>();
	push({200, "", {{"Content-Type", "application/json"}}, s, false});
	return s;
}

void HttpsServer::answer_checks(const std::string &version)
{
	std::lock_guard lock(mutex_);
	checks_ = version;
}

std::string HttpsServer::url() const
{
	const std::string host = address_.find(':') == address_.npos ? address_ : "[" + address_ + "]";
	return "https://" + host + ":" + std::to_string(port_);
}

std::vector<Seen> HttpsServer::seen() const
{
	std::lock_guard lock(mutex_);
	return seen_;
}

MHD_Result HttpsServer::answer_next(MHD_Connection *c, const Seen &seen)
{
	Answer a;
	{
		std::unique_lock lock(mutex_);
		const bool check = !checks_.empty() && seen.target.find("limit=1") != std::string::npos;
		if (!check)
			seen_.push_back(seen);
		if (check) {
			a.body = R"({"metadata":{"resourceVersion":")" + checks_ + R"("},"items":[]})";
		} else if (answers_.empty()) {
			a.status = 503;
			a.body = R"({"kind":"Status","message":"the test has no answer for this"})";
		} else {
			a = std::move(answers_.front());
			answers_.pop_front();
		}
		if (a.hang) {
			stopped_.wait(lock, [&] { return stopping_; });
			return MHD_NO;
		}
	}
	MHD_Response *r =
		a.stream ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, &Hooks::on_read,
							     new std::shared_ptr<Stream>(a.stream),
							     &Hooks::on_stream_end)
			 : MHD_create_response_from_buffer(a.body.size(), a.body.data(),
							   MHD_RESPMEM_MUST_COPY);
	for (auto &[key, value] : a.headers)
		MHD_add_response_header(r, key.c_str(), value.c_str());
	MHD_Result done = MHD_queue_response(c, static_cast<unsigned>(a.status), r);
	MHD_destroy_response(r);
	return done;
}

int free_port()
{
	int fd = listen_on_any();
	int port = bound_port(fd);
	::close(fd);
	return port;
}

TunnelProxy::TunnelProxy()
	: fd_(listen_on_any()), stop_(::eventfd(0, EFD_CLOEXEC)), port_(bound_port(fd_)), thread_([this] { run(); })
{
}

TunnelProxy::~TunnelProxy()
{
	::eventfd_write(stop_, 1);
	thread_.join();
	::close(fd_);
	::close(stop_);
}

std::string TunnelProxy::heard() const
{
	std::lock_guard lock(mutex_);
	return heard_;
}

void TunnelProxy::run()
{
	for (;;) {
		pollfd fds[] = {{fd_, POLLIN, 0}, {stop_, POLLIN, 0}};
		if (::poll(fds, 2, -1) < 0 || fds[1].revents)
			return;
		int client = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
		if (client < 0)
			return;
		serve(client);
		::close(client);
	}
}

void TunnelProxy::serve(int client)
{
	std::string head;
	char byte;
	while (head.find("\r\n\r\n") == head.npos && ::read(client, &byte, 1) == 1)
		head += byte;
	{
		std::lock_guard lock(mutex_);
		heard_ += head;
	}
	std::size_t colon = head.find(':');
	if (!head.starts_with("CONNECT ") || colon == head.npos)
		return;
	sockaddr_in to = loopback(std::atoi(head.c_str() + colon + 1));
	int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const bool there = ::connect(server, reinterpret_cast<sockaddr *>(&to), sizeof(to)) == 0;
	const std::string_view answer = there ? "HTTP/1.1 200 OK\r\n\r\n" : "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
	if (::write(client, answer.data(), answer.size()) > 0 && there)
		copy(client, server);
	::close(server);
}

void TunnelProxy::copy(int one, int other)
{
	for (;;) {
		pollfd fds[] = {{one, POLLIN, 0}, {other, POLLIN, 0}, {stop_, POLLIN, 0}};
		if (::poll(fds, 3, -1) < 0 || fds[2].revents)
			return;
		for (int i = 0; i < 2; i++) {
			char buffer[4096];
			if (!fds[i].revents)
				continue;
			ssize_t n = ::read(fds[i].fd, buffer, sizeof(buffer));
			if (n <= 0 || ::write(fds[1 - i].fd, buffer, static_cast<std::size_t>(n)) != n)
				return;
		}
	}
}

SilentServer::SilentServer() : fd_(listen_on_any()), port_(bound_port(fd_)) {}

SilentServer::~SilentServer()
{
	::close(fd_);
}
