// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/watch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "test/kubesim/times.h"

namespace kubesim {

Watch::Watch(const Store &store, std::size_t storage, Selector selector, View view, WatchOptions options)
	: store_(store), storage_(storage), selector_(std::move(selector)), view_(std::move(view)),
	  options_(options), begun_us_(monotonic_us()), last_bookmark_us_(begun_us_)
{
	const Ring &ring = store_.ring(storage);
	if (options_.initial_state) {
		auto all = store_.list(storage, selector_.ns, "", 0);
		for (const auto &o : *all)
			if (selector_.matches(*o))
				initial_.push_back(o);
		cursor_ = ring.next_seq();
		seen_rv_ = store_.rv();
		return;
	}
	seen_rv_ = options_.after_rv;
	if (options_.after_rv < ring.forgotten_rv) {
		expired_ = true;
		return;
	}
	auto first = std::upper_bound(ring.events.begin(), ring.events.end(), options_.after_rv,
				      [](std::uint64_t rv, const Event &e) { return rv < e.rv; });
	cursor_ = ring.first_seq + (first - ring.events.begin());
}

void Watch::send(const char *type, const std::string &object)
{
	std::string line = "{\"type\":\"" + std::string(type) + "\",\"object\":" + object + "}\n";
	started_ = true;
	if (reorder_ && held_back_.empty()) {
		reorder_--;
		held_back_ = std::move(line);
		return;
	}
	out_ += line + std::exchange(held_back_, {});
}

void Watch::send_expired()
{
	const std::uint64_t oldest = store_.ring(storage_).forgotten_rv;
	send("ERROR", expired("too old resource version: " + std::to_string(seen_rv_) + " (" +
			      std::to_string(oldest) + ")")
			      .status()
			      .dump());
	ended_ = true;
}

// What a change means to a selector: an object that no longer matches is deleted.
void Watch::deliver(const Event &event)
{
	const bool was = event.before && selector_.matches(*event.before);
	const bool is = event.after && selector_.matches(*event.after);
	if (!was && !is)
		return;
	if (drop_) {
		drop_--;
		return;
	}
	const std::size_t copies = duplicate_ ? 2 : 1;
	duplicate_ -= duplicate_ ? 1 : 0;
	for (std::size_t i = 0; i < copies; i++) {
		bool first = !started_;
		if (is) {
			send(was ? "MODIFIED" : "ADDED", view_.watch_object(*event.after, first));
		} else if (event.gone) {
			send("DELETED", view_.watch_object(*event.gone, first));
		} else {
			// The state that matched last, with the resourceVersion of this change.
			Object last = *event.before;
			J json = last.json();
			json["metadata"].set("resourceVersion", std::to_string(event.rv));
			last.rv = event.rv;
			last.body = json.dump();
			send("DELETED", view_.watch_object(last, first));
		}
	}
}

// Puts more into out_; false if there is nothing now.
bool Watch::next()
{
	if (expired_) {
		send_expired();
		return true;
	}
	if (initial_at_ < initial_.size()) {
		send("ADDED", view_.watch_object(*initial_[initial_at_++], !started_));
		return true;
	}
	initial_.clear();
	initial_at_ = 0;
	if (options_.initial_bookmark) {
		options_.initial_bookmark = false;
		send("BOOKMARK", view_.bookmark(seen_rv_, true));
		return true;
	}
	const Ring &ring = store_.ring(storage_);
	if (cursor_ < ring.first_seq) { // too slow: what it needs is forgotten
		send_expired();
		return true;
	}
	const std::size_t before = out_.size();
	while (cursor_ < ring.next_seq() && out_.size() == before) {
		const Event &event = ring.events[cursor_++ - ring.first_seq];
		if (event.rv <= options_.after_rv)
			continue; // asked from the future
		deliver(event);
		seen_rv_ = event.rv;
	}
	if (out_.size() > before)
		return true;
	if (bookmark_due_) {
		bookmark_due_ = false;
		// All changes up to now have been seen: none of this resource is left.
		seen_rv_ = std::max(seen_rv_, store_.rv());
		send("BOOKMARK", view_.bookmark(seen_rv_, false));
		return true;
	}
	return false;
}

long Watch::read(char *buffer, std::size_t size)
{
	waiting_ = false;
	if (out_at_ == out_.size()) {
		out_.clear();
		out_at_ = 0;
	}
	if (out_.empty()) {
		while (out_.size() < size && !ended_ && next())
			;
	}
	if (out_.empty()) {
		if (ended_)
			return end;
		waiting_ = true;
		return wait;
	}
	std::size_t n = std::min(size, out_.size() - out_at_);
	std::memcpy(buffer, out_.data() + out_at_, n);
	out_at_ += n;
	return static_cast<long>(n);
}

void Watch::changed()
{
	if (waiting_ && wake)
		wake();
}

void Watch::tick(std::int64_t now, std::int64_t interval)
{
	bool timed_out = options_.deadline_us && now >= options_.deadline_us;
	const std::int64_t before_end = 2000000;
	bool near_end = options_.deadline_us && now >= options_.deadline_us - before_end && !last_bookmark_sent_ &&
			options_.deadline_us - begun_us_ > before_end;
	if (options_.bookmarks && (near_end || now - last_bookmark_us_ >= interval)) {
		last_bookmark_sent_ |= near_end;
		last_bookmark_us_ = now;
		bookmark_due_ = true;
	}
	if (timed_out && !ended_) {
		while (next())
			;
		ended_ = true;
	}
	if (timed_out || bookmark_due_)
		changed();
}

void Watch::expire()
{
	expired_ = true;
	changed();
}

void Watch::drop_events(std::size_t n)
{
	drop_ += n;
}

void Watch::duplicate_events(std::size_t n)
{
	duplicate_ += n;
}

void Watch::reorder_events(std::size_t n)
{
	reorder_ += n;
}

} // namespace kubesim
