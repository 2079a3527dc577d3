// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/http_listener.h"

#include <arpa/inet.h>
#include <atomic>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "lib/base/file.h"
#include "test/unit/catch.h"

using namespace sk8;

namespace {

int free_port()
{
	const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	sockaddr_in a{};
	a.sin_family = AF_INET;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr *>(&a), sizeof(a)) == 0);
	socklen_t size = sizeof(a);
	::getsockname(fd.get(), reinterpret_cast<sockaddr *>(&a), &size);
	return ntohs(a.sin_port);
}

// A listener that is served by a thread.
class Server {
public:
	explicit Server(Millis longest = Millis(5'000)) : port(free_port())
	{
		auto address = parse_loopback("127.0.0.1:" + std::to_string(port));
		REQUIRE(address);
		auto opened = HttpListener::open(*address, {"/metrics", "text/plain", [this] {
								    asked++;
								    return std::string("x 1\n");
							    },
							    longest});
		REQUIRE(opened);
		listener = std::move(*opened);
		thread = std::thread([this] {
			while (!stop)
				listener->serve(Millis(10'000), wake);
		});
	}
	~Server()
	{
		stop = true;
		wake.notify();
		thread.join();
	}

	Fd connect() const
	{
		Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
		sockaddr_in a{};
		a.sin_family = AF_INET;
		a.sin_port = htons(static_cast<std::uint16_t>(port));
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr *>(&a), sizeof(a)) == 0);
		return fd;
	}

	// All that comes until the server closes.
	static std::string read_all(const Fd &fd)
	{
		std::string out;
		char buffer[4096];
		for (;;) {
			pollfd p{fd.get(), POLLIN, 0};
			REQUIRE(::poll(&p, 1, 20'000) == 1);
			const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
			if (n <= 0)
				return out;
			out.append(buffer, static_cast<std::size_t>(n));
		}
	}

	std::string ask(const std::string &request) const
	{
		const Fd fd = connect();
		(void)!::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
		return read_all(fd);
	}

	const int port;
	std::atomic<int> asked{0};
	std::atomic<bool> stop{false};
	Wakeup wake;
	std::unique_ptr<HttpListener> listener;
	std::thread thread;
};

const std::string get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

bool starts_with(const std::string &text, const std::string &what)
{
	return text.compare(0, what.size(), what) == 0;
}

} // namespace

TEST_CASE("http listener: only addresses of this machine are accepted")
{
	for (const char *good : {"127.0.0.1:9410", "127.8.9.1:1", "[::1]:65535"}) {
		CAPTURE(good);
		CHECK(parse_loopback(good).ok());
	}
	for (const char *bad : {"", "9410", ":9410", "0.0.0.0:9410", "10.0.0.1:9410", "[::]:9410", "[fe80::1]:9410",
				"::1:9410", "localhost:9410", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0",
				"127.0.0.1:65536", "127.0.0.1:94x", "127.0.0.1:-1", "127.0.0.1: 9410",
				"[::ffff:127.0.0.1]:9410"}) {
		CAPTURE(bad);
		auto r = parse_loopback(bad);
		REQUIRE_FALSE(r.ok());
		CHECK(r.error().message.find("use for example 127.0.0.1:9410") != std::string::npos);
	}
}

TEST_CASE("http listener: the page is answered, all else is refused")
{
	Server s;
	const std::string page = s.ask(get);
	CHECK(starts_with(page, "HTTP/1.1 200 OK\r\n"));
	CHECK(page.find("Content-Type: text/plain\r\n") != page.npos);
	CHECK(page.find("\r\n\r\nx 1\n") != page.npos);
	CHECK(starts_with(s.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 404 "));
	CHECK(starts_with(s.ask("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 405 "));
	CHECK(s.asked == 1);
}

TEST_CASE("http listener: a huge request and garbage end their own connection only")
{
	Server s(Millis(1'000));
	const std::string long_header = "GET /metrics HTTP/1.1\r\nX: " + std::string(1 << 20, 'x');
	CHECK_FALSE(starts_with(s.ask(long_header), "HTTP/1.1 200"));
	const std::string body = "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n";
	CHECK_FALSE(starts_with(s.ask(body + std::string(1 << 20, 'x')), "HTTP/1.1 200"));
	CHECK_FALSE(starts_with(s.ask(std::string("\0\xff\r\n\r\n\r\n", 8)), "HTTP/1.1 200"));
	CHECK(s.asked == 0);
	CHECK(starts_with(s.ask(get), "HTTP/1.1 200"));
}

TEST_CASE("http listener: clients that keep all connections busy are thrown out, then others are served")
{
	Server s(Millis(300));
	std::vector<Fd> slow;
	for (int i = 0; i < 200; i++) {
		slow.push_back(s.connect());
		(void)!::send(slow.back().get(), "GET /met", 8, MSG_NOSIGNAL);
	}
	CHECK(starts_with(s.ask(get), "HTTP/1.1 200"));
	for (const Fd &fd : slow)
		CHECK_FALSE(starts_with(Server::read_all(fd), "HTTP/1.1 200")); // closed, all of them
}

TEST_CASE("http listener: a client that sends a byte now and then gains no time")
{
	Server s(Millis(500));
	const Fd fd = s.connect();
	const auto began = std::chrono::steady_clock::now();
	bool closed = false;
	for (std::size_t i = 0; !closed && i < get.size(); i++) {
		(void)!::send(fd.get(), &get[i], 1, MSG_NOSIGNAL);
		pollfd p{fd.get(), POLLIN, 0};
		closed = ::poll(&p, 1, 100) == 1; // an answer or the end
	}
	CHECK(closed);
	CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(3));
	CHECK(s.asked == 0);
}

TEST_CASE("http listener: a port that is taken is an error, and no descriptor is inherited by programs")
{
	const auto inherited = [] {
		std::vector<int> out;
		for (int fd = 0; fd < 256; fd++)
			if (const int flags = ::fcntl(fd, F_GETFD); flags >= 0 && !(flags & FD_CLOEXEC))
				out.push_back(fd);
		return out;
	};
	const std::vector<int> before = inherited();
	Server s;
	const Fd client = s.connect();
	CHECK(starts_with(s.ask(get), "HTTP/1.1 200")); // client has been accepted by now, too
	auto again = HttpListener::open(*parse_loopback("127.0.0.1:" + std::to_string(s.port)), {"/", "", {}, {}});
	REQUIRE_FALSE(again.ok());
	CHECK(again.error().message == "Address already in use");
	CHECK(inherited() == before);
}
