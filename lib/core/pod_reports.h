// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What pods' owners are told: the PodScheduled condition and events. Of low
// importance and in great number, so rate limited, merged, bounded, and never in
// the way of a Binding or a DELETE. Conditions and events take turns; of too many events those
// that are no Warnings are dropped first. What the API server does not take now waits and
// is sent when it does. Engine thread only.
#ifndef SK8_CORE_POD_REPORTS_H
#define SK8_CORE_POD_REPORTS_H

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "lib/core/kube_port.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

class PodReports {
public:
	// job_of: the id of a pod's job by the pod's uid, 0 if there is none; for log lines.
	PodReports(std::string cluster, KubePort &kube, TimerPort &timer,
		   std::function<std::uint32_t(const std::string &)> job_of)
		: cluster_(std::move(cluster)), kube_(kube), timer_(timer), job_of_(std::move(job_of))
	{
	}

	// Wants the condition to say this; only the latest wish per pod is sent, at
	// most one patch per pod and 15 s. Nothing happens if the pod says so already.
	void condition(const kube::PodPtr &pod, PodCondition condition);
	// The pod is being bound or gone: no condition is sent any more.
	void stop(const std::string &uid);
	void event(const PodKey &key, PodEvent event);
	// The API server answers again: what rests because it did not goes on now, in turn.
	void hurry();
	std::size_t waiting() const { return queue_.size() + events_.size(); }

private:
	// Thousands may wait, each with one of these: no more than is needed.
	struct Unsaid {
		kube::PodPtr pod;
		PodCondition condition;
		bool sent = false; // as it is; wanted until then
	};
	struct Wish {
		std::unique_ptr<Unsaid> unsaid; // until the pod says so, null then
		Millis not_before{0};
		int failures = 0;
		bool queued = false;
		bool in_line = false; // queued, and its time has come: in queue_

		bool wanted() const { return unsaid && !unsaid->sent; }
	};
	struct Waiting {
		PodKey key;
		PodEvent event;
		int failures = 0;
	};
	// Conditions, or events: after a refusal that is not about one pod all of them rest.
	struct Lane {
		Millis rests_until{0};
		bool hurries = false; // hurry() ends the rest
		int failures = 0;
	};
	void enqueue(const std::string &uid, Wish &w);
	void line_up(const std::string &uid, Wish &w);
	void pump();
	void pump_later(Millis delay);
	bool take_token();
	bool may_send_event() const;
	bool may_send_condition() const;
	bool make_room(bool warning);
	void send_event();
	void event_refused(Waiting waiting, const KubeReply &r);
	bool send_next_condition();
	void send_condition(Wish &w);
	void condition_refused(const std::string &uid, Wish &w, const KubeReply &r);
	void rest(Lane &lane, const KubeReply &r);

	const std::string cluster_;
	KubePort &kube_;
	TimerPort &timer_;
	const std::function<std::uint32_t(const std::string &)> job_of_;
	std::unordered_map<std::string, Wish> wishes_; // by uid
	std::deque<std::string> queue_;                // uids whose condition is to be sent
	std::deque<Waiting> events_;
	Lane condition_lane_, event_lane_;
	std::int64_t last_event_us_ = 0;
	double tokens_ = 50;
	Millis filled_{0};
	int in_flight_ = 0;
	bool pump_planned_ = false;
	bool condition_is_next_ = false; // if both wait
	std::size_t dropped_ = 0;
};

} // namespace sk8::core

#endif
