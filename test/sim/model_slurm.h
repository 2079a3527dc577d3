// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// slurmctld behind struct sk8_slurm_ops: a queue, a scheduler, ends, purges, ids that
// come again, and a saved state that is up to five seconds old when it is killed.
// Hooks are called where lib/slurm/module.c has them. The processes of batch jobs are
// real: they survive slurmctld.
#ifndef SK8_SIM_MODEL_SLURM_H
#define SK8_SIM_MODEL_SLURM_H

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test/sim/dice.h"
#include "test/sim/model_select.h"
#include "test/sim/preemption.h"
#include "test/sim/story.h"

namespace sk8::sim {

inline constexpr std::int64_t slurm_epoch = 1'000'000; // wall seconds at the virtual time 0

inline constexpr std::uint32_t model_slurm_uid = 64030; // SlurmUser

// Our plugins, as slurmctld calls them.
class SlurmHooks {
public:
	virtual ~SlurmHooks() = default;
	virtual void node_init() = 0; // before jobs are loaded
	virtual void job_start(const sk8_job &job) = 0;
	virtual void job_fini(const sk8_job &job) = 0;  // before its cores are free
	virtual void reconfigure() = 0;
	// Of jobs of Slurm's own. True: it waits until sk8_slurm_ops.answer_gate().
	virtual bool gate(const sk8_native_job &) { return false; }
	virtual void native_fini(std::uint32_t, std::int64_t) {} // before its cores are free
	virtual std::shared_ptr<const core::MaskSnapshot> masks() = 0;
};

// For those who look on.
class SlurmWatcher {
public:
	virtual ~SlurmWatcher() = default;
	virtual void slurm_changed() = 0; // a scan would find something new
	virtual void job_started(const SlurmJob &job) = 0;
	virtual void job_ended(const SlurmJob &job) = 0;
	virtual void job_ended_by_us(const SlurmJob &before, const sk8_end &end) = 0;
	virtual void submitted_by_us(const SlurmJob &job) = 0;
	// It goes where its pod is, whatever it was to exclude.
	virtual void pinned_by_us(const SlurmJob &job) = 0;
	virtual void started_without_being_woken(const SlurmJob &job) = 0;
	virtual void node_changed_by_us(const std::string &) {}
	// It has other devices than before.
	virtual void devices_changed_by_us(const SlurmJob &) {}
	// Each has its grace from now on, or ends at once. Together they are all that the preemptor
	// needs; null: an administrator's hand.
	virtual void jobs_preempted(const SlurmJob * /*preemptor*/, const std::vector<const SlurmJob *> &) {}
	// Of jobs of Slurm's own, with prep/k8s: it comes to the gate, its first process starts, it is ended
	// because of what became of its pod.
	virtual void native_arrived(const SlurmJob &) {}
	virtual void native_launched(const SlurmJob &) {}
	virtual void native_ended(const SlurmJob &, bool) {} // by_itself
	virtual void native_ended_by_us(const SlurmJob &, const sk8_native_end &) {}
};

// What a batch job runs on its node.
struct BatchProcess {
	std::uint32_t job_id;
	std::int64_t submit_time;
	std::string node;
	int cores;
	std::uint64_t memory;
	int gpus;
	std::vector<std::uint16_t> devices; // that it had in Slurm when it was started
	bool forgotten = false; // slurmctld was killed before it had saved its start
};

class ModelSlurm {
public:
	ModelSlurm(Schedule &time, Dice &dice, Story &story, SlurmWatcher &watcher, int nodes, int cores,
		   std::int64_t memory, int job_ids, int gpus);
	~ModelSlurm();
	ModelSlurm(const ModelSlurm &) = delete;
	ModelSlurm &operator=(const ModelSlurm &) = delete;

	// C has no context: of the one model of this thread.
	static const sk8_slurm_ops &ops();

	// ---- the daemon ----
	void boot(SlurmHooks &hooks); // node_init, jobs, reconfigure
	void kill();                  // what was not saved is lost
	void shut_down();             // saves first
	bool up() const { return hooks_ != nullptr; }
	std::int64_t clock_step = 0;  // seconds that its clock is ahead
	std::int64_t wall() const { return slurm_epoch + clock_step + time_.now() / second; }

	// ---- people; nothing happens while it is down ----
	void sbatch(SlurmJob job);
	// The newest live job with that name, of sbatch or of a pod; null: none.
	SlurmJob *live_job(const std::string &name);
	void finish(SlurmJob &job, sk8_job_state state, std::uint32_t exit_code, std::uint32_t by);
	void preempt_by_hand(SlurmJob &job, std::int64_t grace);
	void updated(); // after somebody changed a job
	void reconfigure(); // scontrol reconfigure
	// One pass of the scheduler on a thread of its own, in the middle of what ours do.
	void schedule_now();
	void lose_state() { saved_ = {}; } // of StateSaveLocation

	// ---- jobs of Slurm's own and the gate, model_gate.cc ----
	bool gates = false; // PrEpPlugins has prep/k8s
	void requeue(SlurmJob &job); // scontrol requeue

