// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What people do when no more faults come: they undo what they did, and say what only they
// can say (slurm-k8s release), which they look at first, and which is true.
#include "test/sim/world.h"

namespace sk8::sim {

void World::people(const char *verb, std::map<std::string, std::string> with)
{
	act({time_.now(), verb, std::move(with)});
}

void World::people_go()
{
	people("config", {});
	kubelet_.remove_all_files();
	for (const auto &[name, pod] : std::map(api_.pods()))
		people("finalizer", {{"pod", name}, {"on", "0"}});
	for (const auto &[name, pod] : std::map(api_.pods())) {
		const bool stays = kubelet_.program(pod->meta.uid).life < 0 || pod->meta.ns != "team-a";
		if (!judge_.is_reservation(pod->meta.uid) && (stays || judge_.is_gone(pod->node_name)))
			people("delete", {{"pod", name}});
	}
	for (const auto &[name, node] : std::map(api_.nodes()))
		people("cordon", {{"node", name}, {"on", "0"}});
	for (const auto &[name, node] : slurm_.select().nodes)
		if ((node.drain || node.set_down) && node.reason_uid == 0)
			people("undrain", {{"node", name}});
	for (const auto &[id, job] : std::map(slurm_.jobs())) {
		if (job.pending() && job.priority == 0 && !job.by_hand)
			people("priority", {{"job", job.name}, {"to", "1000"}});
		if (job.pending() && !job.excluded.empty())
			people("exclude", {{"job", job.name}, {"nodes", ""}});
	}
	if (slurm_.full()) { // what waits for what pods hold may keep those from being adopted
		for (const auto &[id, job] : std::map(slurm_.jobs()))
			if (job.pending() && job.batch())
				people("cancel", {{"job", job.name}});
		for (const auto &[name, pod] : std::map(api_.pods()))
			if (pod->node_name.empty())
				people("delete", {{"pod", name}});
	}
	mend_nodes();
	judge_.people_are_gone();
}

// An administrator has told Kubernetes that nodes which never come back are out of service. What is being deleted there its pod garbage
// collector then takes for failed, and lets go without its kubelet (gcTerminating() of pkg/controller/podgc).
void World::collect_pods()
{
	static constexpr Micros period = 20 * second;
	for (const auto &[name, pod] : std::map(api_.pods()))
		if (pod->meta.deleting && judge_.is_gone(pod->node_name))
			collect_pod(*pod);
	time_.after(period, [this] { collect_pods(); });
}

void World::collect_pod(const kube::Pod &pod)
{
	if (pod.phase != "Succeeded" && pod.phase != "Failed") {
		judge_.phase_by_people(pod.meta.uid);
		api_.change(pod.meta.name, pod.meta.uid, [](kube::Pod &p) {
			p.phase = "Failed";
			p.admitted = false;
			p.garbage_collected = true;
		});
	}
	api_.remove(pod.meta.name, pod.meta.uid, 0);
}

// Who has resized a pod that may have been bound, so that it does not fit beside what else may have been, reads it in its condition:
// doc/reliability.md.
void World::owners_look()
{
	static constexpr std::string_view told = "it may have been bound to node ";
	for (const auto &[name, pod] : std::map(api_.pods()))
		if (pod->node_name.empty() && judge_.is_resized(pod->meta.uid) && pod->scheduled_message.starts_with(told))
			people("delete", {{"pod", name}});
}

bool World::say_gone(const core::Hold &hold, bool force)
{
	const std::string &uid = hold.key.uid;
	if (!judge_.nothing_left(uid, hold.node))
		return false;
	const auto done = process_->release(uid, force);
	if (process_->dying() && judge_.freed(uid, disk_.saved())) // nobody was told, and it counts
		judge_.released_by_people(uid, true, hold.foreign, false, disk_.saved(), disk_.saved());
	if (!done || process_->dying())
		return false;
	tell(story_, "slurm-k8s release ", hold.key.name, " (", uid, force ? ") --force: " : "): ",
	     *done ? **done : done->error().message);
	if (!*done)
		return false;
	const bool unsaved = (*done)->find(" until slurmctld starts again") != std::string::npos;
	judge_.released_by_people(uid, force, hold.foreign, unsaved, process_->ledger(), disk_.saved());
	return true;
}

// What nobody else can end. Without force first. What was released has its object for a
// while yet, perhaps over a restart, until somebody deletes it by force as well.
void World::people_tell_all()
{
	time_.after(second, [] {}); // they look again, even if nothing else happens
	if (!process_)
		return;
	bool said = false, left = false;
	for (const auto &hold : process_->ledger().holds) {
		if (!judge_.needs_person(hold.key.uid, hold.node))
			continue;
		left = true;
		said |= say_gone(hold, !asked_.insert(hold.key.uid).second);
	}
	if (said && dice_.chance("restart after a word", 300))
		process_->die_after(static_cast<int>(dice_.between("restart after a word", 0, 5)));
	if (left)
		return;
	for (const auto &[id, job] : slurm_.jobs())
		if (judge_.waits_for_gone_node(job))
			return slurm_.finish(*slurm_.live_job(job.name), SK8_JOB_CANCELLED, 0, 0);
	for (const auto &[name, pod] : std::map(api_.pods()))
		if (judge_.is_gone(pod->node_name)) {
			judge_.deleted_by_people(pod->meta.uid);
			api_.remove(name, pod->meta.uid, 0);
		}
}

} // namespace sk8::sim
