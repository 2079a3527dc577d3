// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What the judge knows of pods that somebody else placed. They ask nobody, so what is
// promised of them is less than of ours, and is this:
//
//   * When a job of Slurm starts, a pod's or any other, then what runs on its node, this
//     job, and the foreign pods there that the engine was told of before fit together. A
//     foreign pod that came second may be too much; then nobody starts there.
//   * That holds until the last container of the foreign pod is gone: whatever its object
//     says, by force deleted or not, and across the end of slurmctld, if the engine had
//     known of it for some seconds and the disk was not full.
//   * Nobody but a person frees what a foreign pod holds whose object was deleted by force
//     before our eyes; all else comes free by itself, and Slurm hears of it at once.
//   * What belongs to the node (a DaemonSet's, a static pod) takes first what slurm.conf sets
//     aside, and of what Slurm has for jobs only the rest.
#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/hold_journal.h"
#include "lib/core/lifecycle.h"
#include "test/sim/judge_claims.h"

namespace sk8::sim {

using State = Container::State;

void Judge::foreign_created(const kube::Pod &pod, const std::string &node, const Program &program)
{
	created(pod, program);
	PodTruth &t = pods_.at(pod.meta.uid);
	t.foreign = true;
	t.node = node;
	t.overhead = pod.meta.controller_kind == "DaemonSet";
	t.innocent = false; // it is others' business how it ends
}

void Judge::foreign_told(const kube::Pod &pod)
{
	PodTruth &t = pods_.at(behind(pod.meta.uid));
	if (t.foreign)
		request_told(pod);
	if (!t.known)
		t.known_since = time_.now();
	t.known = true;
	t.known_to_come = t.lost_before = false;
	if (claims_)
		claims_->foreign_told(pod.meta.uid);
}

void Judge::foreign_event(const ApiEvent &event)
{
	PodTruth &t = pods_.at(event.pod->meta.uid);
	if (event.pod->node_name.empty())
		return; // no foreign pod yet, or, of an older backup, none any more
	t.gone = event.removed;
	t.word &= !core::kubelet_reports_over(*event.pod); // the kubelet has said it itself
	if (!event.removed)
		return;
	t.word = t.told = false;
	t.tells = core::kubelet_reports_over(*event.pod);
	PodTruth &runs = pods_.at(behind(event.pod->meta.uid));
	runs.known &= !runs.known_to_come; // nobody will tell the engine any more
}

// What counts on that node: what its kubelet has admitted and not ended, and what it will yet admit.
bool Judge::foreign_uses(const std::string &uid, const PodTruth &t, const std::string &node) const
{
	if (!t.foreign || !t.known || t.reservation)
		return false;
	if (const Container *c = kubelet_->find(node, uid))
		return c->state != State::ended;
	kube::PodPtr pod = api_.pod(t.name);
	return !t.released && is_there(pod, uid) && pod->node_name == node && !pod->meta.deleting && pod->phase == "Pending";
}

void Judge::check_foreign(const SlurmJob &job)
{
	const bool counted = job.has_process();
	std::int64_t milli = 1000 * static_cast<std::int64_t>(counted ? 0 : job.cpus);
	std::int64_t memory = static_cast<std::int64_t>(counted ? 0 : job.memory_mb);
	std::int64_t overhead = 0, overhead_memory = 0, gpus = counted ? 0 : job.gpus;
	const auto key = core::PodKey::from_mark(job.mark);
	std::string who;
	for (const auto &p : slurm_->processes())
		if (p.node == job.node && !p.forgotten) {
			milli += 1000 * p.cores;
			memory += static_cast<std::int64_t>(p.memory);
			gpus += p.gpus;
		}
	for (const auto &[k, c] : kubelet_->containers())
		if (c.node == job.node && c.state == State::running && !pods_.at(c.uid).foreign && !pods_.at(c.uid).unknown &&
		    !(key && key->uid == c.uid)) {
			const PodTruth &t = pods_.at(c.uid);
			const Sum use = known_use(c, t);
			milli += use.milli;
			memory += use.memory;
			gpus += c.program.gpus;
			if (t.resized)
				who += ", resized " + t.name + " " + std::to_string(use.milli) + " mCPU " + std::to_string(use.memory) + " MB";
		}
	for (const auto &[uid, t] : pods_) {
		if (!foreign_uses(uid, t, job.node))
			continue;
		const Container *c = kubelet_->find(job.node, uid);
		const Sum use = c ? known_use(*c, t) : t.resized ? t.told_request : Sum{t.program.milli(), t.program.memory};
		(t.overhead ? overhead : milli) += use.milli;
		(t.overhead ? overhead_memory : memory) += use.memory;
		gpus += t.program.gpus;
		who += ", " + t.name + " " + std::to_string(use.milli) + " mCPU " + std::to_string(use.memory) + " MB " +
		       std::to_string(t.program.gpus) + " GPUs";
	}
	if (who.empty())
		return;
	const std::int64_t cores = slurm_->select().cores, have_memory = static_cast<std::int64_t>(slurm_->select().memory);
	const kube::Resources &all = api_.nodes().at(job.node)->allocatable;
	if (milli > 1000 * cores || memory > have_memory || milli + overhead > all.milli_cpu ||
	    memory + overhead_memory > all.memory_bytes >> 20 ||
	    (job.gpus > 0 && (device_plugin ? gpus_in_use(job) : gpus) > slurm_->select().gpus)) // else its GPUs are no matter of this job's
		violation("I1: job " + std::to_string(job.id) + " starts on " + job.node + " with " + std::to_string(cores) +
			  " cores and " + std::to_string(have_memory) + " MB, where " + std::to_string(milli) + " mCPU and " +
			  std::to_string(memory) + " MB and " + std::to_string(gpus) + " GPUs are in use then and " + std::to_string(overhead) + " mCPU and " +
			  std::to_string(overhead_memory) + " MB belong to the node; foreign" + who.substr(1));
}

// Of ours only beside a foreign pod that came second, or beside what nobody could know of; and see judge_slots.cc.
void Judge::container_refused(const Container &c, const std::vector<std::string> &lacks)
{
	PodTruth &t = pods_.at(c.uid);
	if (t.foreign)
		return;
	bool others = t.restored || resized_since_placed(c, t);
	for (const auto &[key, other] : kubelet_->containers())
		if (other.node == c.node && other.state != State::ended && other.uid != c.uid)
			others |= pods_.at(other.uid).foreign || pods_.at(other.uid).unknown || pods_.at(other.uid).restored ||
				  pods_.at(other.uid).resized;
	if (!others && !(lacks == std::vector<std::string>{"pods"} && may_lack_slot(c)))
		violation("I1: the kubelet of " + c.node + " has no room (" + join(lacks, ", ") + ") for " + name_of("pod", c.pod, c.uid) +
			  " beside pods for Slurm");
	t.innocent = false;
}

void Judge::foreign_after_crash(const core::Ledger &on_disk, Micros written_by)
{
	for (auto &[uid, t] : pods_) {
		if (!t.foreign || !t.known)
			continue;
		const bool saved = saves(on_disk, uid);
		const Container *c = kubelet_->find(t.node, uid);
		if (!saved && !t.reservation && !t.released && t.known_since < written_by && c && c->state == State::running)
			violation("I3: the saved ledger lacks " + name_of("foreign pod", t.name, uid) + ", which runs and was told of " +
				  std::to_string((time_.now() - t.known_since) / second) + " s before");
		t.known = saved || t.known_to_come; // one that starts without having been told starts nothing either
		t.told = false;
	}
}

bool Judge::will_be_told(const std::string &uid, const PodTruth &t) const
{
	kube::PodPtr pod = api_.pod(t.name);
	return (is_there(pod, uid) || is_shown(uid, t)) && t.shows.empty() && !pod->node_name.empty() && config_.shares(pod->node_name);
}

// Without a ledger nothing starts before Kubernetes has told what there is.
void Judge::foreign_after_loss()
{
	for (auto &[uid, t] : pods_)
		if (t.foreign)
			t.known = t.known_to_come = will_be_told(uid, t);
}

// With one nothing starts where nodes can be mixed, for a moment.
void Judge::waits_a_moment()
{
	for (auto &[uid, t] : pods_)
		if (t.foreign && !t.known)
			t.known = t.known_to_come = will_be_told(uid, t);
}

void Judge::moment_is_over()
{
	for (auto &[uid, t] : pods_)
		if (std::exchange(t.known_to_come, false))
			t.known = false;
}

// ... or for some time at most, if nothing says that there is anything (nodes.names, what is left of a ledger).
void Judge::waited_enough()
{
	for (const auto &[key, c] : kubelet_->containers())
		nothing_promised_ |= c.state != State::ended && !holds_something(c.uid);
	for (const auto &[name, pod] : api_.pods())
		nothing_promised_ |= !pod->node_name.empty() && pod->phase == "Pending" && !holds_something(pod->meta.uid);
}

// On nodes that are not shared foreign pods are nobody's business, until the engine hears of them anew.
void Judge::unshare()
{
	for (auto &[uid, t] : pods_)
		if (t.foreign && !config_.shares(t.node))
			t.known = t.known_to_come = false;
}

} // namespace sk8::sim
