// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How pods and nodes reach the engine: lib/kube/reflector as the engine sees it. A
// complete list, then events in their order; late, twice, out of order between
// objects, broken off, and after 410 or a restored server a new list.
#ifndef SK8_SIM_POD_WATCH_H
#define SK8_SIM_POD_WATCH_H

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "test/sim/dice.h"
#include "test/sim/model_api.h"

namespace sk8::sim {

class PodWatch final : public ApiListener {
public:
	struct Calls {
		std::function<void(const std::vector<kube::PodPtr> &)> replaced;
		std::function<void(const kube::PodPtr &)> changed, removed;
		std::function<void(const std::vector<kube::NodePtr> &)> nodes_replaced;
		std::function<void(const kube::NodePtr &)> node_changed;
		std::function<void()> back; // after an interruption, before what was missed
	};

	PodWatch(Schedule &time, Dice &dice, Story &story, ModelApi &api) : time_(time), dice_(dice), story_(story), api_(api)
	{
	}

	// Each call is one turn of the engine. After stop() none comes any more.
	void start(Calls calls);
	void stop();
	// The connection is gone; lost: and what was missed cannot be had any more (410).
	void interrupt(bool lost);

	// ---- faults ----
	Micros lateness = 0;    // of events, at most, beside the usual
	int twice = 0;          // permille of the events that come again
	bool reorders = false;  // events of different objects overtake each other

	void pod_event(const ApiEvent &event) override;
	void node_event(const kube::NodePtr &node) override;
	void restored() override { interrupt(true); }

private:
	void list();
	void resume();
	void deliver(const ApiEvent &event);
	void later(Micros delay, std::function<void()> f);
	Micros in_order(Micros delay, const std::string &object);

	Schedule &time_;
	Dice &dice_;
	Story &story_;
	ModelApi &api_;
	Calls calls_;
	bool wanted_ = false, watching_ = false;
	int lists_ = 0;              // that have arrived since the last one was asked for: pods, nodes
	int connection_ = 0;         // what belongs to a former one is dropped
	std::int64_t version_ = 0;   // up to where events were sent
	Micros list_arrives_ = 0;    // no event overtakes it
	bool unordered_ = false;     // since the list: version_ does not say what has arrived
	std::map<std::string, Micros> sent_until_; // by object; "" is the whole stream
};

} // namespace sk8::sim

#endif
