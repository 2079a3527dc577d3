// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/mutants.h"

#include <map>
#include <set>

namespace sk8::sim {

using core::KubeReply;
using core::PodKey;

const std::vector<MutantInfo> &mutants()
{
	using enum Mutant;
	static const std::vector<MutantInfo> table = {
		{no_uid_precondition, "no-uid-precondition", "writes go to whatever pod has the name now"},
		{grace_zero, "grace-zero", "pods are deleted with grace 0"},
		{no_finalizer, "no-finalizer", "the finalizer is believed to be there and is not"},
		{ack_before_answer, "ack-before-answer", "a Binding is believed before it was answered"},
		{silence_is_absence, "silence-is-absence", "a GET without an answer counts as a 404"},
		{deletion_is_proof, "deletion-is-proof", "a deleted pod counts as ended"},
		{strips_finalizers, "strips-finalizers", "others' finalizers go with ours"},
		{relist_ignored, "relist-ignored", "only the first list of pods is believed"},
		{exit_code_lost, "exit-code-lost", "each job ends with COMPLETED 0"},
		{pod_end_not_told, "pod-end-not-told", "a job is believed to be ended and is not"},
		{job_end_not_forwarded, "job-end-not-forwarded", "the engine does not hear of ends of jobs"},
		{scheduler_not_woken, "scheduler-not-woken", "Slurm does not hear that masks went away"},
		{timers_lost, "timers-lost", "each fifth timer is forgotten"},
		{second_job, "second-job", "a submit is now and then done twice"},
		{exclusion_overwritten, "exclusion-overwritten", "what an administrator excluded is not noticed"},
		{hold_not_flushed, "hold-not-flushed", "the ledger is said to be on disk and is not yet"},
		{ledger_not_loaded, "ledger-not-loaded", "the saved ledger is not read at start"},
		{no_leaving_mask, "no-leaving-mask", "job_fini does not mask what the pod holds"},
		{late_leaving_mask, "late-leaving-mask", "it does, but after the cores were freed"},
		{mask_without_memory, "mask-without-memory", "masks hide cores only"},
		{adoption_masks_nothing, "adoption-masks-nothing", "cores without a number are not hidden"},
		{word_forgotten, "word-forgotten", "who was released by hand is not known after a restart"},
		{masks_let_go, "masks-let-go", "the engine lets masks go itself, at once"},
		{foreign_not_masked, "foreign-not-masked", "what somebody else placed hides nothing"},
		{foreign_rounded_down, "foreign-rounded-down", "a foreign pod's part of a core is not counted"},
		{foreign_memory_not_masked, "foreign-memory-open", "foreign pods hide cores only"},
		{overhead_not_masked, "overhead-not-masked", "what belongs to the node hides nothing, whatever is set aside"},
		{overhead_set_aside_twice, "overhead-set-aside-twice", "twice as much is believed to be set aside"},
		{foreign_end_ignored, "foreign-end-ignored", "a foreign pod's end is not noticed"},
		{foreign_phase_believed, "foreign-phase-believed", "a foreign pod's phase counts, whoever set it"},
		{foreign_deletion_is_proof, "foreign-deleted-is-gone", "a deleted foreign pod counts as ended"},
		{foreign_removal_is_proof, "foreign-removed-is-gone", "a foreign pod whose object goes counts as ended"},
		{foreign_absence_is_proof, "foreign-absent-is-gone", "a foreign pod that is not listed counts as ended"},
		{foreign_not_restored, "foreign-not-restored", "foreign pods of the saved ledger are forgotten at start"},
		{foreign_not_saved, "foreign-not-saved", "foreign pods do not come into the saved ledger"},
		{foreign_not_waited_for, "foreign-not-waited-for", "without a ledger nodes take jobs before foreign pods are known"},
		{cordon_taken_for_ours, "cordon-taken-for-ours", "who cordoned a node is not asked"},
		{uncordon_not_noticed, "uncordon-not-noticed", "that somebody uncordoned what we had cordoned is not noticed"},
		{cordon_unseen, "cordon-unseen", "that somebody has cordoned a node is not noticed"},
		{condition_unseen, "condition-unseen", "what node-problem-detector says of a node is not noticed"},
		{not_ready_unseen, "not-ready-unseen", "all nodes are taken for ready"},
		{drain_not_told, "drain-not-told", "a node that Slurm drains is believed to be cordoned and is not"},
		{drained_condition_untold, "drained-condition-untold", "the condition SlurmDrained is believed to be written and is not"},
		{node_not_resumed, "node-not-resumed", "nodes that we drained stay drained"},
		{deleted_node_unseen, "deleted-node-unseen", "a node that Kubernetes deletes is not drained"},
		{node_taken_by_force, "node-taken-by-force", "nodes are drained and resumed as they are by then"},
		{settings_not_reread, "settings-not-reread", "slurm-k8s.yaml is read at the start and never again"},
		{marked_by_hand_unseen, "marked-by-hand-unseen", "pending jobs that we did not make are not found"},
		{gres_not_masked, "gres-not-masked", "masks hide cores and memory only"},
		{gres_not_restored, "gres-not-restored", "the GRES of the saved ledger are forgotten at start"},
		{devices_not_masked, "devices-not-masked", "of the devices that pods hold only the number counts"},
		{foreign_gres_not_masked, "foreign-gres-open", "foreign pods hide no GRES"},
		{owner_not_asked, "owner-not-asked", "who deleted a pod before us is not asked"},
		{old_job_stays_on_pod, "old-job-stays-on-pod", "an adopted pod goes on naming its former job"},
		{never_made_again, "never-made-again", "a bare pod is believed to be made again and is not"},
		{age_lost, "age-lost", "a pod that is made again queues as a new one"},
		{resubmits_not_saved, "resubmits-not-saved", "what is to be made again does not come into the saved ledger"},
		{grace_unseen, "grace-unseen", "that a job is preempted is not noticed before it ends"},
		{grace_not_given, "grace-not-given", "pods of preempted jobs are deleted without the grace"},
		{not_spared, "not-spared", "Slurm ends preempted jobs when their grace is over, whatever kubelets need"},
		{preempted_as_cancelled, "preempted-as-cancelled", "a preempted job is ended as cancelled"},
		{second_victim, "second-victim", "who waits for victims that leave takes others"},
		{second_native_victim, "second-native-victim", "... if those are jobs of Slurm's own, whose pods have not gone yet"},
		{mirror_removal_is_proof, "mirror-removed-is-gone", "a static pod whose mirror goes counts as ended"},
		{mirror_not_told_apart, "mirror-not-told-apart", "mirrors of static pods are taken for pods"},
		{gate_open, "gate-open", "jobs do not wait until a kubelet has admitted their pods"},
		{device_gate_open, "device-gate-open", "where no node is mixed, jobs do not wait for the pods that hold their devices"},
		{gate_not_left, "gate-not-left", "a job that ends in the gate is never answered"},
		{reservation_goes_early, "reservation-goes-early", "a job's pod goes when its end begins"},
		{device_pod_goes_early, "device-pod-goes-early", "where no node is mixed, a job's pod goes when the job is launched"},
		{reservation_not_deleted, "reservation-not-deleted", "pods of jobs are believed to be deleted and are not"},
		{seen_is_admitted, "seen-is-admitted", "a pod that its kubelet has only seen counts as admitted"},
		{refusal_is_eviction, "refusal-is-eviction", "a pod that its kubelet does not admit counts as evicted"},
		{absence_is_eviction, "absence-is-eviction", "a job's pod that is not listed counts as deleted by somebody"},
		{eviction_requeues, "eviction-requeues", "jobs whose pods are taken are queued again, whatever is set"},
		{eviction_ignored, "eviction-ignored", "jobs whose pods are taken go on, whatever is set"},
		{covered_by_name, "covered-by-name", "what has the name of a job's pod is not masked"},
		{resize_believed, "resize-believed", "what is asked for the pod that jobs share counts as set aside by its kubelet"},
		{resize_unseen, "resize-unseen", "that a pod for Slurm was resized in place is not noticed"},
		{foreign_resize_believed, "foreign-resize-believed", "what is asked for a foreign pod counts as what its kubelet has set aside"},
		{smaller_believed, "smaller-believed", "a foreign pod is smaller as soon as somebody has asked for that"},
		{devices_untold, "devices-untold", "what agents tell of devices is not read"},
		{device_order, "device-order", "devices are counted from the other end than agents do"},
		{gate_devices_believed, "gate-devices-believed", "a job in the gate is said to get its pod's devices and does not"},
		{pod_devices_believed, "pod-devices-believed", "a pod's job is said to get the pod's devices and does not"},
		{devices_not_learned, "devices-not-learned", "a job's other devices are not known when it ends"},
		{leaving_devices_open, "leaving-devices-open", "the devices of a deleted foreign pod are free at once"},
		{claim_unshared, "claim-unshared", "devices that several pods have by a claim are free when the first one's job has ended"},
		{claim_unchecked, "claim-unchecked", "what foreign pods' claims have is not believed"},
		{claim_guessed, "claim-guessed", "a claim gets the first devices of the node, not those of the job"},
		{claim_unreserved, "claim-unreserved", "a claim that others have is believed to be for a pod, too, and is not"},
		{full_not_told, "full-not-told", "a node without a pod slot stays a candidate"},
		{overcommit_untold, "overcommit-untold", "that pods and jobs have more than there is of a node is not told"},
		{unknown_nodes_open, "unknown-nodes-open", "without a ledger nodes take jobs before pods are known"},
		{first_list_not_waited_for, "first-list-not-waited-for", "... where slurm-k8s.yaml does not name them"},
		{list_since_ledger_not_waited_for, "list-since-ledger-not-waited-for", "jobs start on mixed nodes before what came since the saved ledger is known"},
		{first_ledger_believed, "first-ledger-believed", "a ledger that was begun without a list is taken for a whole one"},
	};
	return table;
}

std::optional<Mutant> mutant_named(const std::string &name)
{
	if (name.empty())
		return Mutant::none;
	for (const auto &m : mutants())
		if (name == m.name)
			return m.id;
	return std::nullopt;
}

// ---- Kubernetes ----

namespace {

class MutantKube final : public core::KubePort {
public:
	MutantKube(Mutant m, core::KubePort &inner, ModelApi &api) : m_(m), inner_(inner), api_(api) {}

