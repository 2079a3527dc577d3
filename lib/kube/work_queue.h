// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// client-go's work queue for one thread: keys wait in order, each at most once;
// a key that is added while it is being worked on comes again when that work is
// done. Keys can also wait for a time, or for their own growing back-off.
#ifndef SK8_KUBE_WORK_QUEUE_H
#define SK8_KUBE_WORK_QUEUE_H

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lib/base/clock.h"
#include "lib/kube/backoff.h"

namespace sk8::kube {

struct WorkQueueLimits {
	Millis first{5};        // of add_backoff: after the first failure of a key
	Millis most{1'000'000}; // doubles up to here
	double jitter = 0.1;    // of the delay, on top
};

template <class Key, class Hash = std::hash<Key>>
class WorkQueue {
public:
	// clock must outlive the queue.
	explicit WorkQueue(const Clock &clock, Random random = {}, WorkQueueLimits limits = {})
		: clock_(clock), random_(std::move(random)), limits_(limits)
	{
	}

	// The key is to be worked on as soon as possible.
	void add(const Key &key)
	{
		if (!dirty_.insert(key).second || processing_.contains(key))
			return;
		queue_.push_back(key);
	}

	// ... not before delay has passed. Of several delays of a key the shortest counts;
	// a delay does not hold back an add().
	void add_after(const Key &key, Millis delay)
	{
		if (delay <= Millis(0))
			return add(key);
		Millis due = clock_.monotonic() + delay;
		auto [at, fresh] = due_.try_emplace(key, due);
		if (!fresh) {
			if (at->second <= due)
				return;
			waiting_.erase({at->second, &at->first});
			at->second = due;
		}
		waiting_.insert({due, &at->first});
	}

	// The key failed: add_after with a delay that doubles at each failure until forget().
	void add_backoff(const Key &key)
	{
		int n = failures_[key]++;
		double delay = static_cast<double>(limits_.first.count());
		double most = static_cast<double>(limits_.most.count());
		for (int i = 0; i < n && delay < most; i++)
			delay *= 2;
		delay *= 1 + limits_.jitter * (random_ ? std::clamp(random_(), 0.0, 1.0) : 0.0);
		add_after(key, Millis(static_cast<Millis::rep>(std::min(delay, most))));
	}

	// The key succeeded: its next failure is its first. Does not remove it.
	void forget(const Key &key) { failures_.erase(key); }
	int failures(const Key &key) const
	{
		auto at = failures_.find(key);
		return at == failures_.end() ? 0 : at->second;
	}

	// The next key to work on, if one is due; call done() for it later. Keys taken
	// and not done may be several.
	std::optional<Key> get()
	{
		move_due();
		if (queue_.empty())
			return std::nullopt;
		Key key = std::move(queue_.front());
		queue_.pop_front();
		dirty_.erase(key);
		processing_.insert(key);
		return key;
	}

	// Ends the work on a key that get() returned.
	void done(const Key &key)
	{
		if (processing_.erase(key) && dirty_.contains(key))
			queue_.push_back(key);
	}

	// Keys that get() would return now, one after the other.
	std::size_t size()
	{
		move_due();
		return queue_.size();
	}

	// When (monotonic) get() will have something without another add: a time that
	// may be past, or nothing if only add() or done() can change that.
	std::optional<Millis> next_due() const
	{
		if (!queue_.empty())
			return clock_.monotonic();
		if (waiting_.empty())
			return std::nullopt;
		return waiting_.begin()->first;
	}

private:
	struct Earlier {
		using Entry = std::pair<Millis, const Key *>;
		bool operator()(const Entry &a, const Entry &b) const
		{
			return a.first != b.first ? a.first < b.first
						  : std::less<const Key *>()(a.second, b.second);
		}
	};

	void move_due()
	{
		Millis now = clock_.monotonic();
		while (!waiting_.empty() && waiting_.begin()->first <= now) {
			Key key = *waiting_.begin()->second;
			waiting_.erase(waiting_.begin());
			due_.erase(key);
			add(key);
		}
	}

	const Clock &clock_;
	Random random_;
	WorkQueueLimits limits_;
	std::deque<Key> queue_;                            // in dirty_, not in processing_
	std::unordered_set<Key, Hash> dirty_, processing_; // to be worked on; being worked on
	std::unordered_map<Key, Millis, Hash> due_;
	std::set<std::pair<Millis, const Key *>, Earlier> waiting_; // keys of due_ by time
	std::unordered_map<Key, int, Hash> failures_;
};

} // namespace sk8::kube

#endif
