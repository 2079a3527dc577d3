// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A small world for the pods controller: an API server, a kubelet and a Slurm as
// models behind the ports, with virtual time. Nothing happens until run() lets it;
// faults are set per verb. What cannot happen in the real ones throws here.
#ifndef SK8_TEST_WORLD_H
#define SK8_TEST_WORLD_H

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/core/dra.h"
#include "lib/core/pods_controller.h"

namespace sk8::core::test {

class VirtualTimer final : public TimerPort {
public:
	void after(Millis delay, std::function<void()> f) override
	{
		due_.emplace(now_ + std::max(delay, Millis(0)), std::move(f));
	}
	Millis now() const override { return now_; }
	std::int64_t wall_seconds() const override { return 1'000'000 + now_.count() / 1000; }

	void advance(Millis d)
	{
		const Millis end = now_ + d;
		while (!due_.empty() && due_.begin()->first <= end) {
			now_ = std::max(now_, due_.begin()->first);
			auto f = std::move(due_.begin()->second);
			due_.erase(due_.begin());
			f();
		}
		now_ = end;
	}

private:
	Millis now_{1'000};
	std::multimap<Millis, std::function<void()>> due_;
};

class MemoryJournal final : public HoldJournal {
public:
	void hold(const Hold &h) override { pending.push_back(journal_line(h)); }
	void free(const PodKey &key) override { pending.push_back(journal_line(key)); }
	void released(const Released &r) override { pending.push_back(journal_line(r)); }
	void resubmit(const Resubmit &r) override { pending.push_back(journal_line(r)); }
	void forget_resubmit(const PodKey &key) override { pending.push_back(journal_line_resubmitted(key)); }
	void complete() override { completed = true; }
	Result<void> flush() override
	{
		flushes++;
		if (fail)
			return Error{"No space left on device"};
		writes += !pending.empty();
		for (auto &line : pending)
			text += line;
		pending.clear();
		return {};
	}
	Ledger saved() const { return *parse_journal("{\"v\":1}\n" + text); }
	bool holds(const std::string &uid) const
	{
		return std::ranges::any_of(saved().holds, [&](const Hold &h) { return h.key.uid == uid; });
	}
	std::vector<std::string> pending;
	std::string text;
	bool fail = false, completed = false;
	int flushes = 0; // tries
	int writes = 0;  // which had something to write
};

class World : public KubePort, public SlurmPort {
public:
	World();

	// ---- people and kubelets ----
	std::string create_pod(const std::string &name, std::function<void(kube::Pod &)> edit = {});
	// ... that runs on n1, core 0.
	std::string create_running(const std::string &name);
	// Of n1 and n2 each, gpu-0 to gpu-3 of driver gpu.example.com, pool: the node; and class gpu.example.com is GRES gpu.
	void start_with_drivers();
	// In team-a, as kubectl would make it: exactly this many of the class. more: of its one request.
	void create_claim(const std::string &name, std::int64_t count, const Json &more = Json::object());
	const kube::ResourceClaim &claim(const std::string &name);
	void user_deletes(const std::string &name, std::int64_t grace = 30, bool force = false);
	void kubelet_starts(const std::string &name);
	void resize(const std::string &name, std::int64_t milli_cpu, std::int64_t memory_mb);
	void kubelet_ends(const std::string &name, int exit_code, const std::string &reason = "Completed");
	void slurm_says(const std::string &name, const std::string &reason); // why it is pending
	void slurm_starts(const std::string &name, const std::string &node = "n1",
			  std::vector<std::uint16_t> cores = {0});
	void slurm_preempts(const std::string &name, std::int64_t grace); // its grace begins
	void slurm_ends(const std::string &name, sk8_job_state state, std::uint32_t by = SK8_NO_UID);
	void slurm_forgets(const std::string &name);
	void slurm_forgets_start(const std::string &name); // its saved state has the job as pending

	// Delivers everything that is under way, then lets time pass.
	void run(Millis time = Millis(0));
	// slurmctld dies and comes back: a new controller, the saved ledger, what
	// Slurm still knows, what the API server has.
	void restart();
	bool nodes_last = false; // lists come in any order
	void list_pods(); // a list anew, of the pods as they are now

	// ---- what can be seen ----
	bool exists(const std::string &name) const { return pods.contains(name); }
	kube::Pod &pod(const std::string &name) { return pods.at(name); }
	Job *job_of(const std::string &name); // the newest
	std::string excluded(const std::string &name); // nodes, of the newest job
	Volumes volumes; // of every pod's claims
	bool masked(const std::string &node) { return mask(node) != nullptr; }
	const NodeMask *mask(const std::string &node);
	int count(const std::string &verb) const
	{
		return static_cast<int>(std::count(calls.begin(), calls.end(), verb));
	}
	std::string events_text() const;

