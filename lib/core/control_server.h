// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Answers slurm-k8s(1): one JSON object with a newline in, one JSON object out, per
// connection. A thread of its own that waits in poll() and for nothing else: it
// takes none of slurmctld's locks, and an engine that hangs, or a client that does
// not read, delays nobody but itself.
#ifndef SK8_CORE_CONTROL_SERVER_H
#define SK8_CORE_CONTROL_SERVER_H

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/thread.h"
#include "lib/core/control_socket.h"

namespace sk8::core {

struct ControlRequest {
	Json body; // an object
	uid_t uid; // who asks: root or SlurmUser
	std::shared_ptr<const Wakeup> wakeup; // any thread: notify it when the inquiry is complete
};

// A request while others work on its answer.
class Inquiry {
public:
	virtual ~Inquiry() = default;
	// Both on the server's thread, and at once. complete(): is there anything left to
	// wait for? reply(): asked once, when it is complete or the time is over.
	virtual bool complete() = 0;
	virtual Json reply() = 0;
};

// {"ok": false, "error": text}
Json control_error(std::string_view text);
// An inquiry that has its answer.
std::shared_ptr<Inquiry> answered(Json reply);

struct ControlLimits {
	std::size_t request = 4096;       // bytes
	std::size_t reply = 16u << 20;    // bytes
	std::size_t clients = 8;          // more wait in the socket's queue
	Millis read{2'000}, think{1'500}, write{5'000}; // longest time for each
	Millis look{2'000};               // how often the socket's file is looked at
};

class ControlServer {
public:
	// Called on the server's thread; must return at once.
	using Handler = std::function<std::shared_ptr<Inquiry>(const ControlRequest &)>;

	// No I/O yet. clock must outlive the server.
	ControlServer(std::string state_dir, uid_t owner, const Clock &clock, Handler handler,
		      ControlLimits limits = {});

	// The thread's body: returns after stop().
	void run();
	// Any thread; at once.
	void stop();

private:
	struct Client {
		Fd fd;
		uid_t uid = 0;
		std::string in, out;
		std::size_t sent = 0;
		std::shared_ptr<Inquiry> inquiry;
		Millis until{0}; // then it is dropped, or answered with what there is
		bool done = false;
	};

	void keep_socket();
	void wait();
	void accept_all();
	void serve(Client &c);
	void read(Client &c);
	void begin(Client &c, std::string_view line);
	void think(Client &c);
	void answer(Client &c, const Json &reply);
	void write(Client &c);

	const std::string state_dir_;
	const uid_t owner_;
	const Clock &clock_;
	const Handler handler_;
	const ControlLimits limits_;
	std::atomic<bool> stop_{false};
	const std::shared_ptr<const Wakeup> wakeup_;

	// Server's thread only.
	std::optional<ControlSocket> socket_;
	Millis look_at_{0};
	std::string complained_;
	std::list<Client> clients_;
};

} // namespace sk8::core

#endif
