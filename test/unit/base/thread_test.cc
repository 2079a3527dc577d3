// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/thread.h"

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <pthread.h>
#include <stdexcept>
#include <string>

#include "lib/base/log.h"
#include "test/unit/catch.h"

using namespace std::chrono_literals;
using sk8::Thread;
using sk8::Wakeup;

TEST_CASE("thread: has its name and no signal but faults, the starter's mask is as before")
{
	sigset_t before, after, inside;
	::pthread_sigmask(SIG_SETMASK, nullptr, &before);
	char name[16] = "";
	auto t = Thread::start("sk8-test-with-a-long-name", [&] {
		::pthread_getname_np(::pthread_self(), name, sizeof(name));
		::pthread_sigmask(SIG_SETMASK, nullptr, &inside);
	});
	REQUIRE(t.ok());
	REQUIRE(t->join(10s));
	::pthread_sigmask(SIG_SETMASK, nullptr, &after);
	CHECK(name == std::string("sk8-test-with-a"));
	for (const int sig : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM, SIGCHLD})
		CHECK(sigismember(&inside, sig) == 1);
	CHECK(sigismember(&inside, SIGSEGV) == 0);
	for (int sig = 1; sig < 32; sig++)
		CHECK(sigismember(&before, sig) == sigismember(&after, sig));
}

TEST_CASE("thread: an exception in the body ends only the thread, and is logged")
{
	static std::atomic<int> errors{0};
	sk8::set_log_sink([](sk8::LogLevel, const char *text) {
		if (std::string(text) == "sk8-x: odd")
			errors++;
	}, sk8::LogLevel::info);
	auto t = Thread::start("sk8-x", [] { throw std::runtime_error("odd"); });
	REQUIRE(t.ok());
	CHECK(t->join(10s));
	sk8::set_log_sink(nullptr, sk8::LogLevel::info);
	CHECK(errors == 1);
}

TEST_CASE("thread: join gives up after its timeout and succeeds once the body has ended")
{
	Wakeup go;
	auto t = Thread::start("sk8-test", [&] { go.wait(60s); });
	REQUIRE(t.ok());
	CHECK_FALSE(t->join(10ms));
	CHECK(t->running());
	go.notify();
	CHECK(t->join(10s));
	CHECK_FALSE(t->running());
	CHECK(t->join(0ms));
	CHECK(Thread().join(0ms));
}

TEST_CASE("thread: moved and dropped threads are waited for")
{
	std::atomic<bool> ended{false};
	{
		auto t = Thread::start("sk8-test", [&] { ended = true; });
		REQUIRE(t.ok());
		Thread other = std::move(*t);
		CHECK(other.running());
		other = Thread();
		CHECK(ended);
	}
	CHECK(ended);
}

TEST_CASE("thread: what the body holds is gone when join returns")
{
	auto held = std::make_shared<int>(1);
	auto t = Thread::start("sk8-test", [held] {});
	REQUIRE(t.ok());
	REQUIRE(t->join(10s));
	CHECK(held.use_count() == 1);
}

TEST_CASE("wakeup: notifications count as one, drain empties, the descriptor is not inherited")
{
	Wakeup w;
	CHECK_FALSE(w.drain());
	CHECK_FALSE(w.wait(0ms));
	w.notify();
	w.notify();
	CHECK(w.wait(0ms));
	CHECK(w.drain());
	CHECK_FALSE(w.drain());
	CHECK((::fcntl(w.fd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a thread that does not end in time is left to itself")
{
	auto may_end = std::make_shared<Wakeup>(), has_ended = std::make_shared<Wakeup>();
	auto thread = Thread::start("sk8-test", [may_end, has_ended] {
		(void)may_end->wait(60'000ms);
		has_ended->notify();
	});
	REQUIRE(thread.ok());
	CHECK_FALSE(thread->join_or_leave(1ms));
	CHECK_FALSE(thread->running());
	may_end->notify();
	CHECK(has_ended->wait(60'000ms));
}