	void get_pod(const PodKey &key, Done done) override
	{
		if (m_ != Mutant::silence_is_absence)
			return inner_.get_pod(key, std::move(done));
		inner_.get_pod(key, [done = std::move(done)](KubeReply r) {
			if (r.status == 0 || r.status >= 500)
				r.status = 404;
			done(r);
		});
	}
	void set_finalizer(const PodKey &key, bool present, Done done) override
	{
		if (m_ == Mutant::no_finalizer && present)
			return answer(key, 200, std::move(done));
		inner_.set_finalizer(fix(key), present, std::move(done));
	}
	void bind(const PodKey &key, const std::string &node, const std::map<std::string, std::string> &annotations,
		  Done done) override
	{
		if (m_ == Mutant::ack_before_answer) {
			inner_.bind(key, node, annotations, [](const KubeReply &) {});
			return answer(key, 201, std::move(done));
		}
		inner_.bind(fix(key), node, annotations, std::move(done));
	}
	void annotate_pod(const PodKey &key, const core::AnnotationChanges &changes, Done done) override
	{
		if (m_ == Mutant::old_job_stays_on_pod)
			return answer(key, 200, std::move(done));
		inner_.annotate_pod(fix(key), changes, std::move(done));
	}
	void delete_pod(const PodKey &key, const core::Deletion &how, Done done) override
	{
		core::Deletion other = how;
		if (m_ == Mutant::grace_zero)
			other.grace_seconds = 0;
		if (m_ == Mutant::owner_not_asked)
			other.if_version.clear();
		inner_.delete_pod(fix(key), other, std::move(done));
	}
	void set_condition(const PodKey &key, const std::string &version, const core::PodCondition &c, Done done) override
	{
		inner_.set_condition(key, version, c, std::move(done));
	}
	void get_manifest(const PodKey &key, Manifest done) override { inner_.get_manifest(fix(key), std::move(done)); }
	void create_pod(const std::string &ns, const Json &object, Done done) override
	{
		if (m_ != Mutant::never_made_again)
			return inner_.create_pod(ns, object, std::move(done));
		kube::Meta meta;
		meta.ns = ns;
		meta.name = object["metadata"]["name"].str();
		answer(core::key_of("c", meta), 201, std::move(done));
	}
	void create_event(const PodKey &key, const core::PodEvent &event, Done done) override
	{
		inner_.create_event(key, event, std::move(done));
	}
	void patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, Done done) override
	{
		if (m_ == Mutant::claim_unreserved && patch["status"]["reservedFor"].size() > 1) {
			auto believed = std::make_shared<kube::ResourceClaim>(claim);
			const Json consumers = patch["status"]["reservedFor"];
			believed->reserved_for.emplace_back(consumers.at(consumers.size() - 1)["uid"].str());
			return answer({"c", claim.meta.ns, claim.meta.name, ""}, 200, std::move(done), believed);
		}
		inner_.patch_claim(claim, status, mutate_claim_patch(m_, patch), std::move(done));
	}
	void get_volumes(const PodKey &key, const std::vector<std::string> &claims,
			 std::function<void(const Volumes &)> done) override
	{
		inner_.get_volumes(key, claims, std::move(done));
	}

private:
	// The key as a request without a uid would be understood by the server.
	PodKey fix(PodKey key) const
	{
		kube::PodPtr pod = m_ == Mutant::no_uid_precondition ? api_.pod(key.name) : nullptr;
		if (pod)
			key.uid = pod->meta.uid;
		return key;
	}
	// Later, since no port calls back at once.
	void answer(const PodKey &key, int status, Done done, kube::ResourceClaimPtr claim = nullptr)
	{
		inner_.get_pod(key, [done = std::move(done), status, claim](const KubeReply &) {
			KubeReply r;
			r.status = status;
			r.claim = claim;
			done(r);
		});
	}
	Mutant m_;
	core::KubePort &inner_;
	ModelApi &api_;
};

// ---- Slurm ----

class MutantSlurm final : public core::SlurmPort {
public:
	MutantSlurm(Mutant m, core::SlurmPort &inner) : m_(m), inner_(inner) {}

