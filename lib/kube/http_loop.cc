// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/http_loop.h"

#include <algorithm>
#include <cerrno>
#include <curl/curl.h>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <sys/eventfd.h>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/guard.h"
#include "lib/base/log.h"
#include "lib/kube/http_transfer.h"

namespace sk8::kube {

namespace {

// libcurl counts watches, too: with less it would close a pooled connection for each.
constexpr long max_kept = 64;
constexpr Millis longest_wait{3'600'000};
constexpr Millis longest_delay = std::chrono::hours(24 * 365);
// A replaced pool is not polled by itself, only looked at so often while it drains.
constexpr Millis drain_look{20};

} // namespace

void http_global_init()
{
	// Thread-safe by the rule for function-local statics, whatever libcurl is.
	static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
	if (done != CURLE_OK)
		throw std::bad_alloc();
}

class HttpLoop::Impl {
public:
	explicit Impl(const Clock &clock) : clock_(clock)
	{
		http_global_init();
		event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		if (!event_)
			throw std::bad_alloc();
		pools_.emplace_back();
	}

	~Impl()
	{
		drop_cancelled();
		for (auto &[id, t] : transfers_)
			detach(*t);
	}

	// --- any thread ---

	void wake()
	{
		std::uint64_t one = 1;
		// Full means that a wake-up is pending anyway.
		while (::write(event_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
		}
	}

	void post(std::function<void()> f)
	{
		{
			std::lock_guard lock(mutex_);
			posted_.push_back(std::move(f));
		}
		wake();
	}

	// --- owner's thread ---

	void run_once(Millis max_wait)
	{
		admit();
		wait(std::max(Millis(0), std::min(max_wait, until_next())));
		drop_cancelled();
		perform();
		expire();
		finish();
		run_timers();
		run_posted();
		drop_cancelled();
		std::erase_if(pools_, [&](const Pool &p) {
			return &p != &pools_.back() && p.in_use == 0;
		});
	}

	TimerId after(Millis delay, std::function<void()> f)
	{
		TimerId id = ++last_id_;
		Millis due = clock_.monotonic() + std::clamp(delay, Millis(0), longest_delay);
		timers_.emplace(std::pair(due, id), std::move(f));
		timer_due_.emplace(id, due);
		return id;
	}

	void cancel_timer(TimerId id)
	{
		auto at = timer_due_.find(id);
		if (at == timer_due_.end())
			return;
		timers_.erase({at->second, id});
		timer_due_.erase(at);
	}

	RequestId start(HttpRequest request, Done done)
	{
		RequestId id = ++last_id_;
		bool own = request.own_connection;
		auto t = std::make_unique<HttpTransfer>(id, std::move(request), std::move(done),
							clock_.monotonic());
		transfers_.emplace(id, std::move(t));
		if (own)
			waiting_own_.push_back(id);
		else
			queue_.push(transfers_.at(id)->request().priority, id);
		return id;
	}

	void cancel(RequestId id)
	{
		auto at = transfers_.find(id);
		if (at == transfers_.end())
			return;
		// Perhaps we are inside one of its callbacks: it goes later.
		at->second->silence();
		cancelled_.push_back(std::move(at->second));
		transfers_.erase(at);
	}

	std::size_t in_flight() const { return transfers_.size(); }
	void set_limits(RequestLimits limits) { queue_.set_limits(limits); }
	void hold_back(Millis time) { queue_.hold_back(clock_.monotonic() + time); }

	void renew_connections()
	{
		for (auto &[id, t] : transfers_)
			if (t->request().own_connection && t->pool)
				t->fail("the connection ended because the credentials changed");
		pools_.emplace_back();
		wake(); // to look at those that failed
	}

	const Clock &clock() const { return clock_; }

private:
	// One multi handle and its connections; the last one is in use, the others
	// finish what they have.
	struct Pool {
		Pool() : multi(curl_multi_init())
		{
			if (!multi)
				throw std::bad_alloc();
			curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
			curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, max_kept);
		}
		~Pool() { curl_multi_cleanup(multi); }
		Pool(const Pool &) = delete;
		Pool &operator=(const Pool &) = delete;

		CURLM *multi;
		std::shared_ptr<const TlsMaterial> tls; // that its shared connections have
		std::size_t in_use = 0;
	};

