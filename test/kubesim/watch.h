// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// One open watch: a cursor into the ring of its resource, a selector and a view.
#ifndef KUBESIM_WATCH_H
#define KUBESIM_WATCH_H

#include <optional>
#include <vector>

#include "test/kubesim/request.h"
#include "test/kubesim/selector.h"
#include "test/kubesim/store.h"
#include "test/kubesim/view.h"

namespace kubesim {

struct WatchOptions {
	std::uint64_t after_rv = 0;    // events newer than this
	bool initial_state = false;    // first ADDED for each object
	bool initial_bookmark = false; // then a bookmark that says so
	bool bookmarks = false;
	std::int64_t deadline_us = 0; // monotonic; 0: none
};

class Watch final : public Stream {
public:
	Watch(const Store &store, std::size_t storage, Selector selector, View view, WatchOptions options);

	long read(char *buffer, std::size_t size) override;

	// Something changed in this resource; wakes the reader if it waits for that.
	void changed();
	// Several times a second: ends the watch at its deadline, sends due bookmarks (also
	// two seconds before the end, as the real server).
	void tick(std::int64_t now_us, std::int64_t bookmark_interval_us);

	// Faults, for tests of the client.
	void expire();                  // sends 410 and ends
	void drop_events(std::size_t n); // the next n are not sent
	void duplicate_events(std::size_t n);
	void reorder_events(std::size_t n); // the next n are each sent after the one that follows

	std::size_t storage() const { return storage_; }

private:
	bool next();
	void send(const char *type, const std::string &object);
	void send_expired();
	void deliver(const Event &event);

	const Store &store_;
	std::size_t storage_;
	Selector selector_;
	View view_;
	WatchOptions options_;
	std::vector<ObjectPtr> initial_;
	std::size_t initial_at_ = 0;
	std::uint64_t cursor_ = 0; // sequence number of the next event
	std::uint64_t seen_rv_ = 0;
	std::string out_, held_back_;
	std::size_t out_at_ = 0;
	std::size_t drop_ = 0, duplicate_ = 0, reorder_ = 0;
	std::int64_t begun_us_, last_bookmark_us_;
	bool started_ = false, last_bookmark_sent_ = false, waiting_ = false, ended_ = false, bookmark_due_ = false, expired_ = false;
};

} // namespace kubesim

#endif