	void submit(core::JobRequest request, Done done) override
	{
		if (m_ == Mutant::age_lost)
			request.age = {};
		inner_.submit(std::move(request), std::move(done));
	}
	void end(const PodKey &key, core::JobRef ref, core::JobEnd end, Done done) override
	{
		if (m_ == Mutant::exit_code_lost)
			end = {SK8_JOB_COMPLETED, 0, end.comment};
		if (m_ == Mutant::preempted_as_cancelled && end.state == SK8_JOB_PREEMPTED)
			end.state = SK8_JOB_CANCELLED;
		if (m_ == Mutant::pod_end_not_told)
			return done({.ok = true});
		inner_.end(key, ref, std::move(end), std::move(done));
	}
	void exclude(const PodKey &key, const core::Job &job, std::string nodes, Done done) override
	{
		inner_.exclude(key, job, std::move(nodes), std::move(done));
	}
	void set_devices(core::JobRef job, core::DeviceChange change, Done done) override
	{
		if (m_ == Mutant::pod_devices_believed)
			return done({.ok = true});
		inner_.set_devices(job, std::move(change), std::move(done));
	}
	void wake_scheduler() override
	{
		if (m_ != Mutant::scheduler_not_woken)
			inner_.wake_scheduler();
	}

private:
	Mutant m_;
	core::SlurmPort &inner_;
};

class JournalBehind : public core::HoldJournal {
public:
	explicit JournalBehind(std::unique_ptr<core::HoldJournal> inner) : inner_(std::move(inner)) {}
	void hold(const core::Hold &h) override { inner_->hold(h); }
	void free(const PodKey &key) override { inner_->free(key); }
	void released(const core::Released &r) override { inner_->released(r); }
	void resubmit(const core::Resubmit &r) override { inner_->resubmit(r); }
	void forget_resubmit(const PodKey &key) override { inner_->forget_resubmit(key); }
	void complete() override { inner_->complete(); }
	Result<void> flush() override { return inner_->flush(); }

private:
	std::unique_ptr<core::HoldJournal> inner_;
};

class NoForeignJournal final : public JournalBehind {
public:
	using JournalBehind::JournalBehind;
	void hold(const core::Hold &h) override
	{
		if (!h.foreign)
			JournalBehind::hold(h);
	}
};

class NoResubmitsJournal final : public JournalBehind {
public:
	using JournalBehind::JournalBehind;
	void resubmit(const core::Resubmit &) override {}
	void forget_resubmit(const PodKey &) override {}
};

class MutantJournal final : public JournalBehind {
public:
	using JournalBehind::JournalBehind;
	Result<void> flush() override
	{
		if (++calls_ % 8 != 0)
			return {};
		return JournalBehind::flush();
	}

private:
	int calls_ = 0;
};

// ---- Slurm's functions ----

struct OpsState {
	const sk8_slurm_ops *inner = nullptr;
	int submits = 0;
	std::map<std::uint32_t, std::string> excluded; // by us, by id
	std::set<std::uint32_t> made; // ids
	void (*each)(void *, const sk8_job *) = nullptr;
	void *each_arg = nullptr;
};
OpsState state;

void submit_twice(const sk8_submit *s, sk8_outcome *out)
{
	state.inner->submit(s, out);
	if (++state.submits % 4 == 0)
		state.inner->submit(s, out);
}

void remembering_submit(const sk8_submit *s, sk8_outcome *out)
{
	state.inner->submit(s, out);
	state.excluded[out->job_id] = s->excluded_nodes;
}

void remembering_exclude(std::uint32_t id, std::int64_t t, const char *mark, const char *nodes, sk8_outcome *out)
{
	state.inner->exclude(id, t, mark, nodes, out);
	state.excluded[id] = nodes;
}

void hide_exclusion(sk8_job &job)
{
	if (auto it = state.excluded.find(job.job_id); it != state.excluded.end())
		job.excluded_nodes = it->second.c_str();
}

bool hiding_find(std::uint32_t id, sk8_job *job)
{
	if (!state.inner->find(id, job))
		return false;
	hide_exclusion(*job);
	return true;
}

void noting_submit(const sk8_submit *s, sk8_outcome *out)
{
	state.inner->submit(s, out);
	state.made.insert(out->job_id);
}

void each_made_or_started(void (*f)(void *, const sk8_job *), void *arg)
{
	state.each = f;
	state.each_arg = arg;
	state.inner->each_job([](void *, const sk8_job *j) {
		if (j->state != SK8_JOB_PENDING || state.made.contains(j->job_id))
			state.each(state.each_arg, j);
	}, nullptr);
}

void hiding_each(void (*f)(void *, const sk8_job *), void *arg)
{
	state.each = f;
	state.each_arg = arg;
	state.inner->each_job([](void *, const sk8_job *j) {
		sk8_job job = *j;
		hide_exclusion(job);
		state.each(state.each_arg, &job);
	}, nullptr);
}

} // namespace

