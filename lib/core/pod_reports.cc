// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pod_reports.h"

#include <algorithm>
#include <chrono>

#include "lib/base/doubling.h"
#include "lib/base/log.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

static constexpr double tokens_per_second = 25, burst = 50;
static constexpr int max_in_flight = 2; // most of the connections are for Bindings and DELETEs
static constexpr std::size_t max_events = 2000;
static constexpr Millis per_pod{15'000};
static constexpr Millis retry{1'000}, longest_pause{60'000};
static constexpr int max_tries = 20; // of one event: a quarter of an hour if it is the only one

void PodReports::condition(const kube::PodPtr &pod, PodCondition condition)
{
	Wish &w = wishes_[pod->meta.uid];
	if (pod->scheduled_reason == condition.reason && pod->scheduled_message == condition.message) {
		w.unsaid.reset();
		return;
	}
	if (!w.unsaid)
		w.unsaid = std::make_unique<Unsaid>();
	Unsaid &u = *w.unsaid;
	u.pod = pod;
	if (u.condition != condition) {
		u.condition = std::move(condition);
		u.sent = false;
	}
	if (w.wanted())
		enqueue(pod->meta.uid, w);
}

void PodReports::enqueue(const std::string &uid, Wish &w)
{
	if (w.queued)
		return;
	w.queued = true;
	const Millis now = timer_.now();
	if (w.not_before <= now) {
		line_up(uid, w);
		pump();
		return;
	}
	timer_.after(w.not_before - now, [this, uid] {
		auto it = wishes_.find(uid);
		if (it == wishes_.end() || it->second.not_before > timer_.now())
			return; // of a former wait, which hurry() ended
		line_up(uid, it->second);
		pump();
	});
}

void PodReports::line_up(const std::string &uid, Wish &w)
{
	if (!w.queued || std::exchange(w.in_line, true))
		return;
	queue_.push_back(uid);
}

void PodReports::hurry()
{
	for (Lane *lane : {&event_lane_, &condition_lane_}) {
		lane->failures = 0;
		if (std::exchange(lane->hurries, false))
			lane->rests_until = timer_.now();
	}
	for (auto &[uid, w] : wishes_) {
		if (!std::exchange(w.failures, 0))
			continue;
		w.not_before = std::min(w.not_before, timer_.now());
		line_up(uid, w);
	}
	pump();
}

void PodReports::stop(const std::string &uid)
{
	wishes_.erase(uid);
}

// For one event more; false: what waits is worth more than that one. The oldest goes that is no Warning.
bool PodReports::make_room(bool warning)
{
	if (events_.size() < max_events)
		return true;
	if (dropped_++ % 1000 == 0)
		log_warning("cluster %s: too many events, %zu dropped so far", cluster_.c_str(), dropped_);
	auto goes = std::ranges::find_if(events_, [](const Waiting &w) { return !w.event.warning; });
	if (goes == events_.end() && !warning)
		return false;
	events_.erase(goes == events_.end() ? events_.begin() : goes);
	return true;
}

void PodReports::event(const PodKey &key, PodEvent event)
{
	if (!make_room(event.warning))
		return;
	const std::int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(
					    std::chrono::system_clock::now().time_since_epoch())
					    .count();
	event.time_us = last_event_us_ = std::max(now_us, last_event_us_ + 1); // each its own
	events_.push_back({key, std::move(event)});
	pump();
}

bool PodReports::take_token()
{
	const Millis now = timer_.now();
	tokens_ = std::min(burst, tokens_ + tokens_per_second * (now - filled_).count() / 1000.0);
	filled_ = now;
	if (tokens_ < 1)
		return false;
	tokens_ -= 1;
	return true;
}

bool PodReports::may_send_event() const
{
	return !events_.empty() && event_lane_.rests_until <= timer_.now();
}

bool PodReports::may_send_condition() const
{
	return !queue_.empty() && condition_lane_.rests_until <= timer_.now();
}

// In turn: where events never end pods that wait would never say why.
void PodReports::pump()
{
	while (in_flight_ < max_in_flight && (may_send_event() || may_send_condition())) {
		if (!take_token())
			return pump_later(Millis(1000 / static_cast<int>(tokens_per_second)));
		if (may_send_event() && !(condition_is_next_ && may_send_condition())) {
			send_event();
			condition_is_next_ = true;
		} else if (send_next_condition()) {
			condition_is_next_ = false;
		} else {
			tokens_ += 1;
		}
	}
}

void PodReports::pump_later(Millis delay)
{
	if (std::exchange(pump_planned_, true))
		return;
	timer_.after(delay, [this] {
		pump_planned_ = false;
		pump();
	});
}

// ---- refusals ----

// Not about this pod or this text: nobody answers, something that is in between (3xx), an
// overloaded or broken server, a right that is missing.
static bool may_pass(const KubeReply &r)
{
	return r.status == 0 || r.status / 100 == 3 || r.status == 401 || r.status == 403 || r.status == 429 || r.status >= 500;
}

void PodReports::rest(Lane &lane, const KubeReply &r)
{
	const Millis pause = std::max(doubled(retry, longest_pause, lane.failures++), r.retry_after.value_or(Millis(0)));
	lane.rests_until = timer_.now() + pause;
	lane.hurries = !r.retry_after;
	timer_.after(pause, [this] { pump(); });
}

// ---- events ----

void PodReports::send_event()
{
	Waiting next = std::move(events_.front());
	events_.pop_front();
	in_flight_++;
	kube_.create_event(next.key, next.event, [this, next](const KubeReply &r) {
		in_flight_--;
		if (r.ok() || !may_pass(r)) // 409: it arrived the first time
			event_lane_.failures = 0;
		if (!r.ok())
			event_refused(next, r);
		pump();
	});
}

void PodReports::event_refused(Waiting waiting, const KubeReply &r)
{
	log_pod(verbose, waiting.key, job_of_(waiting.key.uid), "event: %s", r.error.c_str());
	if (!may_pass(r))
		return;
	rest(event_lane_, r);
	// One that is refused again and again (its namespace goes) stands in nobody's way: the
	// others come first, and then it is given up.
	if (++waiting.failures < max_tries && (events_.size() < max_events || (waiting.event.warning && make_room(false))))
		events_.push_back(std::move(waiting));
}

// ---- conditions ----

bool PodReports::send_next_condition()
{
	const std::string uid = std::move(queue_.front());
	queue_.pop_front();
	auto it = wishes_.find(uid);
	if (it == wishes_.end())
		return false;
	it->second.queued = it->second.in_line = false;
	if (!it->second.wanted())
		return false;
	send_condition(it->second);
	return true;
}

void PodReports::send_condition(Wish &w)
{
	Unsaid &u = *w.unsaid;
	in_flight_++;
	u.sent = true;
	w.not_before = timer_.now() + per_pod;
	const PodKey key = key_of(cluster_, u.pod->meta);
	kube_.set_condition(key, u.pod->meta.resource_version, u.condition, [this, uid = key.uid](const KubeReply &r) {
		in_flight_--;
		if (may_pass(r))
			rest(condition_lane_, r);
		else
			condition_lane_.failures = 0;
		if (auto it = wishes_.find(uid); it != wishes_.end()) {
			if (r.ok())
				it->second.failures = 0;
			else if (it->second.unsaid)
				condition_refused(uid, it->second, r);
		}
		pump();
	});
}

void PodReports::condition_refused(const std::string &uid, Wish &w, const KubeReply &r)
{
	w.not_before = timer_.now() + doubled(retry, longest_pause, w.failures++);
	// 409: the pod has changed; its new version has arrived or will.
	if (may_pass(r) || r.status == 409) {
		w.unsaid->sent = false;
		enqueue(uid, w);
		return;
	}
	const PodKey key = key_of(cluster_, w.unsaid->pod->meta);
	log_pod(warning, key, job_of_(uid), "condition: %s", r.error.c_str());
}

} // namespace sk8::core