	std::map<std::string, kube::Pod> pods; // by name
	std::map<std::string, Json> claims; // by name
	struct SlurmJob {
		PodKey key;
		Job job;
		JobRequest request;
		JobEnd end;
	};
	std::vector<SlurmJob> jobs;
	std::vector<std::string> calls; // "bind", "delete", "submit" ...
	std::map<std::string, PodCondition> conditions; // by name
	std::vector<std::string> events;
	std::map<std::string, std::string> binding_annotations;
	std::int64_t last_grace = 0;

	// ---- faults ----
	std::map<std::string, std::deque<int>> fail; // verb -> HTTP status, in turn; 0 = no answer
	static constexpr int not_sent = -1;          // ... or it never left
	bool binding_arrives_without_answer = false;
	int answer_of_that = 0; // what it gets in place of 201
	bool create_arrives_without_answer = false;
	bool watch_delivers = true;
	SlurmReply submit_reply{.ok = true};
	std::set<std::uint16_t> natives_devices; // that jobs of Slurm's own have
	bool devices_stay = false; // whatever Slurm says
	bool refuses_exclusion = false; // Slurm, any other list of nodes
	int ends_refused = 0; // so many of end() are, for now
	bool nodes_take_jobs = true; // false: nothing starts where a pod is

	VirtualTimer timer;
	MemoryJournal journal;
	std::unique_ptr<HoldTable> holds = std::make_unique<HoldTable>();
	ClusterSettings settings;
	std::unique_ptr<PodsController> controller;
	std::vector<kube::NodePtr> nodes;
	std::vector<SlurmNode> slurm_nodes{{"n1", 1}, {"n2", 1}, {"slurm-only", 1}};
	int woken = 0;
	bool masked_at_first_wake = false; // n1

	std::unique_ptr<Dra> dra;
	std::vector<kube::ResourceSlicePtr> slices;
	std::vector<kube::DeviceClassPtr> device_classes;
	void claim_changes(const std::string &name, const Json &patch); // by whoever, without a version
	std::function<void()> at_bind;                                  // once, before the next Binding is seen
	std::function<void()> at_claim_patch;                           // once, before the next one of ours is answered

	// f is the next that happens after what is under way.
	void post(std::function<void()> f) { queue_.push_back(std::move(f)); }

private:
	void come_to_rest();
	// KubePort
	void get_pod(const PodKey &key, KubePort::Done done) override;
	void set_finalizer(const PodKey &key, bool present, KubePort::Done done) override;
	void bind(const PodKey &key, const std::string &node,
		  const std::map<std::string, std::string> &annotations, KubePort::Done done) override;
	void annotate_pod(const PodKey &key, const AnnotationChanges &changes, KubePort::Done done) override;
	void delete_pod(const PodKey &key, const Deletion &how, KubePort::Done done) override;
	void set_condition(const PodKey &key, const std::string &rv, const PodCondition &c,
			   KubePort::Done done) override;
	void get_manifest(const PodKey &key, Manifest done) override;
	void create_pod(const std::string &ns, const Json &object, KubePort::Done done) override;
	void create_event(const PodKey &key, const PodEvent &event, KubePort::Done done) override;
	void patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, KubePort::Done done) override;
	void get_volumes(const PodKey &key, const std::vector<std::string> &claims,
			 std::function<void(const Volumes &)> done) override;
	// SlurmPort
	void submit(JobRequest request, SlurmPort::Done done) override;
	void end(const PodKey &key, JobRef ref, JobEnd end, SlurmPort::Done done) override;
	void exclude(const PodKey &key, const Job &job, std::string nodes, SlurmPort::Done done) override;
	void set_devices(JobRef ref, DeviceChange change, SlurmPort::Done done) override;
	void wake_scheduler() override
	{
		holds->let_masks_go();
		if (woken++ == 0)
			masked_at_first_wake = masked("n1");
	}

	void start_there(SlurmJob &j, const std::string &node);
	void start_controller();
	void list_nodes();
	void list_devices();
	void changed(const std::string &name);
	void removed(const kube::Pod &last);
	void drop_if_free(const std::string &name);
	bool fault(const char *verb, const KubePort::Done &done);
	void answer(const KubePort::Done &done, int status, kube::PodPtr pod = nullptr, kube::ResourceClaimPtr claim = nullptr);
	kube::Pod *find(const PodKey &key);

	std::deque<std::function<void()>> queue_;
	kube::ResourceClaimPtr seen_claim_;
	int next_uid_ = 1;
	std::uint32_t next_job_ = 100;
	std::int64_t rv_ = 1;
	int generation_ = 0; // of the controller: answers to a dead one are lost
};

} // namespace sk8::core::test

#endif
