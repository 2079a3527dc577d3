// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// How pods and nodes reach the engine: lib/kube/reflector as the engine sees it. A
// complete list, then events in their order; late, twice, out of order between
// objects, broken off, and after 410 or a restored server a new list. There is one of
// pods for Slurm and of nodes, and one of foreign pods.
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
		std::function<void(const std::vector<kube::NodePtr> &)> nodes_replaced; // null: nodes are not wanted
		std::function<void(const kube::NodePtr &)> node_changed, node_removed;
		std::function<void()> lost; // there is no news any more
		std::function<void()> back; // after an interruption, before what was missed
	};

	using Wants = std::function<bool(const kube::Pod &)>;

	// name: of its streams of chance.
	PodWatch(Schedule &time, Dice &dice, Story &story, ModelApi &api, std::string name)
		: time_(time), dice_(dice), story_(story), api_(api), name_(std::move(name))
	{
	}

	// Each call is one turn of the engine. After stop() none comes any more. wants: its field selector; a
	// pod is wanted for as long as it lives, or from its node on.
	void start(Calls calls, Wants wants);
	void stop();
	// The connection is gone; lost: and what was missed cannot be had any more (410).
	void interrupt(bool lost);

	// ---- faults ----
	Micros lateness = 0;    // of events, at most, beside the usual
	Micros list_lateness = 0; // of lists of pods, beside the usual
	int twice = 0;          // permille of the events that come again
	bool reorders = false;  // events of different objects overtake each other
	void usual()
	{
		lateness = list_lateness = twice = 0;
		reorders = false;
	}

	bool is_watching() const { return watching_; }
	bool is_usual() const { return !lateness && !list_lateness && !twice && !reorders; }

	void pod_event(const ApiEvent &event) override;
	void node_event(const NodeEvent &event) override;
	void restored() override { interrupt(true); }

private:
	void list();
	void resume();
	void deliver(const ApiEvent &event);
	void list_nodes();
	void deliver_node(const NodeEvent &event);
	bool listed() const { return lists_ >= (calls_.nodes_replaced ? 2 : 1); }
	void later(Micros delay, std::function<void()> f);
	Micros in_order(Micros delay, const std::string &object);

	Schedule &time_;
	Dice &dice_;
	Story &story_;
	ModelApi &api_;
	const std::string name_;
	Wants wants_;
	Calls calls_;
	bool wanted_ = false, watching_ = false;
	int lists_ = 0;              // that have arrived since the last one was asked for: pods, nodes
	int connection_ = 0;         // what belongs to a former one is dropped
	std::int64_t version_ = 0;   // up to where events were sent
	Micros list_arrives_ = 0;    // no event overtakes it
	Micros nodes_until_ = 0;     // when the last of what was sent of nodes arrives
	std::size_t nodes_seen_ = 0; // of their history
	bool unordered_ = false;     // since the list: version_ does not say what has arrived
	std::map<std::string, Micros> sent_until_; // by object; "" is the whole stream
};

} // namespace sk8::sim

#endif
