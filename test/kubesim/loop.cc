// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/loop.h"

#include <algorithm>
#include <sys/epoll.h>
#include <unistd.h>

#include "test/kubesim/times.h"

namespace kubesim {

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

Loop::~Loop()
{
	close(epoll_);
}

void Loop::add_fd(int fd, std::uint32_t events, std::function<void()> f)
{
	epoll_event e{};
	e.events = events;
	e.data.fd = fd;
	if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e) == 0)
		fds_[fd] = std::move(f);
}

void Loop::remove_fd(int fd)
{
	if (fds_.erase(fd))
		epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

Loop::Timer Loop::after_us(std::int64_t us, std::function<void()> f)
{
	Timer timer{monotonic_us() + us, next_number_++};
	timers_.emplace(timer, std::move(f));
	return timer;
}

void Loop::cancel(const Timer &timer)
{
	timers_.erase(timer);
}

void Loop::post(std::function<void()> f)
{
	posted_.push_back(std::move(f));
}

void Loop::run_due()
{
	auto posted = std::move(posted_);
	posted_.clear();
	for (auto &f : posted)
		f();
	// Timers set meanwhile wait for the next round, so that none can starve I/O.
	const Timer until{monotonic_us(), next_number_};
	while (!timers_.empty() && timers_.begin()->first < until) {
		auto f = std::move(timers_.begin()->second);
		timers_.erase(timers_.begin());
		f();
	}
}

void Loop::run()
{
	while (!stopped_) {
		run_due();
		std::int64_t wait = before_wait ? before_wait() : -1;
		if (!posted_.empty())
			wait = 0;
		if (!timers_.empty()) {
			std::int64_t due = std::max<std::int64_t>(timers_.begin()->first.first - monotonic_us(), 0);
			wait = wait < 0 ? due : std::min(wait, due);
		}
		epoll_event events[64];
		int n = epoll_wait(epoll_, events, 64, wait < 0 ? -1 : static_cast<int>((wait + 999) / 1000));
		for (int i = 0; i < n; i++) {
			auto it = fds_.find(events[i].data.fd);
			if (it == fds_.end())
				continue; // removed by a callback just before
			auto f = it->second; // the callback may remove itself
			f();
		}
	}
}

} // namespace kubesim
