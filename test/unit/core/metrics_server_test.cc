// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/metrics_server.h"

#include <arpa/inet.h>
#include <functional>
#include <netinet/in.h>
#include <unistd.h>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "test/unit/catch.h"
#include "test/unit/core/log_lines.h"

using namespace sk8;
using namespace sk8::core;

namespace {

// Called while a line is written, on the server's thread.
std::function<void(const std::string &)> at_line;

void to_lines(LogLevel level, const char *text)
{
	if (at_line)
		at_line(text);
	log_lines::keep(level, text);
}

// A socket that listens on a free port of 127.0.0.1.
struct Taken {
	Taken() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
	{
		sockaddr_in a{};
		a.sin_family = AF_INET;
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr *>(&a), sizeof(a)) == 0);
		REQUIRE(::listen(fd.get(), 1) == 0);
		socklen_t size = sizeof(a);
		::getsockname(fd.get(), reinterpret_cast<sockaddr *>(&a), &size);
		port = a.sin_port;
		address = "127.0.0.1:" + std::to_string(ntohs(port));
	}
	Fd fd;
	in_port_t port;
	std::string address;
};

Fd connect_to(in_port_t port) // none: refused
{
	Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	sockaddr_in a{};
	a.sin_family = AF_INET;
	a.sin_port = port;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (::connect(fd.get(), reinterpret_cast<sockaddr *>(&a), sizeof(a)))
		fd.reset();
	return fd;
}

std::string scrape(in_port_t port)
{
	const Fd fd = connect_to(port);
	if (!fd)
		return "refused";
	static const std::string get = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	(void)!::write(fd.get(), get.data(), get.size());
	std::string out;
	char buffer[4096];
	for (ssize_t n; (n = ::read(fd.get(), buffer, sizeof(buffer))) > 0;)
		out.append(buffer, static_cast<std::size_t>(n));
	return out;
}

struct Rig {
	Rig()
	{
		log_lines::forget();
		set_log_sink(to_lines, LogLevel::info);
		REQUIRE(server->start());
	}
	~Rig()
	{
		server->stop();
		CHECK(server->join(Millis(5'000)));
		at_line = nullptr;
		set_log_sink(nullptr, LogLevel::info);
	}
	std::atomic<int> counted{0};
	std::shared_ptr<MetricsServer> server = std::make_shared<MetricsServer>([this] {
		counted++;
		return std::string("x 1\n");
	});
};

} // namespace

TEST_CASE("metrics server: a port that is taken is one error, and is used as soon as it is free")
{
	Rig r;
	Taken taken;
	r.server->listen(taken.address);
	REQUIRE(wait_for_line("cannot listen on " + taken.address + ": Address already in use"));
	r.server->listen(taken.address); // a reconfigure that changes nothing
	taken.fd.reset();
	REQUIRE(wait_for_line("http://" + taken.address + "/metrics"));
	CHECK(scrape(taken.port).find("\r\n\r\nx 1\n") != std::string::npos);
	CHECK(count_lines("cannot listen") == 1);
}

TEST_CASE("metrics server: it moves with the setting, and closes without it")
{
	Rig r;
	Taken first, second;
	first.fd.reset();
	second.fd.reset();
	r.server->listen(first.address);
	REQUIRE(wait_for_line("http://" + first.address));
	r.server->listen(second.address);
	REQUIRE(wait_for_line("http://" + second.address));
	CHECK(scrape(first.port) == "refused");
	CHECK(scrape(second.port).find("x 1") != std::string::npos);
	r.server->listen("");
	REQUIRE(wait_for_line("no longer at " + second.address));
	CHECK(scrape(second.port) == "refused");
}

TEST_CASE("metrics server: what it says to have left is closed by then")
{
	std::atomic<int> refused{0}, accepted{0};
	Taken port;
	port.fd.reset();
	Rig r;
	at_line = [&](const std::string &line) {
		if (line.find("no longer at") != line.npos)
			(connect_to(port.port) ? accepted : refused)++;
	};
	r.server->listen(port.address);
	REQUIRE(wait_for_line("http://" + port.address));
	r.server->listen("");
	REQUIRE(wait_for_line("no longer at " + port.address));
	CHECK(accepted == 0);
	CHECK(refused == 1);
}

TEST_CASE("metrics server: many who ask at once make the engines count once")
{
	Rig r;
	Taken port;
	port.fd.reset();
	r.server->listen(port.address);
	REQUIRE(wait_for_line("http://" + port.address));
	const auto began = std::chrono::steady_clock::now();
	for (int i = 0; i < 200; i++)
		REQUIRE(scrape(port.port).find("x 1") != std::string::npos);
	const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
	CHECK(r.counted <= 1 + seconds.count() + 1);
}
