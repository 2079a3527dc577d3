// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/control_server.h"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/catch.h"
#include "test/unit/kube/temp_folder.h"

using namespace sk8;
using namespace sk8::core;

namespace {

constexpr ControlLimits quick{.request = 4096,
			      .reply = 1 << 20,
			      .clients = 2,
			      .read = Millis(200),
			      .think = Millis(200),
			      .write = Millis(300),
			      .look = Millis(20)};

// Never complete; its reply says that the time was over.
struct Endless final : Inquiry {
	bool complete() override { return false; }
	Json reply() override { return Json::object().set("late", Json::boolean(true)); }
};

std::shared_ptr<Inquiry> handle(const ControlRequest &r)
{
	const Json command = r.body["command"];
	if (command.str() == "hang")
		return std::make_shared<Endless>();
	if (command.str() == "long")
		return answered(Json::object().set("text", std::string(900'000, 'x')));
	if (command.str() == "too long")
		return answered(Json::object().set("text", std::string(2 << 20, 'x')));
	return answered(Json::object().set("you", Json::integer(r.uid)));
}

// A server with its thread in a folder.
struct Running {
	SystemClock clock;
	std::shared_ptr<ControlServer> server;
	Thread thread;

	explicit Running(const std::string &folder)
		: server(std::make_shared<ControlServer>(folder, ::geteuid(), clock, handle, quick))
	{
		auto t = Thread::start("test", [s = server] { s->run(); });
		REQUIRE(t);
		thread = std::move(*t);
	}
	~Running() { stop(); }
	void stop()
	{
		server->stop();
		CHECK(thread.join(Millis(5'000)));
	}
};

bool wait_for(int fd, short events)
{
	pollfd p{fd, events, 0};
	return ::poll(&p, 1, 5'000) > 0;
}

Fd connected(const std::string &folder)
{
	const SystemClock clock;
	for (const Millis until = clock.monotonic() + Millis(5'000); clock.monotonic() < until;) {
		if (auto fd = connect_control(folder))
			return std::move(*fd);
		::poll(nullptr, 0, 5);
	}
	FAIL("no server");
	return {};
}

void send(const Fd &fd, const std::string &text)
{
	REQUIRE(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

std::string read_all(const Fd &fd)
{
	std::string out;
	while (wait_for(fd.get(), POLLIN)) {
		char buffer[65536];
		const ssize_t n = ::recv(fd.get(), buffer, sizeof(buffer), 0);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			return out;
		out.append(buffer, static_cast<std::size_t>(n));
	}
	FAIL("no end of the answer");
	return out;
}

std::string ask(const std::string &folder, const std::string &request)
{
	Fd fd = connected(folder);
	send(fd, request);
	return read_all(fd);
}

bool contains(const std::string &text, const std::string &part)
{
	return text.find(part) != text.npos;
}

} // namespace

TEST_CASE("control: a request gets its answer on a socket of its owner only, which goes with its server")
{
	TempFolder folder;
	struct stat status;
	{
		Running server(folder.path);
		CHECK(contains(ask(folder.path, "{\"command\":\"x\"}\n"), "\"you\":" + std::to_string(::geteuid())));
		REQUIRE(::lstat(control_path(folder.path).c_str(), &status) == 0);
		CHECK((status.st_mode & 07777) == 0600);
		CHECK(S_ISSOCK(status.st_mode));
	}
	CHECK(::lstat(control_path(folder.path).c_str(), &status) != 0);
}

TEST_CASE("control: nonsense and long requests are refused in one sentence")
{
	TempFolder folder;
	Running server(folder.path);
	CHECK(contains(ask(folder.path, "hello\n"), "no JSON object"));
	CHECK(contains(ask(folder.path, "[1]\n"), "no JSON object"));
	CHECK(contains(ask(folder.path, std::string(6000, 'a')), "too long"));
	CHECK(contains(ask(folder.path, "{\"command\":\"too long\"}\n"), "the answer is too long"));
}

TEST_CASE("control: an answer that does not come in time is given without it")
{
	TempFolder folder;
	Running server(folder.path);
	const SystemClock clock;
	const Millis began = clock.monotonic();
	CHECK(contains(ask(folder.path, "{\"command\":\"hang\"}\n"), "\"late\":true"));
	CHECK(clock.monotonic() - began >= quick.think - Millis(20));
}

TEST_CASE("control: clients that send nothing, read nothing or go away harm nobody")
{
	TempFolder folder;
	Running server(folder.path);
	Fd silent = connected(folder.path);
	Fd deaf = connected(folder.path);
	const int small = 1; // the kernel's smallest
	::setsockopt(deaf.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	send(deaf, "{\"command\":\"long\"}\n");
	{
		Fd gone = connected(folder.path);
		send(gone, "{\"command\":\"hang\"}\n");
	}
	// both places are taken until their time is over, then it is this one's turn
	CHECK(contains(ask(folder.path, "{\"command\":\"x\"}\n"), "\"you\""));
	CHECK(read_all(silent).empty());
	REQUIRE(wait_for(deaf.get(), 0)); // hung up on
	CHECK(read_all(deaf).size() < 900'000);
}

TEST_CASE("control: of two servers one has the socket, and the other takes it when that ends")
{
	TempFolder folder;
	auto first = std::make_unique<Running>(folder.path);
	CHECK(contains(ask(folder.path, "{}\n"), "you"));
	struct stat before, after;
	REQUIRE(::lstat(control_path(folder.path).c_str(), &before) == 0);
	Running second(folder.path);
	auto refused = ControlSocket::claim(folder.path, ::geteuid());
	REQUIRE_FALSE(refused.ok());
	CHECK(contains(refused.error().message, "another slurmctld answers"));
	for (int i = 0; i < 10; i++)
		CHECK(contains(ask(folder.path, "{}\n"), "you"));
	REQUIRE(::lstat(control_path(folder.path).c_str(), &after) == 0);
	CHECK(after.st_ino == before.st_ino);
	first.reset();
	CHECK(contains(ask(folder.path, "{}\n"), "you"));
}

TEST_CASE("control: the socket of a killed slurmctld is taken over, and one that was removed comes back")
{
	TempFolder folder;
	{
		// what a kill leaves: a file and nobody behind it
		auto dead = ControlSocket::claim(folder.path, ::geteuid());
		REQUIRE(dead);
		const std::string kept = folder.path + "/kept";
		REQUIRE(::rename(control_path(folder.path).c_str(), kept.c_str()) == 0);
		ControlSocket ends = std::move(*dead);
		(void)ends;
	}
	REQUIRE(::rename((folder.path + "/kept").c_str(), control_path(folder.path).c_str()) == 0);
	auto nobody = connect_control(folder.path);
	REQUIRE_FALSE(nobody.ok());
	CHECK(contains(nobody.error().message, "nobody answers"));
	Running server(folder.path);
	CHECK(contains(ask(folder.path, "{}\n"), "you"));
	REQUIRE(::unlink(control_path(folder.path).c_str()) == 0);
	CHECK(contains(ask(folder.path, "{}\n"), "you"));
}

TEST_CASE("control: a state folder with a long path has a socket, too")
{
	TempFolder folder;
	std::string deep = folder.path;
	for (int i = 0; i < 4; i++) {
		deep += "/" + std::string(60, 'a');
		REQUIRE(::mkdir(deep.c_str(), 0700) == 0);
	}
	Running server(deep);
	CHECK(contains(ask(deep, "{}\n"), "you"));
}

TEST_CASE("control: without a server the error says where to look")
{
	TempFolder folder;
	auto none = connect_control(folder.path);
	REQUIRE_FALSE(none.ok());
	CHECK(contains(none.error().message, "does not exist: slurmctld is not running"));
	CHECK_FALSE(ControlSocket::claim(folder.path + "/no-such", 0).ok());
}
