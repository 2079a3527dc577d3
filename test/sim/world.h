// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// One simulation: a case is played, then all faults stop, and all must come to its
// right end. Deterministic: the same case gives the same steps.
#ifndef SK8_SIM_WORLD_H
#define SK8_SIM_WORLD_H

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "test/sim/case.h"
#include "test/sim/claim_controllers.h"
#include "test/sim/judge.h"
#include "test/sim/process.h"

namespace sk8::sim {

struct Outcome {
	std::string violation; // empty: none
	std::uint64_t steps = 0;
	Micros time = 0;
};

class World {
public:
	World(const Case &c, bool story, bool print);
	Outcome run();
	const Story &story() const { return story_; }

private:
	friend struct Verbs;
	void act(const Action &a);
	void boot();
	void crash();
	Micros written_by() const;
	void calm();      // from now on nothing goes wrong any more
	void people_go(); // nobody keeps anything for ever: pods that never end are deleted ...
	void collect_pods();
	void collect_pod(const kube::Pod &pod); // by force, as failed if it has not ended
	void owners_look();
	bool say_gone(const core::Hold &hold, bool force); // false: not true, or refused
	void people_tell_all();
	bool is_away() const;      // the engine, or the API server
	bool is_hindered() const;  // ... or its requests, commands and news are
	bool refuses() const;      // what the engine asks for about nodes
	bool something_masked() const;
	std::string unfinished() const;
	void until(Micros delay, const Action &a, std::function<void()> f);
	kube::PodPtr pod_named(const Action &a) const;
	SlurmJob *job_named(const Action &a);
	void create_foreign(const Action &a); // foreign.cc
	void write_static(const Action &a);
	void schedule_foreign(const Action &a, const std::string &uid);
	bool fits_by_the_book(const kube::Pod &pod, const std::string &node) const;
	void take_reservation(const Action &a); // natives.cc
	void create_impostor(const Action &a);
	void play_claims(); // claims.cc
	void claim_devices(kube::Pod &pod, const Action &a);
	void driver_tells(const std::string &node);
	void take_driver(const Action &a);
	void taint_device(const Action &a);
	void watch_claims(const Action &a);
	void mend_drivers();
	void break_watches(); // all at once: nothing of the API server is heard
	void cordon(const std::string &node, bool on); // nodes.cc
	void flag_node(const std::string &node, bool SelectNode::*flag, Micros lasts, const Action &a);
	void set_condition(const std::string &node, Micros lasts, const Action &a);
	void delete_node(const std::string &node, Micros absent, const Action &a);
	void collect_pods_of(const std::string &node);
	void register_node(const std::string &node);
	void mend_nodes();
	void unflag_node(const std::string &node, bool SelectNode::*flag);
	void tell_condition(const std::string &node, const char *status);
	void drain(const std::string &node, const std::string &reason);
	void set_down(const std::string &node, const std::string &reason);
	void resume(const std::string &node);
	void second_job(const Action &a); // settings.cc
	void release_second_jobs();
	void change_config(const Action &a);
	void reconfigure();
	PodWatch &watch_of(const Action &a) { return a.text("of") == "foreign" ? foreign_watch_ : watch_; }
	// What people do, not written into a case.
	void people(const char *verb, std::map<std::string, std::string> with);

	const Case case_;
	Config config_;
	Schedule time_;
	Dice dice_;
	Story story_;
	ModelApi api_;
	Judge judge_;
	ModelClaims claims_; // of Case::claims, as the next two
	ClaimWatch claim_watch_;
	ClaimControllers claim_controllers_;
	ModelKubelet kubelet_;
	PodWatch watch_, foreign_watch_;
	ModelSlurm slurm_;
	Disk disk_;
	std::shared_ptr<Process> process_;
	std::vector<std::shared_ptr<Process>> dead_; // their requests may still arrive
	int next_uid_ = 1;
	Micros down_ = second; // how long slurmctld stays down when it dies next
	bool forget_ = false;  // ... and loses its StateSaveLocation
	bool calm_ = false;
	Micros disk_full_until_ = 0;
	Micros locks_ = 0;
	int faults_ = 0;
	std::set<std::string> asked_; // uids that somebody tried to release without force, at the end
};

} // namespace sk8::sim

#endif
