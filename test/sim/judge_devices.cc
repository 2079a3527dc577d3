// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of GPUs that kubelets hand out, where agents tell which (Case::device_plugin):
//
//   * On nodes that are shared as mixed, and on others where reservations.devices is on, no GPU is had by two of the pods that run and the jobs of Slurm's own that are launched.
//     Such a job is launched with exactly those that the kubelet has given its pod, and from then on nobody gets one of them
//     until its last process is gone.
//   * No job starts in Slurm with a GPU of a foreign pod, from the moment when the engine is told that the pod has it until its
//     last container is gone; also across the end of slurmctld, if it was in the saved ledger.
//   * What a pod's job has in Slurm no other job gets before the pod's last container is gone: check_devices().
//   * A minute after the engine was told which GPUs a pod for Slurm has, at the latest, its job has just these in Slurm, unless a
//     job has one of them that cannot be asked for it: one of Slurm's own, or one whose pod is not known to be there.
//
// The windows that the design leaves, in which nothing is demanded:
//
//   * From a pod's admission until the engine is told: foreign pods are masked by number, pods for Slurm as Slurm chose. Slurm
//     may choose the same ones for others; on mixed nodes their kubelet gives them others then, and the gate waits for its word.
//   * Of a GPU that a job has in Slurm and a foreign pod by its kubelet only one is masked, not another one in its place: what
//     starts meanwhile may be one too many for the kubelet. That is right: this one is used twice already, another one is free
//     for Slurm and for the kubelet, so nothing more is given twice. It is so between jobs and foreign pods, and of nobody else.
//   * Of a pod for Slurm whose job ends in that window: what its job had is masked until its end, not what it has.
//   * When somebody has taken the pod of a launched job, or its kubelet has ended it, or its node became mixed only then: a pod
//     is made for what runs, and its kubelet may give it other GPUs than the job goes on using, and those to anybody, until the
//     job ends.
//   * On nodes that are not mixed, while reservations.devices is off, a kubelet may give a pod for Slurm, or a foreign one, a GPU that a job of Slurm's own has.
//   * slurmctld is killed: its jobs have the GPUs again that its last saved state says, until the engine is told anew.
#include <algorithm>

#include "lib/core/names.h"
#include "lib/core/pod_devices.h"
#include "test/sim/judge.h"

