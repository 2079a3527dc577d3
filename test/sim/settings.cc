// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What administrators do to the whole: slurm-k8s.yaml changes, and jobs get our mark by hand.
#include "test/sim/world.h"

namespace sk8::sim {

// Without words: as it should be. broken=1; user=bob, user= (nobody); selector=name=n1;
// schedulers=other, schedulers=other,slurm; mixed=0; devices=0. later=1: it is not read yet.
void World::change_config(const Action &a)
{
	if (calm_ && !a.with.empty())
		return;
	std::vector<std::string> names;
	for (const auto &[name, n] : slurm_.select().nodes)
		names.push_back(name);
	Config now = usual_config(names);
	let_be_unnamed(now.settings, case_);
	let_reserve(now.settings, case_);
	let_claim(now.settings, case_);
	now.broken = a.has("broken");
	if (a.has("user") && a.text("user").empty())
		now.settings.namespaces.clear();
	else if (a.has("user"))
		now.settings.namespaces[0].user = a.text("user");
	if (a.has("selector"))
		now.settings.nodes.selector = a.text("selector");
	if (a.has("mixed"))
		now.settings.nodes.groups.clear();
	if (a.has("devices"))
		now.settings.reservations.devices = false;
	if (a.text("schedulers") == "other")
		now.settings.scheduler_names = {"other"};
	else if (a.has("schedulers"))
		now.settings.scheduler_names = {"other", "slurm"};
	if (now.settings == config_.settings && now.broken == config_.broken)
		return;
	config_ = now;
	judge_.config_changes();
	judge_.unshare();
	for (const auto &name : names)
		kubelet_.report_state(name); // pods for Slurm may be foreign ones now, which end by their kubelet's report
	if (!a.has("later"))
		reconfigure();
}

void World::reconfigure()
{
	if (slurm_.up())
		judge_.config_is_read();
	slurm_.reconfigure();
}

// scontrol update AdminComment= of a job of the same size, or a second slurmctld. held=1
void World::second_job(const Action &a)
{
	kube::PodPtr pod = pod_named(a);
	if (!pod || calm_ || !slurm_.up())
		return;
	judge_.second_job_by_people(pod->meta.uid);
	const Program &program = kubelet_.program(pod->meta.uid);
	SlurmJob job;
	job.mark = core::PodKey{"c", pod->meta.ns, pod->meta.name, pod->meta.uid}.mark();
	job.by_hand = true;
	job.user = config_users[0].uid;
	job.name = pod->meta.name;
	job.cpus = static_cast<std::uint32_t>(program.cores);
	job.memory_mb = static_cast<std::uint64_t>(program.memory);
	job.gpus = static_cast<std::uint32_t>(program.gpus);
	job.priority = a.has("held") ? 0 : 1000;
	slurm_.sbatch(std::move(job));
}

// Of a pod that has no other one people want it to run.
void World::release_second_jobs()
{
	if (!slurm_.up())
		return;
	for (const auto &[id, job] : slurm_.jobs()) {
		if (!job.by_hand || !job.pending() || job.priority > 0)
			continue;
		const auto key = core::PodKey::from_mark(job.mark);
		kube::PodPtr pod = api_.pod(key->name);
		bool only = pod && pod->meta.uid == key->uid && !pod->meta.deleting && pod->node_name.empty();
		for (const auto &[other_id, other] : slurm_.jobs())
			only &= other_id == id || !other.live() || other.mark != job.mark;
		if (only)
			return people("priority", {{"job", job.name}, {"to", "1000"}});
	}
}

} // namespace sk8::sim