	// Gives waiting requests to libcurl: watches at once, others within the limits.
	void admit()
	{
		Millis now = clock_.monotonic();
		for (RequestId id : std::exchange(waiting_own_, {}))
			if (auto at = transfers_.find(id); at != transfers_.end())
				attach(*at->second, now);
		while (auto next = queue_.next(now)) {
			auto at = transfers_.find(next->second);
			if (at == transfers_.end() || !attach(*at->second, now))
				queue_.ended(next->first); // gone meanwhile, or fails
		}
	}

	// libcurl compares not all of the credentials before it reuses a connection (the
	// key is left out): we see to it that a pool knows one set only.
	Pool &pool_for(const HttpTransfer &t)
	{
		if (!t.request().own_connection) {
			if (pools_.back().tls && pools_.back().tls != t.request().tls)
				pools_.emplace_back();
			pools_.back().tls = t.request().tls;
		}
		return pools_.back();
	}

	bool attach(HttpTransfer &t, Millis now)
	{
		Pool &pool = pool_for(t);
		if (!t.prepare(doubt_) || curl_multi_add_handle(pool.multi, t.easy()) != CURLM_OK) {
			t.fail("the request cannot be prepared");
			return false;
		}
		t.sent(now);
		t.pool = &pool;
		pool.in_use++;
		return true;
	}

	void detach(HttpTransfer &t)
	{
		if (!t.pool)
			return;
		Pool *pool = static_cast<Pool *>(t.pool);
		curl_multi_remove_handle(pool->multi, t.easy());
		t.pool = nullptr;
		pool->in_use--;
		if (t.request().own_connection)
			return;
		queue_.ended(t.request().priority);
	}

	Millis until_next()
	{
		Millis now = clock_.monotonic();
		Millis wait = longest_wait;
		if (!timers_.empty())
			wait = timers_.begin()->first.first - now;
		for (auto &[id, t] : transfers_)
			wait = std::min(wait, t->failed() ? Millis(0) : t->deadline() - now);
		if (pools_.size() > 1)
			wait = std::min(wait, drain_look);
		if (std::optional<Millis> due = queue_.due(now))
			wait = std::min(wait, *due - now);
		std::lock_guard lock(mutex_);
		return posted_.empty() ? wait : Millis(0);
	}

	void wait(Millis most)
	{
		curl_waitfd extra{event_.get(), CURL_WAIT_POLLIN, 0};
		CURLMcode rc = curl_multi_poll(pools_.back().multi, &extra, 1,
					       static_cast<int>(most.count()), nullptr);
		if (rc != CURLM_OK)
			log_error("kube: waiting for the network: %s", curl_multi_strerror(rc));
		std::uint64_t count;
		while (::read(event_.get(), &count, sizeof(count)) < 0 && errno == EINTR) {
		}
	}

	void perform()
	{
		for (Pool &pool : pools_) {
			int running = 0;
			CURLMcode rc = curl_multi_perform(pool.multi, &running);
			if (rc != CURLM_OK)
				log_error("kube: network: %s", curl_multi_strerror(rc));
		}
		// Collected first: what callbacks do then cannot disturb the reading.
		for (Pool &pool : pools_) {
			int left = 0;
			while (CURLMsg *m = curl_multi_info_read(pool.multi, &left)) {
				char *of = nullptr;
				curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &of);
				if (m->msg == CURLMSG_DONE && of)
					reinterpret_cast<HttpTransfer *>(of)->completed(m->data.result);
			}
		}
	}

	void expire()
	{
		Millis now = clock_.monotonic();
		for (auto &[id, t] : transfers_)
			t->expire(now);
	}

