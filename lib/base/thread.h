// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Threads inside a process that is not ours (slurmctld, slurmd), and how they wait.
#ifndef SK8_BASE_THREAD_H
#define SK8_BASE_THREAD_H

#include <functional>
#include <memory>
#include <thread>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/result.h"

namespace sk8 {

// An eventfd that makes a poll() return: notifications between two drains count as
// one. Construction throws std::system_error if the process is out of descriptors.
class Wakeup {
public:
	Wakeup();

	int fd() const { return fd_.get(); } // to poll for POLLIN
	// Any thread, also in a signal handler; never blocks; keeps errno.
	void notify() const;
	// Whether there was a notification since the last drain; never blocks.
	bool drain() const;
	// Blocks up to timeout; true once notified. Does not drain.
	bool wait(Millis timeout) const;

private:
	Fd fd_;
};

// A named thread with all signals blocked but those of its own faults, so that the
// host's handlers run only in the host's threads. Its body runs inside guard().
// Nothing needs to be undone before the process vanishes by _exit at any time.
class Thread {
public:
	Thread() = default;
	// name: up to 15 bytes are shown by ps and gdb. Error: the system has no thread
	// left.
	static Result<Thread> start(const char *name, std::function<void()> body);

	Thread(Thread &&) = default;
	Thread &operator=(Thread &&other) noexcept;
	// Waits for the body without limit: tell it to end before, and where waiting is
	// not allowed use join_or_leave().
	~Thread();

	bool running() const { return thread_.joinable(); } // started and not joined
	// True if the body has ended (or nothing was started), within timeout.
	bool join(Millis timeout);
	// The same, but then it is left to itself for ever: only if it owns what it uses.
	bool join_or_leave(Millis timeout);

private:
	std::thread thread_;
	std::shared_ptr<Wakeup> done_; // shared: the thread may outlive this object's move
};

} // namespace sk8

#endif