	// ---- nodes ----
	void node_dies(const std::string &node);
	void node_returns(const std::string &node);
	void drain(const std::string &node, const std::string &reason, std::uint32_t by); // scontrol update, by root
	void set_down(const std::string &node, const std::string &reason, std::uint32_t by); // the same
	void resume(const std::string &node);
	static std::string reason_of(const SelectNode &n);      // as scontrol shows it
	std::uint32_t jobs_on(const std::string &node) const; // running or completing
	void set_flag(const std::string &node, bool SelectNode::*flag, bool on); // fail, maint
	bool pings = false; // and each answer is news of all nodes
	bool trusts_callers = false; // mutant: changes nodes that are not as expected
	bool takes_more_victims = false; // mutant: lib/slurm/preemptors.c is not there
	bool forgets_native_victims = false; // mutant: it knows pods' jobs alone
	GraceTimes graces;
	std::int64_t grace_of(const SlurmJob &job) const { return job.in_grace() ? job.grace : graces.of(job.qos); }
	int busy = 0; // permille of our submits that it does not take now,
	int tries_at_once = 500; // and of those that it tries to start before it answers

	const std::map<std::uint32_t, SlurmJob> &jobs() const { return jobs_; }
	const std::vector<BatchProcess> &processes() const { return processes_; }
	const ModelSelect &select() const { return select_; }
	std::size_t pending() const;
	bool full() const; // MaxJobCount

private:
	friend struct Ops;
	sk8_job view(const SlurmJob &job) const; // until the next one
	mutable std::string reason_of_view_;
	mutable sk8_gres gres_of_view_{}, used_gres_of_view_{};
	std::uint32_t next_id();
	void submit(const sk8_submit &s, sk8_outcome &out);
	void start(std::uint32_t id, std::int64_t submit_time, const char *mark, const char *node, sk8_outcome &out);
	bool start_there(SlurmJob &job, const char *node, sk8_outcome &out);
	void end(const sk8_end &e, sk8_outcome &out);
	void exclude(std::uint32_t id, std::int64_t submit_time, const char *mark, const char *nodes, sk8_outcome &out);
	sk8_node view(const std::string &name, const SelectNode &n) const;
	void change_node(const sk8_node_change &c, sk8_outcome &out);
	void change_features(const sk8_feature_change &c, sk8_outcome &out);
	const char *set_devices(const sk8_device_change &c);
	void set_drain(const std::string &node, bool on, const std::string &reason, std::uint32_t by);
	SlurmJob *find(std::uint32_t id);
	SlurmJob *find(std::uint32_t id, std::int64_t submit_time, const char *mark, sk8_outcome &out);
	SlurmJob *find_pending(std::uint32_t id, std::int64_t submit_time, const char *mark, sk8_outcome &out);

	void changed(); // save soon; the stamp moves
	void save();
	void load();
	void registered();
	void plan_ping();
	void kick();
	void pass(bool woken);
	bool try_start(SlurmJob &job);
	void start(SlurmJob &job, const std::string &node, ModelSelect::Place place);
	// ---- preemption.cc ----
	void preempt_for(SlurmJob &job);
	std::vector<SlurmJob *> choose_victims(const SlurmJob &job, const std::string &node);
	void preempt(SlurmJob &job);
	void begin_grace(SlurmJob &job, std::int64_t grace);
	void plan_grace_check();
	void spare(std::uint32_t id, std::int64_t submit_time, const char *mark, sk8_outcome &out);
	bool is_masked(const Victim &v) const;
	VictimState state_of(Victim &v);
	bool victims_leave(const SlurmJob &job);
	void remember(const SlurmJob &job, const std::vector<SlurmJob *> &victims);
	bool emptied_for_another(const std::string &node, const SlurmJob &job) const;
	bool forget_emptied();
	std::map<std::string, std::uint32_t> emptied_; // node: the job
	std::vector<Victim> victims_;
	bool grace_check_planned_ = false;
	Micros time_limit_phase_ = -1;
	void process_ends(const SlurmJob &job, bool by_itself);
	void plan_purge(const SlurmJob &job);
	sk8_native_job native_view(const SlurmJob &job) const; // until the next one
	mutable sk8_share share_of_view_{};
	void prolog(SlurmJob &job);
	void prolog_answered(SlurmJob &job);
	bool tell_refusal(const sk8_gate_answer &a);
	void answer_gate(const sk8_gate_answer &a);
	void launch(SlurmJob &job);
	void run_batch(const SlurmJob &job);
	void end_native(SlurmJob &job, sk8_job_state state, std::uint32_t exit_code, std::uint32_t by, bool requeue);
	void end_native(const sk8_native_end &e, sk8_outcome &out);
	void kill_processes(const SlurmJob &job);
	void complete(std::uint32_t id, std::int64_t submit_time);
	void queue_again(SlurmJob &job);
	void load_native(SlurmJob &job);
	void complete_on(const std::string &node);
	void end_jobs_on(const std::string &node); // NODE_FAIL
	void fail_jobs_on(const std::string &node);
	// Runs f later, unless the daemon died meanwhile.
	void later(Micros delay, std::function<void()> f);

	Schedule &time_;
	Dice &dice_;
	Story &story_;
	SlurmWatcher &watcher_;
	SlurmHooks *hooks_ = nullptr;
	ModelSelect select_;
	const std::uint32_t last_id_;

	struct State {
		std::map<std::uint32_t, SlurmJob> jobs;
		std::uint32_t next = 1;
		std::map<std::string, SelectNode> nodes; // of which only the drain counts
	};
	std::map<std::uint32_t, SlurmJob> jobs_;
	std::uint32_t next_ = 1;
	State saved_;
	std::vector<BatchProcess> processes_;
	std::map<std::string, bool> dead_; // nodes without power
	int life_ = 0;                     // of the daemon
	std::int64_t jobs_stamp_ = 0, nodes_stamp_ = 0;
	bool save_planned_ = false, kicked_ = false, pass_planned_ = false, locked_ = false;
};

} // namespace sk8::sim

#endif