	void finish()
	{
		std::vector<RequestId> ended;
		for (auto &[id, t] : transfers_)
			if (t->failed() || t->is_complete())
				ended.push_back(id);
		std::sort(ended.begin(), ended.end()); // in the order of the calls
		for (RequestId id : ended) {
			auto at = transfers_.find(id);
			if (at == transfers_.end())
				continue; // cancelled by a callback just now
			std::unique_ptr<HttpTransfer> t = std::move(at->second);
			transfers_.erase(at);
			if (t->was_sent())
				doubt_ = !t->answered();
			detach(*t);
			guard("kube: answer", [&] { t->finish(); });
		}
	}

	void run_timers()
	{
		Millis now = clock_.monotonic();
		// Those that callbacks add for now wait for the next round.
		TimerId newest = last_id_;
		while (!timers_.empty()) {
			auto at = std::find_if(timers_.begin(), timers_.end(),
					       [&](const auto &e) { return e.first.second <= newest; });
			if (at == timers_.end() || at->first.first > now)
				return;
			std::function<void()> f = std::move(at->second);
			timer_due_.erase(at->first.second);
			timers_.erase(at);
			guard("kube: timer", f);
		}
	}

	void run_posted()
	{
		std::deque<std::function<void()>> now;
		{
			std::lock_guard lock(mutex_);
			now.swap(posted_);
		}
		for (std::function<void()> &f : now)
			guard("kube: posted function", f);
	}

	void drop_cancelled()
	{
		for (std::unique_ptr<HttpTransfer> &t : std::exchange(cancelled_, {}))
			detach(*t);
	}

	const Clock &clock_;
	Fd event_;
	std::list<Pool> pools_; // never empty
	std::uint64_t last_id_ = 0;
	std::unordered_map<RequestId, std::unique_ptr<HttpTransfer>> transfers_;
	RequestQueue queue_; // of what is not own_connection
	std::deque<RequestId> waiting_own_;
	// The last request that ended had no answer, or a watch broke off: the peer may have
	// vanished without a word, or its name leads elsewhere by now. Then the other connections are as dead, and each
	// would cost the next request a timeout.
	bool doubt_ = false;
	std::vector<std::unique_ptr<HttpTransfer>> cancelled_;
	std::map<std::pair<Millis, TimerId>, std::function<void()>> timers_;
	std::unordered_map<TimerId, Millis> timer_due_;
	std::mutex mutex_; // guards posted_
	std::deque<std::function<void()>> posted_;
};

HttpLoop::HttpLoop(const Clock &clock) : impl_(std::make_unique<Impl>(clock)) {}
HttpLoop::~HttpLoop() = default;
void HttpLoop::wake()
{
	impl_->wake();
}
void HttpLoop::post(std::function<void()> f)
{
	impl_->post(std::move(f));
}
void HttpLoop::run_once(Millis max_wait)
{
	impl_->run_once(max_wait);
}
HttpLoop::TimerId HttpLoop::after(Millis delay, std::function<void()> f)
{
	return impl_->after(delay, std::move(f));
}
void HttpLoop::cancel_timer(TimerId id)
{
	impl_->cancel_timer(id);
}
HttpLoop::RequestId HttpLoop::start(HttpRequest request, Done done)
{
	return impl_->start(std::move(request), std::move(done));
}
void HttpLoop::cancel(RequestId id)
{
	impl_->cancel(id);
}
std::size_t HttpLoop::in_flight() const
{
	return impl_->in_flight();
}
void HttpLoop::set_limits(RequestLimits limits)
{
	impl_->set_limits(limits);
}
void HttpLoop::hold_back(Millis time)
{
	impl_->hold_back(time);
}
void HttpLoop::renew_connections()
{
	impl_->renew_connections();
}
const Clock &HttpLoop::clock() const
{
	return impl_->clock();
}

} // namespace sk8::kube
