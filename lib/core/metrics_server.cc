// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/metrics_server.h"

#include <algorithm>

#include "lib/base/exposition.h"
#include "lib/base/guard.h"
#include "lib/base/log.h"

namespace sk8::core {

static constexpr Millis longest_wait{60'000};
static constexpr Millis first_delay{1'000}, longest_delay{60'000};
static constexpr Millis page_age{1'000};

// ---- any thread ----

Result<void> MetricsServer::start()
{
	auto thread = Thread::start("sk8-metrics", [self = shared_from_this()] { self->run(); });
	if (!thread)
		return thread.error();
	thread_ = std::move(*thread);
	return {};
}

void MetricsServer::listen(const std::string &address)
{
	{
		const std::lock_guard lock(mutex_);
		wanted_ = address;
	}
	wake_.notify();
}

void MetricsServer::stop()
{
	stop_.store(true, std::memory_order_release);
	wake_.notify();
}

bool MetricsServer::join(Millis timeout)
{
	return thread_.join_or_leave(timeout); // it owns a share of us
}

// ---- the server's thread ----

void MetricsServer::run()
{
	while (!stop_.load(std::memory_order_acquire)) {
		const bool well = guard("metrics", false, [this] {
			turn();
			return true;
		});
		if (!well)
			wake_.wait(first_delay); // out of memory, say: it may pass
	}
	listener_.reset();
}

void MetricsServer::turn()
{
	wake_.drain(); // first: what comes from now on wakes the next turn
	std::string wanted;
	{
		const std::lock_guard lock(mutex_);
		wanted = wanted_;
	}
	if (wanted != address_)
		move(wanted);
	if (!listener_ && !address_.empty() && clock_.monotonic() >= retry_at_)
		open();
	if (stop_.load(std::memory_order_acquire))
		return;
	if (listener_)
		listener_->serve(longest_wait, wake_);
	else if (address_.empty())
		wake_.wait(longest_wait);
	else
		wake_.wait(std::max(retry_at_ - clock_.monotonic(), Millis(0)));
}

void MetricsServer::move(const std::string &address)
{
	const bool was_open = listener_ != nullptr;
	listener_.reset(); // first: who reads that line finds it closed
	if (was_open)
		log_info("metrics: no longer at %s", address_.c_str());
	address_ = address;
	delay_ = retry_at_ = Millis(0);
}

void MetricsServer::open()
{
	auto at = parse_loopback(address_);
	Result<std::unique_ptr<HttpListener>> opened = Error{""};
	if (at)
		opened = HttpListener::open(*at, {"/metrics", Exposition::content_type, [this] { return page(); }});
	if (opened) {
		listener_ = std::move(*opened);
		log_info("metrics: http://%s/metrics", address_.c_str());
		return;
	}
	if (delay_ == Millis(0))
		log_error("metrics: cannot listen on %s: %s; free it or change metrics.listen, it is tried again until it works",
			  address_.c_str(), (at ? opened.error() : at.error()).message.c_str());
	delay_ = std::clamp(delay_ * 2, first_delay, longest_delay);
	retry_at_ = clock_.monotonic() + delay_;
}

// However many ask: the engines count their pods once.
std::string MetricsServer::page()
{
	const Millis now = clock_.monotonic();
	if (cached_.empty() || now - cached_at_ >= page_age) {
		cached_ = page_();
		cached_at_ = clock_.monotonic();
	}
	return cached_;
}

} // namespace sk8::core