namespace sk8::sim {

using State = Container::State;
using Devices = std::vector<std::uint16_t>;

static bool meet(const Devices &a, const Devices &b)
{
	return std::ranges::find_first_of(a, b) != a.end();
}

// ---- what the engine and Slurm are told ----

void Judge::devices_told(const kube::Node &node)
{
	const auto told = core::parse_devices(core::annotation(node, core::names::devices));
	if (!told)
		return violation("an agent's annotation cannot be read: " + told.error().message);
	for (auto &[uid, t] : pods_) {
		if (!kubelet_->find(node.meta.name, uid))
			continue;
		const auto of_it = told->pods.find(uid);
		t.told_devices = of_it == told->pods.end() ? Devices() : of_it->second.at(gpu_resource);
	}
}

void Judge::devices_changed_by_us(const SlurmJob &job)
{
	PodTruth *t = truth_of(job.mark);
	if (t && !another_stands(job)) {
		t->devices = job.devices;
		t->node_of_devices = job.node;
	}
}

// Until Slurm comes back what the ledger says is all that is known.
void Judge::devices_after_crash(const core::Ledger &on_disk)
{
	for (auto &[uid, t] : pods_) {
		t.devices.clear();
		t.told_devices.clear();
		t.others_since = -1;
	}
	for (const core::Hold &h : on_disk.holds) {
		PodTruth &t = pods_.at(h.key.uid);
		(t.foreign ? t.told_devices : t.devices) = core::devices_named(h.gres, "gpu");
		t.node_of_devices = h.node;
	}
}

// Where nobody tells which GPUs pods have only their number means anything: if a pod has got a new job just now, and neither Slurm
// nor the saved ledger knows which that got, those that it had in Slurm before are its.
void Judge::gpus_after_crash(const core::Ledger &on_disk, Micros written_by)
{
	for (const core::Hold &h : on_disk.holds) {
		PodTruth &t = pods_.at(h.key.uid);
		const auto saved = core::devices_named(h.gres, "gpu");
		if (t.foreign || saved.size() != t.devices.size() || h.node != t.node_of_devices || (written_by >= 0 && t.placed_at < written_by))
			continue;
		t.devices = saved;
		devices_as_saved_.insert(h.key.uid);
	}
}

// What jobs have counts from now on: a job that runs covers what its pod holds.
void Judge::slurm_is_back()
{
	const auto as_saved = std::exchange(devices_as_saved_, {});
	for (const auto &[id, job] : slurm_->jobs()) {
		const auto key = core::PodKey::from_mark(job.mark);
		if (job.running() && (device_plugin || (key && as_saved.contains(key->uid))))
			devices_changed_by_us(job);
	}
}

// ---- two have one ----

void Judge::check_told_devices(const SlurmJob &job)
{
	for (const auto &[uid, t] : pods_)
		if (t.node == job.node && foreign_uses(uid, t, job.node) && meet(job.devices, t.told_devices))
			violation("I1: job " + std::to_string(job.id) + " gets GPUs " + core::index_list(job.devices) + " of " + job.node +
				  ", and " + name_of("foreign pod", t.name, uid) + " has " + core::index_list(t.told_devices));
}

// When this job starts. Each of Slurm's, and each of foreign pods' that none of Slurm's has: of one that both have nobody
// hides another.
std::int64_t Judge::gpus_in_use(const SlurmJob &job) const
{
	const auto own = core::PodKey::from_mark(job.mark);
	std::set<std::uint16_t> of_slurm(job.devices.begin(), job.devices.end());
	std::int64_t sum = std::ssize(job.devices);
	const auto add = [&](const Devices &devices, int count) {
		sum += count;
		if (std::cmp_equal(devices.size(), count))
			of_slurm.insert(devices.begin(), devices.end());
	};
	for (const BatchProcess &p : slurm_->processes())
		if (p.node == job.node && !p.forgotten)
			add(p.devices, p.gpus);
	for (const auto &[key, c] : kubelet_->containers()) {
		const PodTruth &t = pods_.at(c.uid);
		if (c.node == job.node && c.state == State::running && !t.foreign && !t.unknown && !(own && own->uid == c.uid))
			add(t.node_of_devices == job.node && !t.devices_lost ? t.devices : Devices(), c.program.gpus);
	}
	for (const auto &[uid, t] : pods_) {
		if (!foreign_uses(uid, t, job.node))
			continue;
		sum += t.program.gpus;
		if (std::cmp_equal(t.told_devices.size(), t.program.gpus))
			sum -= std::ranges::count_if(t.told_devices, [&](auto d) { return of_slurm.contains(d); });
	}
	return sum;
}

// It was not known by then that there is an agent, which may have told the first time when the job is launched.
void Judge::gate_opened(core::JobRef job)
{
	if (const auto it = natives_.find({job.id, job.submit_time}); it != natives_.end())
		it->second.devices_loose |= !knows_agent(it->second.node);
}

void Judge::check_launched_devices(const SlurmJob &job)
{
	NativeTruth &n = natives_.at(ref(job));
	n.devices_loose |= n.loose; // no pod stands for it yet
	n.devices_loose |= !knows_agent(job.node);
	if (!device_plugin || job.devices.empty() || n.loose || n.devices_loose || !devices_promised(job.node))
		return;
	const std::string who = "I1: job " + std::to_string(job.id) + " is launched with GPUs " + core::index_list(job.devices) + " of " + job.node;
	for (const auto &[key, c] : kubelet_->containers()) {
		const PodTruth &t = pods_.at(c.uid);
		// A former one of its name may be ending there, after a restore of etcd.
		const bool own = t.reservation && !t.shared && t.job == ref(job) && is_there(api_.pod(t.name), c.uid);
		if (c.node == job.node && own && c.state != State::ended && c.devices != job.devices)
			violation(who + ", and the kubelet has given its pod " + core::index_list(c.devices));
	}
	for (const BatchProcess &p : slurm_->processes()) {
		const Ref other{p.job_id, p.submit_time};
		const auto it = natives_.find(other);
		if (p.node == job.node && !p.forgotten && other != ref(job) && it != natives_.end() && !it->second.loose &&
		    !it->second.devices_loose && meet(p.devices, job.devices))
			violation(who + ", of which job " + std::to_string(p.job_id) + " has " + core::index_list(p.devices));
	}
}

void Judge::check_given_devices(const Container &c)
{
	const PodTruth &t = pods_.at(c.uid);
	for (const BatchProcess &p : slurm_->processes()) {
		const Ref job{p.job_id, p.submit_time};
		const auto it = natives_.find(job);
		if (p.node == c.node && devices_promised(c.node) && !p.forgotten && it != natives_.end() && !it->second.loose &&
		    !it->second.devices_loose && !(t.reservation && t.job == job) && meet(p.devices, c.devices))
			violation("I1: the kubelet of " + c.node + " gives " + name_of("pod", c.pod, c.uid) + " GPUs " +
				  core::index_list(c.devices) + ", and job " + std::to_string(p.job_id) + " runs on " + core::index_list(p.devices));
	}
}

// ---- Slurm's become the kubelet's ----

const SlurmJob *Judge::job_there(const Container &c) const
{
	for (const auto &[id, job] : slurm_->jobs())
		if (const auto key = core::PodKey::from_mark(job.mark); key && key->uid == c.uid && job.running() && job.node == c.node)
			return &job;
	return nullptr;
}

// Whoever has one of those that the pod has can be asked for it.
bool Judge::can_be_corrected(const Container &c, const SlurmJob &job) const
{
	return std::ranges::none_of(slurm_->jobs(), [&](const auto &at) {
		const SlurmJob &other = at.second;
		if (other.id == job.id || !other.running() || other.node != c.node || !meet(other.devices, c.devices))
			return false;
		const auto key = core::PodKey::from_mark(other.mark);
		const kube::PodPtr pod = key ? api_.pod(key->name) : nullptr;
		return !is_there(pod, key ? key->uid : "") || pod->node_name != c.node || pods_.at(key->uid).two_jobs;
	});
}

void Judge::check_corrected_devices()
{
	static constexpr Micros within = 60 * second;
	if (time_.now() < devices_looked_at_ + second || !slurm_->up())
		return;
	devices_looked_at_ = time_.now();
	for (const auto &[key, c] : kubelet_->containers()) {
		PodTruth &t = pods_.at(c.uid);
		if (c.devices.empty() || t.foreign)
			continue;
		const SlurmJob *job = c.state == State::running ? job_there(c) : nullptr;
		const bool due = job && t.told_devices == c.devices && job->devices != c.devices && !t.two_jobs && can_be_corrected(c, *job);
		if (!due)
			t.others_since = -1;
		else if (t.others_since < 0)
			t.others_since = time_.now();
		if (due && time_.now() - std::max({t.others_since, bad_at_, away_at_}) > within)
			violation("I2: for a minute job " + std::to_string(job->id) + " has had GPUs " + core::index_list(job->devices) + " of " +
				  c.node + " in Slurm, and " + name_of("pod", c.pod, c.uid) + " has " + core::index_list(c.devices));
	}
}

} // namespace sk8::sim