const sk8_slurm_ops &mutate(Mutant m, const sk8_slurm_ops &inner)
{
	static sk8_slurm_ops table;
	state = {};
	state.inner = &inner;
	table = inner;
	mutate_preemption(m, inner, table);
	mutate_devices(m, inner, table);
	if (m == Mutant::second_job)
		table.submit = submit_twice;
	if (m == Mutant::marked_by_hand_unseen) {
		table.submit = noting_submit;
		table.each_job = each_made_or_started;
	}
	if (m == Mutant::exclusion_overwritten) {
		table.submit = remembering_submit;
		table.exclude = remembering_exclude;
		table.find = hiding_find;
		table.each_job = hiding_each;
	}
	return table;
}

std::unique_ptr<core::KubePort> mutate(Mutant m, core::KubePort &inner, ModelApi &api)
{
	return std::make_unique<MutantKube>(m, inner, api);
}

std::unique_ptr<core::SlurmPort> mutate(Mutant m, core::SlurmPort &inner)
{
	return std::make_unique<MutantSlurm>(m, inner);
}

std::unique_ptr<core::HoldJournal> mutate(Mutant m, std::unique_ptr<core::HoldJournal> inner)
{
	if (m == Mutant::foreign_not_saved)
		return std::make_unique<NoForeignJournal>(std::move(inner));
	if (m == Mutant::resubmits_not_saved)
		return std::make_unique<NoResubmitsJournal>(std::move(inner));
	if (m != Mutant::hold_not_flushed)
		return inner;
	return std::make_unique<MutantJournal>(std::move(inner));
}

} // namespace sk8::sim
