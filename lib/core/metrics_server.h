// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// http://ADDRESS/metrics for Prometheus: a thread of its own ("sk8-metrics") that takes
// no lock of slurmctld and that nobody waits for. It follows the setting: moves, closes,
// and tries again for as long as the address is taken.
#ifndef SK8_CORE_METRICS_SERVER_H
#define SK8_CORE_METRICS_SERVER_H

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/http_listener.h"
#include "lib/base/result.h"
#include "lib/base/thread.h"

namespace sk8::core {

class MetricsServer : public std::enable_shared_from_this<MetricsServer> {
public:
	// page: called on the server's thread, at most once a second however many ask; may
	// wait for about a second.
	explicit MetricsServer(std::function<std::string()> page) : page_(std::move(page)) {}

	// Any thread.
	Result<void> start();
	// Where to listen from now on, as parse_loopback() wants it; "": nowhere.
	void listen(const std::string &address);
	void stop(); // returns at once
	bool join(Millis timeout); // false: it ends by itself; it holds its own share

private:
	void run();
	void turn();
	void move(const std::string &address);
	void open();
	std::string page();

	const std::function<std::string()> page_;
	const SystemClock clock_;
	Wakeup wake_;
	std::atomic<bool> stop_{false};
	Thread thread_;
	std::mutex mutex_; // guards wanted_
	std::string wanted_;

	// The server's thread only.
	std::string address_;
	std::unique_ptr<HttpListener> listener_;
	Millis delay_{0}, retry_at_{0}; // delay_ 0: the address has not failed
	std::string cached_;
	Millis cached_at_{0};
};

} // namespace sk8::core

#endif
