// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of jobs of Slurm's own on nodes that are shared as mixed:
//
//   * From the launch of such a job until its last process is gone, and whenever a kubelet admits
//     a pod there: what the kubelet has admitted of others' pods and of pods of Slurm, and all
//     launched jobs, fit into what is allocatable. Reservation pods are the means, and do not count.
//   * That is off for a job whose pod somebody has taken (evicted, deleted, with its node, with
//     etcd), until another one with all that is promised is admitted; and where the engine was not
//     told to share the node so, for jobs that had come to the gate before.
//   * Nobody but those takes the pod of a job whose processes run.
//   * A job is ended because of its pod only if somebody has taken that, in a way that
//     doc/sharing.md calls an eviction, as the settings say; and then it is, but for a pod of
//     before that is plainly deleted in an engine's first seconds: perhaps by the former one.
//   * Where a node is not mixed, but reservations.devices is on, all of this is so of GPUs, and of jobs that have some.
//   * What the kubelet has set aside for such pods is never less than what those jobs have that are
//     launched there; several may have one pod, which is resized in place.
//   * In the end no such pod is left, and no job in the gate.
#include <algorithm>
#include <cstdlib>

#include "lib/core/names.h"
#include "lib/core/native_job.h"
#include "test/sim/judge.h"

namespace sk8::sim {

using State = Container::State;

static std::string text_of(std::uint32_t id)
{
	return "job " + std::to_string(id);
}

// ---- what is promised ----

void Judge::read_mixed()
{
	for (const auto &[name, node] : api_.nodes()) {
		const bool mixed = config_.mixes(name), devices = config_.holds_devices(name), had_devices = held_devices_.contains(name);
		const bool as_before = mixed ? !had_devices : devices && had_devices;
		for (auto &[ref, n] : natives_)
			n.loose |= n.node == name && !as_before;
		if (mixed)
			mixed_since_.try_emplace(name, time_.now());
		else
			mixed_since_.erase(name);
		if (devices)
			devices_since_.try_emplace(name, time_.now());
		else
			devices_since_.erase(name);
	}
	held_devices_ = devices_since_; // which gate_opens() clears
}

// That it is not launched before a pod holds what it has there; nullopt: it is not.
std::optional<Micros> Judge::promised_since(const SlurmJob &job) const
{
	if (auto it = mixed_since_.find(job.node); it != mixed_since_.end())
		return it->second;
	const auto it = devices_since_.find(job.node);
	return it == devices_since_.end() || job.gpus == 0 ? std::nullopt : std::optional(it->second);
}

// Slurm may have put a job elsewhere of whose start it knows no more: its pod there is nobody's.
bool Judge::runs_on(Ref job, const std::string &node) const
{
	return std::ranges::any_of(slurm_->processes(), [&](const BatchProcess &p) {
		return p.job_id == job.first && p.submit_time == job.second && p.node == node && !p.forgotten;
	});
}

void Judge::check_mixed(const std::string &node, const std::string &when)
{
	if (!devices_promised(node))
		return;
	std::int64_t milli = 0, memory = 0, gpus = 0;
	std::string who;
	auto add = [&](std::int64_t c, std::int64_t m, std::int64_t g, const std::string &name) {
		milli += c;
		memory += m;
		gpus += g;
		who += (who.empty() ? "" : ", ") + name + " " + std::to_string(c) + " mCPU " + std::to_string(m) + " MB " +
		       std::to_string(g) + " GPUs";
	};
	for (const auto &[key, c] : kubelet_->containers())
		if (c.node == node && c.state != State::ended && !pods_.at(c.uid).reservation)
			add(c.program.milli(), c.program.memory, c.program.gpus, c.pod);
	for (const auto &p : slurm_->processes()) {
		auto it = natives_.find({p.job_id, p.submit_time});
		if (p.node == node && !p.forgotten && it != natives_.end() && !it->second.loose)
			add(1000 * p.cores, static_cast<std::int64_t>(p.memory), p.gpus, text_of(p.job_id));
	}
	const kube::Resources &have = api_.nodes().at(node)->allocatable;
	const auto devices = have.extended.find(gpu_resource);
	if ((promised(node) && (milli > have.milli_cpu || memory > have.memory_bytes >> 20)) ||
	    gpus > (devices == have.extended.end() ? 0 : devices->second))
		violation("I1: " + when + ", node " + node + " has " + std::to_string(have.milli_cpu) + " mCPU and " +
			  std::to_string(have.memory_bytes >> 20) + " MB and " + std::to_string(slurm_->select().gpus) + " GPUs, used by: " + who);
}

// By its kubelet, whatever the pods request.
Sum Judge::reserved(const std::string &node, bool shared_only) const
{
	Sum sum;
	for (const auto &[key, c] : kubelet_->containers()) {
		const PodTruth &t = pods_.at(c.uid);
		if (c.node == node && c.state != State::ended && (t.shared || (t.reservation && !shared_only))) {
			sum.milli += c.program.milli();
			sum.memory += c.program.memory;
		}
	}
	return sum;
}

// What processes have of such jobs.
Sum Judge::launched(const std::string &node, const std::function<bool(Ref, const NativeTruth &)> &counts) const
{
	Sum sum;
	for (const auto &p : slurm_->processes()) {
		const Ref job{p.job_id, p.submit_time};
		auto it = natives_.find(job);
		if (p.node == node && !p.forgotten && it != natives_.end() && counts(job, it->second)) {
			sum.milli += 1000 * p.cores;
			sum.memory += static_cast<std::int64_t>(p.memory);
		}
	}
	return sum;
}

bool Judge::shares(Ref job, const NativeTruth &n, const std::string &node) const
{
	return n.small && n.node == node && !has_own_pod(job, node);
}

// Is the pod that jobs share as large as all of those that run there?
bool Judge::shared_covers(const std::string &node) const
{
	return reserved(node, true).covers(launched(node, [&](Ref job, const NativeTruth &n) { return shares(job, n, node); }));
}

void Judge::check_reserved(const std::string &node, const std::string &when)
{
	const Sum has = reserved(node, false), needed = launched(node, [](Ref, const NativeTruth &n) { return !n.loose; });
	if (promised(node) && !has.covers(needed))
		violation("I1: " + when + ", the kubelet of " + node + " has set aside " + std::to_string(has.milli) + " mCPU and " +
			  std::to_string(has.memory) + " MB for jobs that have " + std::to_string(needed.milli) + " mCPU and " +
			  std::to_string(needed.memory) + " MB");
}

bool Judge::has_own_pod(Ref job, const std::string &node) const
{
	return std::ranges::any_of(kubelet_->containers(), [&](const auto &at) {
		const Container &c = at.second;
		const PodTruth &t = pods_.at(c.uid);
		return t.reservation && !t.shared && t.job == job && c.node == node && c.state != State::ended;
	});
}

std::vector<Judge::Ref> Judge::jobs_of(const PodTruth &t) const
{
	if (!t.shared)
		return {t.job};
	std::vector<Ref> out;
	for (const auto &[job, n] : natives_)
		if (shares(job, n, t.node))
			out.push_back(job);
	return out;
}

// Then the promise is kept again.
void Judge::covered_again(const std::string &node)
{
	if (!promised(node) || !shared_covers(node))
		return;
	for (auto &[job, n] : natives_)
		n.loose &= !shares(job, n, node);
}

// It is smaller for its kubelet than what was asked since, or gone.
void Judge::shared_pods_restored()
{
	restored_at_ = time_.now();
	for (const auto &[uid, t] : pods_)
		if (t.shared)
			for (const Ref &job : jobs_of(t))
				natives_[job].loose = true;
}

// ---- jobs ----

void Judge::native_arrived(const SlurmJob &job)
{
	NativeTruth &n = natives_[ref(job)];
	if (n.ended)
		n = {};
	n.node = job.node;
	n.small = job.cpus <= config_.settings.reservations.shared.max_cpus && job.gpus == 0;
	if (n.arrived < 0)
		n.arrived = time_.now();
}

void Judge::native_launched(const SlurmJob &job)
{
	// With a broken file and no engine the gate stands open, also for one whose end a killed slurmctld forgot.
	if (!config_.broken || crashes_ == 0)
		check_use(job.node, "", nullptr);
	NativeTruth &n = natives_.at(ref(job));
	const auto since = promised_since(job);
	n.loose |= !since || n.arrived < *since;
	// Nobody has told the engine yet that the pod that jobs share is another now.
	n.loose |= time_.now() - restored_at_ < 60 * second && n.small && !shared_covers(job.node);
	// ... or that somebody has taken it, or its kubelet has ended it.
	for (const auto &[at, c] : kubelet_->containers()) {
		const PodTruth &t = pods_.at(c.uid);
		const bool ended = c.state == State::ended;
		if (!n.small || !t.shared || c.program.refused || c.node != job.node || (ended && time_.now() - c.ended_at >= 60 * second))
			continue;
		n.evicted |= t.evicted;
		n.loose |= ended;
	}
	// For this engine it was no node of Kubernetes when it decided: it had been deleted before.
	const NodeTruth &node = nodes_[job.node];
	n.loose |= node.first_told_at < engine_began_ || (node.first_told_at >= n.arrived && node.made_at >= engine_began_);
	const bool admitted = has_own_pod(ref(job), job.node) || std::ranges::any_of(kubelet_->containers(), [&](const auto &c) {
		return pods_.at(c.second.uid).shared && c.second.node == job.node && c.second.state != State::ended;
	});
	if (!n.loose && !admitted)
		violation("I1: " + text_of(job.id) + " is launched on " + job.node + " before its kubelet has admitted a pod for it");
	check_mixed(job.node, text_of(job.id) + " is launched");
	check_reserved(job.node, text_of(job.id) + " is launched");
	check_launched_devices(job);
}

void Judge::native_ended(const SlurmJob &job, bool by_itself)
{
	auto it = natives_.find(ref(job));
	if (it == natives_.end())
		return;
	if (by_itself && it->second.must_end >= 0 && time_.now() > it->second.must_end && !trouble_ && !nodes_troubled_)
		violation("eviction: somebody has taken the pod of " + text_of(job.id) + " long before, and it goes on to its end");
	it->second.must_end = -1;
	it->second.ended = true;
}

void Judge::native_ended_by_us(const SlurmJob &job, const sk8_native_end &end)
{
	using OnEviction = core::ReservationSettings::OnEviction;
	const OnEviction wish = config_.settings.reservations.eviction;
	auto it = natives_.find(ref(job));
	const std::string who = text_of(job.id) + " (" + job.name + ") is ended by us";
	// A DELETE of ours that hung, of a job whose end Slurm has forgotten since, looks like a person's.
	const bool late = std::ranges::any_of(pods_, [&](const auto &p) {
		const PodTruth &t = p.second;
		return t.reservation && (t.shared || t.job == ref(job)) && t.deleted_by_us && t.deleted - t.delete_sent > 20 * second;
	});
	if (late && crashes_ > 0)
		return;
	if (it == natives_.end() || !it->second.evicted)
		violation("eviction: " + who + ", and nobody has taken its pod: " + end.comment);
	else if (wish == OnEviction::ignore || end.requeue != (wish == OnEviction::requeue))
		violation("eviction: " + who + ", which the settings do not say");
}

// ---- their pods ----

void Judge::reservation_by_us(const kube::Pod &pod)
{
	Program p;
	p.milli_cpu = pod.request.milli_cpu;
	p.memory = pod.request.memory_bytes >> 20;
	if (auto it = pod.request.extended.find(gpu_resource); it != pod.request.extended.end())
		p.gpus = static_cast<int>(it->second);
	p.orphan_grace = second;
	foreign_created(pod, pod.node_name, p);
	PodTruth &t = pods_.at(pod.meta.uid);
	t.reservation = true;
	t.reserved_at = time_.now();
	t.shared = pod.meta.labels.contains(std::string(core::names::shared_reservation));
	t.devices_alone = !t.shared && p.milli_cpu == 0;
	if (!t.shared) {
		const std::string &id = pod.meta.labels.at(std::string(core::names::reservation_job));
		const std::string &time = pod.meta.annotations.at(std::string(core::names::job_submit_time));
		t.job = {static_cast<std::uint32_t>(std::strtoul(id.c_str(), nullptr, 10)), std::strtoll(time.c_str(), nullptr, 10)};
	}
	reservation_made(pod, p);
}

void Judge::container_admitted(const Container &c)
{
	PodTruth &t = pods_.at(c.uid);
	t.known &= !t.from_file; // if it runs again: its mirror may say that it has ended
	const bool has_devices_promised = c.program.gpus > 0 && devices_promised(c.node); // of others it is one of former settings
	const bool has_promised = promised(c.node) ? !t.devices_alone : has_devices_promised; // else it is given back, and made anew
	if (t.shared)
		covered_again(c.node);
	else if (auto it = natives_.find(t.job); t.reservation && it != natives_.end() && has_promised)
		it->second.loose = false;
	check_mixed(c.node, "the kubelet admits " + name_of("pod", c.pod, c.uid));
	check_given_devices(c);
}

void Judge::container_preempted(const Container &c)
{
	if (is_reservation(c.uid))
		reservation_taken(c.uid, true, false);
	pods_.at(c.uid).innocent = false;
	pods_.at(c.uid).evicted = true;
}

void Judge::container_resized(const Container &c)
{
	covered_again(c.node);
	check_mixed(c.node, "the kubelet resizes " + name_of("pod", c.pod, c.uid));
	check_reserved(c.node, "the kubelet resizes " + name_of("pod", c.pod, c.uid));
}

void Judge::reservation_ended(const Container &c)
{
	if (c.program.refused)
		return; // it never stood for any
	const PodTruth &t = pods_.at(c.uid);
	for (const Ref &job : jobs_of(t))
		if (auto it = natives_.find(job); it != natives_.end()) {
			it->second.loose = true;
			// What we give back we wait for anew.
			it->second.devices_loose |= !c.devices.empty() && (!t.deleted_by_us || runs_on(job, c.node));
		}
}

// When it is sent: it may arrive when Slurm, killed meanwhile, has forgotten the end of the job.
void Judge::reservation_deleted_by_us(const core::PodKey &key, const PodTruth &t)
{
	kube::PodPtr pod = api_.pod(key.name);
	if (!is_there(pod, key.uid) || pod->phase == "Failed" || pod->phase == "Succeeded" || !devices_promised(t.node))
		return;
	if (t.devices_alone && promised(t.node)) // it is made anew, with all; a restore of etcd may bring it back
		return;
	// Made anew before, it has other devices than the job goes on using, or Slurm remembers after a crash: it is exchanged.
	const auto has_others = [&](const Ref &job) {
		return std::ranges::any_of(kubelet_->containers(), [&](const auto &at) {
			const Container &c = at.second;
			return c.uid == key.uid && !c.devices.empty() && std::ranges::any_of(slurm_->processes(), [&](const BatchProcess &p) {
				const auto known = slurm_->jobs().find(p.job_id);
				const bool others = p.devices != c.devices || (known != slurm_->jobs().end() && known->second.devices != c.devices);
				return Ref{p.job_id, p.submit_time} == job && p.node == c.node && others;
			});
		});
	};
	for (const Ref &job : jobs_of(t)) {
		auto it = natives_.find(job);
		const bool exchanged = it != natives_.end() && it->second.devices_loose && has_others(job);
		// Launched, and forgotten by a slurmctld that was killed: in the gate once more while it runs.
		const auto known = slurm_->jobs().find(job.first);
		const bool in_gate = known != slurm_->jobs().end() && ref(known->second) == job && known->second.configuring;
		if (it != natives_.end() && !it->second.loose && !exchanged && !in_gate && runs_on(job, t.node))
			violation("I1: " + name_of("pod", key.name, key.uid) + " is deleted by us while processes of " + text_of(job.first) +
				  " run on " + t.node);
	}
}

void Judge::reservation_taken(const std::string &uid, bool evicts, bool plainly)
{
	static constexpr Micros unsure = 40 * second; // after a start, until all is listed and 30 s longer
	PodTruth &t = pods_.at(uid);
	t.evicted |= evicts;
	const Container *c = kubelet_->find(t.node, uid);
	kube::PodPtr pod = api_.pod(t.name);
	const bool known = c && c->state != State::ended && is_there(pod, uid) && pod->started_at != 0 && !pod->meta.deleting &&
			   !(plainly && t.reserved_at <= engine_began_ && time_.now() - engine_began_ < unsure);
	for (const Ref &job : jobs_of(t))
		taken(job, t, evicts, known);
}

void Judge::taken(Ref job, const PodTruth &t, bool evicts, bool known)
{
	static constexpr Micros within = 25 * second;
	const bool ends = config_.settings.reservations.eviction != core::ReservationSettings::OnEviction::ignore;
	NativeTruth &n = natives_[job];
	n.evicted |= evicts;
	if (evicts && ends && known && runs_on(job, t.node) && devices_promised(t.node) && n.must_end < 0)
		n.must_end = time_.now() + within;
}

// ---- the end ----

std::string Judge::unfinished_natives() const
{
	for (const auto &[name, pod] : api_.pods())
		// A crash and a clock that was set back: another job may have the id, and the second, of the one it was made for.
		if (is_reservation(pod->meta.uid) && !(excuses_ && needs_person(pod->meta.uid, "")) && !(crashes_ && slurm_->clock_step < 0))
			return name_of("reservation pod", name, pod->meta.uid) + " is left, " + pod->phase;
	for (const auto &[id, job] : slurm_->jobs())
		if (job.prologs > 0 || job.completing)
			return text_of(id) + (job.completing ? " is still completing" : " has come to the gate and was never answered");
	return "";
}

} // namespace sk8::sim
