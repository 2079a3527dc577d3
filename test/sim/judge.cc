// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/judge.h"

#include <algorithm>

#include "lib/core/hold_journal.h"
#include "lib/core/lifecycle.h"
#include "lib/core/pod_key.h"
#include "test/sim/judge_claims.h"

namespace sk8::sim {

using State = Container::State;

Judge::Judge(Schedule &time, ModelApi &api, const Config &config) : time_(time), api_(api), config_(config) {}

Judge::~Judge() = default;

std::string Judge::name_of(const std::string &what, const std::string &name, const std::string &uid)
{
	return what + " " + name + " (" + uid + ")";
}

void Judge::violation(const std::string &what)
{
	if (verdict_.empty())
		verdict_ = what;
}

Judge::PodTruth *Judge::truth_of(const std::string &mark)
{
	auto key = core::PodKey::from_mark(mark);
	auto it = key ? pods_.find(key->uid) : pods_.end();
	return it == pods_.end() ? nullptr : &it->second;
}

bool Judge::may_stay(const SlurmJob &job) const
{
	auto key = core::PodKey::from_mark(job.mark);
	return key && needs_person(key->uid, job.node.empty() ? job.required : job.node);
}

// It was started beside what came second and waits for a person's word.
bool Judge::waits_to_bind(const SlurmJob &job, const std::set<std::string> &blocked) const
{
	const auto key = core::PodKey::from_mark(job.mark);
	const kube::PodPtr pod = key ? api_.pod(key->name) : nullptr;
	return pod && is_there(pod, key->uid) && pod->node_name.empty() && blocked.contains(job.node);
}

// ---- what people did ----

void Judge::created(const kube::Pod &pod, const Program &program)
{
	PodTruth &t = pods_[pod.meta.uid];
	t.name = pod.meta.name;
	t.program = program;
	t.bare = pod.meta.controller_kind.empty();
}

void Judge::deleted_by_people(const std::string &uid)
{
	PodTruth &t = pods_.at(uid);
	t.innocent = false;
	if (t.deleted < 0)
		t.deleted = time_.now();
	if (t.deleted_by_people < 0)
		t.deleted_by_people = time_.now();
}

void Judge::finalizer_by_people(const std::string &uid, const std::string &finalizer, bool present)
{
	auto &list = pods_.at(uid).finalizers;
	if (present)
		list.insert(finalizer);
	else
		list.erase(finalizer);
}

void Judge::etcd_restored()
{
	shared_pods_restored();
	requests_restored();
	for (auto &[uid, t] : pods_) {
		t.restored = true;
		t.innocent = false;
		t.finalizers.clear();
		kube::PodPtr pod = api_.pod(t.name);
		const bool there = is_there(pod, uid);
		t.lost_before |= t.foreign && t.gone && t.told && !t.tells;
		if (t.foreign && !(there && !pod->node_name.empty())) { // what the engine saw of its end it does not see again
			t.gone = true;
			t.word = false;
			continue;
		}
		// Its kubelet may have told its end, which was the end of the word; now it may run again.
		t.word &= !t.foreign || kubelet_->runs_anywhere(uid);
		t.gone = t.excused = !there;
		t.unknown &= !there;
		t.tells = t.told = t.said = false;
		t.node_forgotten |= there && may_have_node(t) && pod->node_name.empty();
		t.may_be_bound |= t.may_arrive > 0;
		t.may_arrive = 0; // what was on its way is not any more
		t.protected_ = there && core::has_finalizer(*pod);
		t.word &= there && !pod->node_name.empty();
	}
}

// ---- I1 ----

// but_pod: a pod that does not count, since the job that is looked at is its own.
void Judge::check_use(const std::string &node, const std::string &but_pod, const SlurmJob *more)
{
	std::uint64_t cores = 0, memory = 0, gpus = 0;
	std::string who;
	auto add = [&](auto c, auto m, auto g, const std::string &name) {
		cores += static_cast<std::uint64_t>(c);
		memory += static_cast<std::uint64_t>(m);
		gpus += static_cast<std::uint64_t>(g);
		who += (who.empty() ? "" : ", ") + name + " " + std::to_string(c) + " cores " + std::to_string(m) + " MB" +
		       (g ? " " + std::to_string(g) + " GPUs" : "");
	};
	for (const auto &p : slurm_->processes())
		if (p.node == node && !p.forgotten) // Slurm ends it when its node registers
			add(p.cores, p.memory, p.gpus, "batch job " + std::to_string(p.job_id));
	for (const auto &[key, c] : kubelet_->containers())
		if (c.node == node && c.state == State::running && c.uid != but_pod && !pods_.at(c.uid).unknown &&
		    !pods_.at(c.uid).foreign) {
			const Sum use = of_its_job(c);
			add(use.milli / 1000, use.memory, c.program.gpus, "pod " + c.pod);
		}
	if (more)
		add(more->cpus, more->memory_mb, more->gpus, "job " + std::to_string(more->id) + " that starts");
	auto have = static_cast<std::uint64_t>(slurm_->select().cores);
	const auto have_gpus = static_cast<std::uint64_t>(slurm_->select().gpus);
	std::uint64_t have_memory = slurm_->select().memory;
	if (promised(node) || config_.mixes(node)) { // its kubelet says what there is room for, beyond what Slurm has, too
		const kube::Resources &all = api_.nodes().at(node)->allocatable;
		have = std::max(have, static_cast<std::uint64_t>(all.milli_cpu) / 1000);
		have_memory = std::max(have_memory, static_cast<std::uint64_t>(all.memory_bytes) >> 20);
	}
	if (cores > have || memory > have_memory || gpus > have_gpus)
		violation("I1: node " + node + " has " + std::to_string(have) + " cores, " + std::to_string(have_memory) +
			  " MB and " + std::to_string(have_gpus) + " GPUs, used by: " + who);
}

void Judge::container_started(const Container &c)
{
	if (!pods_.at(c.uid).foreign)
		check_use(c.node, "", nullptr);
	PodTruth &t = pods_.at(c.uid);
	if (++t.started > 1 && !t.restored && !t.from_file)
		violation("I3: pod " + c.pod + " (" + c.uid + ") is started a second time, on " + c.node);
	if (t.restored)
		for (const auto &[key, other] : kubelet_->containers())
			if (other.uid == c.uid && other.node != c.node && other.state == State::running)
				violation("I3: pod " + c.pod + " (" + c.uid + ") runs on " + c.node + " and " + other.node);
	if (claims_)
		claims_->container_started(c);
}

void Judge::container_ended(const Container &c)
{
	PodTruth &t = pods_.at(c.uid);
	if (t.reservation)
		reservation_ended(c);
	t.ended_by_itself |= c.by_itself;
	if (!c.by_itself && c.reason == "Unknown")
		t.innocent = false; // its node died
	preempted_container_ended(c);
}

// The devices that Slurm gave to the job of a pod are nobody else's while that runs; of one that has claims those that it claims are.
void Judge::check_devices(const SlurmJob &job, const std::string &own_pod)
{
	for (const auto &[key, c] : kubelet_->containers()) {
		const PodTruth &t = pods_.at(c.uid);
		if (c.node != job.node || c.state != State::running || c.uid == own_pod || t.node_of_devices != job.node ||
		    t.devices_lost || t.unknown || !c.claims.empty())
			continue;
		for (auto d : job.devices)
			if (std::ranges::find(t.devices, d) != t.devices.end())
				violation("I1: job " + std::to_string(job.id) + " gets GPU " + std::to_string(d) + " of " + job.node +
					  ", which " + name_of("pod", c.pod, c.uid) + " has");
	}
}

void Judge::job_started(const SlurmJob &job)
{
	auto key = core::PodKey::from_mark(job.mark);
	check_devices(job, key ? key->uid : "");
	if (device_plugin)
		check_told_devices(job);
	if (claims_)
		claims_->job_started(job);
	if (auto it = preemptions_.find(key ? key->uid : ""); it != preemptions_.end() && it->second.job != job.ref())
		preemptions_.erase(it); // what runs from now on is this job's
	PodTruth *t = truth_of(job.mark);
	if (t)
		t->untrue_since = -1; // of a former run, which Slurm has forgotten
	if (t) {
		t->placed_at = time_.now();
		t->placed_request = least(t->told_request, {std::int64_t{1000} * job.cpus, static_cast<std::int64_t>(job.memory_mb)});
	}
	if (t && !another_stands(job)) {
		t->devices = job.devices;
		t->node_of_devices = job.node;
	} else if (t && t->bound == 0) {
		t->devices_lost = true; // one of the two
	}
	check_use(job.node, key ? key->uid : "", job.has_process() ? nullptr : &job);
	check_foreign(job);
	check_slots(job);
}

// ---- I6 ----

void Judge::config_is_read()
{
	for (const auto &user : config_users) {
		if (config_.maps(user.name) || config_.broken)
			unmapped_since_.erase(user.uid);
		else
			unmapped_since_.try_emplace(user.uid, time_.now());
	}
	unshare();
}

// ---- I2 ----

void Judge::submitted_by_us(const SlurmJob &job)
{
	static constexpr Micros within = 30 * second; // what was asked for before may wait for slurmctld's locks
	if (auto since = unmapped_since_.find(job.user); since != unmapped_since_.end() && time_.now() - since->second > within)
		violation("I6: job " + std::to_string(job.id) + " is made for user " + std::to_string(job.user) +
			  ", to whom nobody maps pods");
	for (const auto &[id, other] : slurm_->jobs())
		if (other.live() && !other.by_hand && other.mark == job.mark && ref(other) != ref(job))
			violation("I2: job " + std::to_string(job.id) + " is made for " + job.mark + ", which has job " +
				  std::to_string(id));
	check_age(job);
}

void Judge::submit_by_us(const core::PodKey &key)
{
	if (pods_.at(key.uid).word)
		violation("I2: a job is asked for for " + name_of("pod", key.name, key.uid) + ", which was released by hand");
}

void Judge::job_ended(const SlurmJob &job)
{
	if (!job.live()) { // where Slurm's clock was set back another one may have this id and submit time
		priorities_.erase(ref(job));
		exclusions_.erase(ref(job));
	}
	PodTruth *t = truth_of(job.mark);
	if (!t)
		return;
	if (!job.by_us)
		t->innocent = false; // somebody, or a limit, or its node
	const bool taken = job.state == SK8_JOB_PREEMPTED || job.state == SK8_JOB_NODE_FAIL;
	if (taken || !job.by_us) // else it is the end of a pod that was taken before
		t->taken = taken;
	preempted_job_ended(job);
	t->taken_once |= taken;
	if (taken)
		t->accrue_times.insert(job.accrue_time);
}

// Of two jobs of a pod one stands for it; the other one tells nothing.
bool Judge::another_stands(const SlurmJob &job) const
{
	return std::ranges::any_of(slurm_->jobs(), [&](const auto &j) {
		const SlurmJob &other = j.second;
		const bool stood = !other.live() && !other.by_us && (other.by_hand || job.by_hand); // until somebody ended it
		return (other.running() || stood) && other.mark == job.mark && ref(other) != ref(job) && other.node == job.node;
	});
}

// other: of two jobs of the pod it may be the one that tells nothing.
void Judge::check_truth(PodTruth &t, const std::string &uid, const SlurmJob &job, const sk8_end &end, bool other)
{
	const Container *c = kubelet_->find(job.node, uid);
	if (!c || c->state != State::ended || !c->by_itself || t.phase_set || t.restored || t.released || t.job_told)
		return;
	kube::PodPtr pod = api_.pod(t.name);
	if (!pod || pod->meta.uid != uid)
		return; // nobody is left who knows
	// times of Kubernetes have a resolution of a second: within that both are true
	const bool deleted = t.deleted >= 0 && t.deleted <= c->ended_at + second;
	if (deleted && (end.state == SK8_JOB_CANCELLED || (job.in_grace() && end.state == SK8_JOB_PREEMPTED)))
		return;
	const Program &p = c->program;
	const sk8_job_state state = p.out_of_memory ? SK8_JOB_OUT_OF_MEMORY : p.exit_code ? SK8_JOB_FAILED : SK8_JOB_COMPLETED;
	const std::uint32_t status = static_cast<std::uint32_t>(p.out_of_memory ? 137 : p.exit_code) << 8;
	const bool truth = end.state == state && end.exit_code == status;
	if (!truth && other)
		return;
	if (!truth)
		violation("I2: pod " + t.name + " ended with " + std::to_string(c->exit_code) + ", its job " +
			  std::to_string(job.id) + " is ended with state " + std::to_string(end.state) + ", status " +
			  std::to_string(end.exit_code));
	t.job_told = true;
}

void Judge::job_ended_by_us(const SlurmJob &job, const sk8_end &end)
{
	const std::string who = "job " + std::to_string(job.id) + " (" + job.name + ")";
	auto key = core::PodKey::from_mark(job.mark);
	if (!key)
		return violation("I3: " + who + " is ended by us and was never ours");
	PodTruth *t = truth_of(job.mark);
	if (!t || !job.running())
		return;
	const bool other = another_stands(job);
	const Container *c = kubelet_->find(job.node, key->uid);
	if (c && c->state == State::running && !t->restored && !lost(*t) && !other)
		return violation("I2: " + who + " is ended by us while its pod runs on " + job.node);
	check_truth(*t, key->uid, job, end, other);
	if (!other)
		preempted_job_ended_by_us(job, key->uid, end);
}

// ---- I3 ----

void Judge::bound(const kube::Pod &pod)
{
	PodTruth &t = pods_.at(pod.meta.uid);
	t.bound_at = time_.now();
	t.crashes_when_bound = crashes_;
	if (++t.bound > 1 && !t.restored)
		violation("I3: pod " + pod.meta.name + " (" + pod.meta.uid + ") is bound a second time");
}

void Judge::delete_by_us(const core::PodKey &key, std::int64_t grace, Micros sent_at)
{
	if (grace < 1)
		violation("I3: pod " + key.name + " is deleted with grace " + std::to_string(grace));
	kube::PodPtr pod = api_.pod(key.name);
	if (!pod || pod->meta.uid != key.uid)
		return; // the server refuses
	PodTruth &t = pods_.at(key.uid);
	preempted_delete_arrives(key.uid, sent_at);
	t.deleted_by_us |= t.deleted < 0;
	if (t.deleted < 0)
		t.deleted = time_.now();
	if (t.innocent)
		violation("I3: pod " + key.name + " (" + key.uid + ") is deleted by us although nobody ended its job");
}

void Judge::started_without_being_woken(const SlurmJob &job)
{
	if (wake_is_coming())
		return;
	violation("I3: job " + std::to_string(job.id) + " (" + job.name +
		  ") could have started before: Slurm was not told that a mask went away");
}

void Judge::pod_event(const ApiEvent &event)
{
	PodTruth &t = pods_.at(event.pod->meta.uid);
	if (t.foreign)
		return foreign_event(event);
	// Who releases by force takes it off: from then on the object may go before anybody could tell how it ended.
	t.protected_ = core::has_finalizer(*event.pod) || (t.protected_ && !t.forced);
	if (!event.removed)
		return;
	const bool runs = kubelet_->runs_anywhere(event.pod->meta.uid);
	if (t.protected_ && runs)
		violation("I3: the object of pod " + t.name + " vanishes with our consent while it runs");
	// The finalizer is sent with the Binding, and either may be slow; nobody may add one to
	// what is being deleted.
	const Micros last_chance = t.deleted >= 0 ? t.deleted : time_.now();
	const bool just_bound = t.bound > 0 ? last_chance - t.bound_at < 5 * second : t.may_arrive > 0; // or about to be
	t.word = t.told = false;
	t.gone = true;
	t.unknown = runs && state_lost_ && !holds_something(event.pod->meta.uid);
	t.unknown |= runs && t.node_forgotten && event.pod->node_name.empty() && crashes_ > t.crashes_when_bound;
	t.excused = trouble_ || just_bound || t.restored;
	// It never had a node, or its kubelet had seen its end.
	t.tells = event.pod->node_name.empty() ? !t.node_forgotten : core::kubelet_reports_over(*event.pod);
	if (runs && !t.excused)
		violation("I3: the object of pod " + t.name + " can vanish while it runs: it lacks our finalizer");
}

void Judge::removal_told(const std::string &uid)
{
	pods_.at(uid).told = true;
}

// ---- I5, and I1 again, after every step ----

void Judge::check()
{
	check_words();
	check_annotations();
	check_preemptions();
	if (device_plugin)
		check_corrected_devices();
	if (claims_)
		claims_->check();
	if (node_state) {
		check_nodes();
		check_overcommit();
	}
	for (const auto &[r, excluded] : exclusions_) {
		auto it = slurm_->jobs().find(r.first);
		if (it != slurm_->jobs().end() && ref(it->second) == r && it->second.pending() &&
		    it->second.excluded != excluded)
			violation("I5: an administrator excluded \"" + excluded + "\" for job " + std::to_string(r.first) +
				  ", now it is \"" + it->second.excluded + "\"");
	}
	for (const auto &[r, priority] : priorities_) {
		auto it = slurm_->jobs().find(r.first);
		if (it != slurm_->jobs().end() && ref(it->second) == r && it->second.pending() &&
		    it->second.priority != priority)
			violation("I5: an administrator set priority " + std::to_string(priority) + " for job " +
				  std::to_string(r.first) + ", now it is " + std::to_string(it->second.priority));
	}
	for (const auto &[uid, t] : pods_) {
		for (const auto &f : t.finalizers) {
			kube::PodPtr pod = api_.pod(t.name);
			const bool there = pod && pod->meta.uid == uid &&
					   std::count(pod->meta.finalizers.begin(), pod->meta.finalizers.end(), f);
			if (!there)
				violation("I5: finalizer " + f + " of pod " + t.name + " was taken off by us");
		}
	}
}

// ---- the end ----

std::string Judge::unfinished(bool masked, std::size_t entries, const std::string &ledger) const
{
	for (const auto &[key, c] : kubelet_->containers())
		if (c.state == State::running)
			return name_of("pod", c.pod, c.uid) + " still runs on " + c.node;
	std::size_t excused = 0;
	auto saved = core::parse_journal(ledger);
	if (!saved)
		return "the saved ledger cannot be read: " + saved.error().message;
	std::set<std::string> waits;   // uids that wait for a person's word, or behind one
	std::set<std::string> blocked; // nodes where something waits for a person's word
	for (const auto &h : saved->holds)
		if (excuses_ && needs_person(h.key.uid, h.node))
			blocked.insert(h.node);
	for (const auto &h : saved->holds) {
		kube::PodPtr pod = api_.pod(h.key.name);
		// Its job would be the next to be made; those that wait for the node that it keeps fill Slurm's table.
		const bool waits_there = is_there(pod, h.key.uid) && pod->node_name.empty() && (blocked.contains(h.node) || slurm_->full());
		if (!waits_there && (!excuses_ || !needs_person(h.key.uid, h.node)))
			return "the saved ledger still has " + name_of("a hold of", h.key.name, h.key.uid);
		excused++;
		waits.insert(h.key.uid);
	}
	for (const auto &r : saved->released)
		if (!is_there(api_.pod(r.key.name), r.key.uid))
			return "the saved ledger still knows that somebody released " + name_of("pod", r.key.name, r.key.uid);
	for (const auto &uid : std::set(waits))
		waits.insert(pods_.at(uid).from);
	for (const auto &r : saved->resubmits) {
		if (waits.contains(r.key.uid) || (excuses_ && needs_person(r.key.uid, "")))
			continue;
		kube::PodPtr pod = api_.pod(r.key.name);
		if (!pod || core::resubmitted_from(*pod) != r.key.uid || !pod->node_name.empty())
			return "the saved ledger still wants " + name_of("pod", r.key.name, r.key.uid) + " to be made again: " + core::name(r.step);
	}
	// what waits for a person's word may keep others away
	for (const auto &[id, job] : slurm_->jobs())
		if (job.live() && !(excuses_ && may_stay(job)) && (excused == 0 || !(job.pending() || waits_to_bind(job, blocked))))
			return "job " + std::to_string(id) + " (" + job.name + ") is still there, state " + std::to_string(job.state);
	bool has_slot = false; // a pod that waits for a person, of a node that may have no other one
	for (const auto &[name, pod] : api_.pods()) {
		const std::string who = name_of("pod", name, pod->meta.uid);
		if (excuses_ && needs_person(pod->meta.uid, "")) {
			has_slot |= !pod->node_name.empty();
			continue;
		}
		if (pod->meta.deleting)
			return who + " is deleted and does not go";
		if (pod->phase != "Succeeded" && pod->phase != "Failed" && (excused == 0 || !pod->node_name.empty()))
			return who + " is still " + pod->phase;
		if (pod->phase != "Pending" && core::has_finalizer(*pod))
			return who + " still has our finalizer";
	}
	if (masked && excused == 0 && !has_slot)
		return "something is still masked";
	if (const std::string what = unfinished_natives(); !what.empty())
		return what;
	if (const std::string what = claims_ ? claims_->unfinished(excused > 0) : ""; !what.empty())
		return what;
	if (const std::string what = node_state ? unfinished_nodes() : ""; !what.empty())
		return what;
	if (entries > api_.pods().size() + excused)
		return "the engine keeps " + std::to_string(entries) + " pods, there are " + std::to_string(api_.pods().size());
	return "";
}

void Judge::final_check()
{
	for (const auto &[uid, t] : pods_) {
		if (should_be_made_again(uid, t))
			violation("I3: " + name_of("pod", t.name, uid) + " was never made again");
		if (!t.innocent || t.restored || slurm_->full())
			continue;
		const std::string who = name_of("pod", t.name, uid);
		if (!t.program.refused && !t.ended_by_itself)
			violation("I3: " + who + " did not run to its end, and nobody wanted that");
		if (t.ended_by_itself && !t.job_told && crashes_ == 0 && !t.phase_set)
			violation("I2: Slurm was never told how " + who + " ended");
	}
}

} // namespace sk8::sim
