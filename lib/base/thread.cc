// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/thread.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <poll.h>
#include <pthread.h>
#include <string>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

#include "lib/base/guard.h"
#include "lib/base/text.h"

namespace sk8 {

namespace {

// New threads inherit the mask; this way they never run a moment without it.
class BlockedSignals {
public:
	BlockedSignals()
	{
		sigset_t all;
		::sigfillset(&all);
		// Faults of the thread itself: blocked they kill without a report.
		for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS})
			::sigdelset(&all, fault);
		::pthread_sigmask(SIG_SETMASK, &all, &before_);
	}
	BlockedSignals(const BlockedSignals &) = delete;
	BlockedSignals &operator=(const BlockedSignals &) = delete;
	~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
	sigset_t before_;
};

} // namespace

Wakeup::Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
	if (!fd_)
		throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Wakeup::notify() const
{
	const int saved_errno = errno;
	const std::uint64_t one = 1;
	// EAGAIN: the counter is full, so it is notified anyway.
	while (::write(fd_.get(), &one, sizeof(one)) < 0 && errno == EINTR)
		;
	errno = saved_errno;
}

bool Wakeup::drain() const
{
	std::uint64_t count = 0;
	ssize_t n;
	do
		n = ::read(fd_.get(), &count, sizeof(count));
	while (n < 0 && errno == EINTR);
	return n == sizeof(count);
}

bool Wakeup::wait(Millis timeout) const
{
	const SystemClock clock;
	const Millis start = clock.monotonic();
	Millis left = timeout;
	for (;;) {
		pollfd p{fd_.get(), POLLIN, 0};
		const auto ms = std::clamp<std::int64_t>(left.count(), 0, INT_MAX);
		const int n = ::poll(&p, 1, static_cast<int>(ms));
		if (n > 0)
			return true;
		left = timeout - (clock.monotonic() - start);
		if ((n < 0 && errno != EINTR) || left.count() <= 0)
			return false;
	}
}

Result<Thread> Thread::start(const char *name, std::function<void()> body)
{
	Thread t;
	t.done_ = std::make_shared<Wakeup>();
	const BlockedSignals blocked;
	try {
		t.thread_ = std::thread([name = std::string(name).substr(0, 15),
					 body = std::move(body), done = t.done_] {
			::pthread_setname_np(::pthread_self(), name.c_str());
			guard(name.c_str(), body);
			done->notify();
		});
	} catch (const std::system_error &e) {
		return Error{strprintf("cannot start thread %s: %s", name, e.what())};
	}
	return t;
}

Thread &Thread::operator=(Thread &&other) noexcept
{
	if (this != &other) {
		if (thread_.joinable())
			thread_.join();
		thread_ = std::move(other.thread_);
		done_ = std::move(other.done_);
	}
	return *this;
}

Thread::~Thread()
{
	if (thread_.joinable())
		thread_.join();
}

bool Thread::join(Millis timeout)
{
	if (!thread_.joinable())
		return true;
	if (!done_->wait(timeout))
		return false;
	thread_.join(); // only its last instructions are left
	return true;
}

bool Thread::join_or_leave(Millis timeout)
{
	const bool ended = join(timeout);
	if (!ended)
		thread_.detach();
	return ended;
}

} // namespace sk8
