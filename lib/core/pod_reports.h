// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What pods' owners are told: the PodScheduled condition and events. Of low
// importance and in great number, so rate limited, merged, bounded, and never in
// the way of a Binding or a DELETE. Engine thread only.
#ifndef SK8_CORE_POD_REPORTS_H
#define SK8_CORE_POD_REPORTS_H

#include <deque>
#include <string>
#include <unordered_map>

#include "lib/core/kube_port.h"
#include "lib/core/timer_port.h"

namespace sk8::core {

class PodReports {
public:
	// job_of: the id of a pod's job by the pod's uid, 0 if there is none; for log lines.
	PodReports(KubePort &kube, TimerPort &timer, std::function<std::uint32_t(const std::string &)> job_of)
		: kube_(kube), timer_(timer), job_of_(std::move(job_of))
	{
	}

	// Wants the condition to say this; only the latest wish per pod is sent, at
	// most one patch per pod and 15 s. Nothing happens if the pod says so already.
	void condition(const PodKey &key, const kube::PodPtr &pod, PodCondition condition);
	// The pod is being bound or gone: no condition is sent any more.
	void stop(const PodKey &key);
	void event(const PodKey &key, PodEvent event);
	std::size_t waiting() const { return queue_.size() + events_.size(); }

private:
	struct Wish {
		PodKey key;
		kube::PodPtr pod;
		PodCondition condition, sent;
		Millis not_before{0};
		bool wanted = false, queued = false;
	};
	void enqueue(const std::string &uid, Wish &w);
	void pump();
	bool take_token();
	bool send_next();
	void send_condition(Wish &w);

	KubePort &kube_;
	TimerPort &timer_;
	const std::function<std::uint32_t(const std::string &)> job_of_;
	std::unordered_map<std::string, Wish> wishes_; // by uid
	std::deque<std::string> queue_;                // uids whose condition is to be sent
	std::deque<std::pair<PodKey, PodEvent>> events_;
	double tokens_ = 50;
	Millis filled_{0};
	int in_flight_ = 0;
	bool pump_planned_ = false;
	std::size_t dropped_ = 0;
};

} // namespace sk8::core

#endif
