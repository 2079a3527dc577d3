// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The one thread's event loop: file descriptors, timers and things to do next.
#ifndef KUBESIM_LOOP_H
#define KUBESIM_LOOP_H

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace kubesim {

class Loop {
public:
	using Timer = std::pair<std::int64_t, std::uint64_t>; // due (monotonic us), number

	Loop();
	~Loop();
	Loop(const Loop &) = delete;
	Loop &operator=(const Loop &) = delete;

	// events: EPOLLIN and so on. One callback per descriptor; it stays the caller's.
	void add_fd(int fd, std::uint32_t events, std::function<void()> f);
	void remove_fd(int fd);
	Timer after_us(std::int64_t us, std::function<void()> f);
	void cancel(const Timer &timer);
	void post(std::function<void()> f); // after what runs now

	// Called before each wait; returns how long to wait at most (us), -1: no limit.
	std::function<std::int64_t()> before_wait;
	void run(); // until stop()
	void stop() { stopped_ = true; }

private:
	void run_due();
	int epoll_;
	bool stopped_ = false;
	std::uint64_t next_number_ = 1;
	std::map<int, std::function<void()>> fds_;
	std::map<Timer, std::function<void()>> timers_;
	std::vector<std::function<void()>> posted_;
};

} // namespace kubesim

#endif
