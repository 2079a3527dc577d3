// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/pod_reports.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

static constexpr double tokens_per_second = 25, burst = 50;
static constexpr int max_in_flight = 2; // most of the connections are for Bindings and DELETEs
static constexpr std::size_t max_events = 2000;
static constexpr Millis per_pod{15'000};
static constexpr Millis retry{1'000};

void PodReports::condition(const PodKey &key, const kube::PodPtr &pod, PodCondition condition)
{
	Wish &w = wishes_[key.uid];
	w.key = key;
	if (pod->scheduled_reason == condition.reason && pod->scheduled_message == condition.message) {
		// Thousands may wait so: what is said already is kept in the pod only.
		w.pod.reset();
		w.condition = w.sent = {};
		w.wanted = false;
		return;
	}
	w.pod = pod;
	w.condition = std::move(condition);
	w.wanted = w.sent.reason != w.condition.reason || w.sent.message != w.condition.message;
	if (w.wanted)
		enqueue(key.uid, w);
}

void PodReports::enqueue(const std::string &uid, Wish &w)
{
	if (w.queued)
		return;
	w.queued = true;
	const Millis now = timer_.now();
	if (w.not_before <= now) {
		queue_.push_back(uid);
		pump();
		return;
	}
	timer_.after(w.not_before - now, [this, uid] {
		if (!wishes_.contains(uid))
			return;
		queue_.push_back(uid);
		pump();
	});
}

void PodReports::stop(const PodKey &key)
{
	wishes_.erase(key.uid);
}

void PodReports::event(const PodKey &key, PodEvent event)
{
	if (events_.size() >= max_events) {
		events_.pop_front();
		if (dropped_++ % 1000 == 0)
			log_warning("events: too many, %zu dropped so far", dropped_);
	}
	events_.emplace_back(key, std::move(event));
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

void PodReports::pump()
{
	while ((!queue_.empty() || !events_.empty()) && in_flight_ < max_in_flight) {
		if (take_token()) {
			if (!send_next())
				tokens_ += 1;
			continue;
		}
		if (!pump_planned_) {
			pump_planned_ = true;
			timer_.after(Millis(1000 / static_cast<int>(tokens_per_second)), [this] {
				pump_planned_ = false;
				pump();
			});
		}
		return;
	}
}

// Events first: an end is worth more than a reason for waiting.
bool PodReports::send_next()
{
	if (!events_.empty()) {
		auto [key, event] = std::move(events_.front());
		events_.pop_front();
		in_flight_++;
		kube_.create_event(key, event, [this, key](const KubeReply &r) {
			in_flight_--;
			if (!r.ok())
				log_pod(verbose, key, job_of_(key.uid), "event: %s", r.error.c_str());
			pump();
		});
		return true;
	}
	const std::string uid = std::move(queue_.front());
	queue_.pop_front();
	auto it = wishes_.find(uid);
	if (it == wishes_.end())
		return false;
	it->second.queued = false;
	if (!it->second.wanted)
		return false;
	send_condition(it->second);
	return true;
}

void PodReports::send_condition(Wish &w)
{
	in_flight_++;
	w.wanted = false;
	w.sent = w.condition;
	w.not_before = timer_.now() + per_pod;
	const std::string uid = w.key.uid;
	kube_.set_condition(w.key, w.pod->meta.resource_version, w.condition, [this, uid](const KubeReply &r) {
		in_flight_--;
		auto it = wishes_.find(uid);
		if (!r.ok() && it != wishes_.end()) {
			// 409: the pod has changed; its new version has arrived or will.
			it->second.sent = {};
			it->second.not_before = timer_.now() + retry;
			it->second.wanted =
				it->second.pod && r.status != 404 && r.status != 403 && r.status != 422;
			if (it->second.wanted)
				enqueue(uid, it->second);
			else if (r.status != 409)
				log_pod(warning, it->second.key, job_of_(uid), "condition: %s", r.error.c_str());
		}
		pump();
	});
}

} // namespace sk8::core
