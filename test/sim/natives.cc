// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What people and daemons of Kubernetes do to the pods of Slurm's own jobs.
#include "lib/core/reservation.h"
#include "lib/core/shared_reservation.h"
#include "test/sim/world.h"

namespace sk8::sim {

namespace {

struct Way {
	const char *how;
	kube::Disruption disruption;
	const char *by_kubelet; // its word for it; null: somebody deletes it
	bool evicts;            // as doc/sharing.md has it
};

constexpr Way ways[] = {
	{"evicted", kube::Disruption::kubelet, "Evicted", true},
	{"preempting", kube::Disruption::kubelet, "Preempting", true},
	{"drain", kube::Disruption::eviction, nullptr, true},
	{"preempted", kube::Disruption::preemption, nullptr, true},
	{"taint", kube::Disruption::taint, nullptr, true},
	{"delete", kube::Disruption::none, nullptr, true},
	{"force", kube::Disruption::none, nullptr, true},
	{"gc", kube::Disruption::garbage, nullptr, false},
	{"refused", kube::Disruption::none, "OutOfcpu", false}, // a kubelet that starts again and has no room
};

} // namespace

// job=b1 how=evicted
void World::take_reservation(const Action &a)
{
	const SlurmJob *job = job_named(a);
	if (!job || calm_ || !job->batch() || job->node.empty())
		return;
	kube::PodPtr pod = api_.pod(core::reservation_name({job->id, job->submit_time}, job->node));
	if (!pod)
		pod = api_.pod(core::shared_reservation_name(job->node));
	if (!pod || !judge_.is_reservation(pod->meta.uid))
		return;
	const std::string &name = pod->meta.name, &uid = pod->meta.uid;
	for (const Way &way : ways) {
		if (a.text("how") != way.how)
			continue;
		judge_.reservation_taken(uid, way.evicts, !way.by_kubelet && way.disruption == kube::Disruption::none);
		if (way.by_kubelet) {
			kubelet_.evict(pod->node_name, uid, way.by_kubelet);
			return;
		}
		judge_.deleted_by_people(uid);
		api_.change(name, uid, [&way](kube::Pod &p) {
			p.disruption = way.disruption;
			p.garbage_collected |= way.disruption == kube::Disruption::garbage;
			if (!p.garbage_collected)
				return;
			p.phase = "Failed";
			p.admitted = false;
		});
		api_.remove(name, uid, a.text("how") == std::string("force") ? 0 : -1);
		return;
	}
}

// job=b1 node=n1: somebody makes a pod with the name that the job's would have there, and that is larger. shared=1: with the
// name of the one that small jobs share.
void World::create_impostor(const Action &a)
{
	const SlurmJob *job = job_named(a);
	if (!job || !job->batch())
		return;
	Action pod = a;
	pod.with["ns"] = config_.settings.reservations.ns;
	const std::string node = a.text("node");
	pod.with["pod"] = a.has("shared") ? core::shared_reservation_name(node) : core::reservation_name({job->id, job->submit_time}, node);
	pod.with["mcpu"] = std::to_string(1000 * job->cpus + 500);
	create_foreign(pod);
}

} // namespace sk8::sim
