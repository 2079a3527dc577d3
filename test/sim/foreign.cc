// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Pods that somebody else places: on a node that was named from the start (a DaemonSet's,
// nodeName), or by kube-scheduler, which knows of pods and of nothing that Slurm does.
#include <algorithm>

#include "test/sim/world.h"

namespace sk8::sim {

// kind=daemon: belongs to the node, and is there at once. kind=pod: kube-scheduler binds it.
// else: has its node from the start. again=N: as of create.
void World::create_foreign(const Action &a)
{
	if (calm_)
		return;
	kube::Pod pod;
	pod.meta.ns = a.has("ns") ? a.text("ns") : "others";
	pod.meta.name = a.text("pod");
	if (api_.pod(pod.meta.name)) {
		Action later = a;
		later.with["again"] = std::to_string(a.number("again") - 1);
		if (a.number("again") > 0)
			time_.after(second, [this, later] { create_foreign(later); });
		return;
	}
	claim_devices(pod, a);
	const bool claims = !pod.resource_claims.empty(); // which kube-scheduler gives it, whoever made it
	const std::string kind = claims && a.text("kind") == "named" ? "pod" : a.text("kind"), node = a.text("node");
	if (!api_.nodes().contains(node))
		return;
	pod.meta.uid = "uid" + std::to_string(next_uid_++);
	pod.scheduler_name = kind == "daemon" || kind == "pod" ? "default-scheduler" : "none";
	pod.node_name = kind == "pod" || claims ? "" : node;
	pod.meta.controller_kind = kind == "daemon" ? "DaemonSet" : "";
	pod.phase = "Pending";
	pod.grace_seconds = a.number("grace", 5);
	Program p;
	p.milli_cpu = a.number("mcpu", 100);
	p.memory = a.number("mem");
	p.start_delay = a.number("pull", 500) * ms;
	p.gpus = case_.claims ? 0 : static_cast<int>(std::min<std::int64_t>(a.number("gpu"), case_.gpus));
	p.critical = a.has("critical");
	p.life = a.has("life") ? a.seconds("life") : -1;
	p.exit_code = static_cast<int>(a.number("exit"));
	p.ignores_sigterm = a.has("stubborn");
	p.orphan_grace = pod.grace_seconds * second;
	pod.request.milli_cpu = p.milli_cpu;
	pod.request.memory_bytes = p.memory << 20;
	if (p.gpus)
		pod.request.extended[gpu_resource] = p.gpus;
	const std::string uid = pod.meta.uid;
	kubelet_.report_state(node);
	kubelet_.set_program(uid, p);
	judge_.foreign_created(pod, node, p);
	api_.create(std::move(pod));
	if (kind == "pod" || claims)
		schedule_foreign(a, uid);
}

// A file of that node: another pod than what stood there under this name.
void World::write_static(const Action &a)
{
	StaticPod pod;
	pod.name = a.text("pod");
	pod.node = a.text("node");
	if (calm_ || !api_.nodes().contains(pod.node))
		return;
	pod.uid = "static" + std::to_string(next_uid_++);
	pod.grace = a.number("grace", 5);
	Program &p = pod.program;
	p.milli_cpu = a.number("mcpu", 100);
	p.memory = a.number("mem");
	p.critical = a.has("critical");
	p.start_delay = a.number("pull", 500) * ms;
	p.life = a.has("life") ? a.seconds("life") : -1;
	p.exit_code = static_cast<int>(a.number("exit"));
	p.ignores_sigterm = a.has("stubborn");
	kubelet_.report_state(pod.node);
	judge_.static_pod_written(pod);
	kubelet_.write_file(std::move(pod));
}

bool World::fits_by_the_book(const kube::Pod &pod, const std::string &node) const
{
	const kube::Resources &have = api_.nodes().at(node)->allocatable;
	auto gpus_of = [](const kube::Resources &r) {
		const auto found = r.extended.find(gpu_resource);
		return found == r.extended.end() ? 0 : found->second;
	};
	std::int64_t milli = pod.request.milli_cpu, memory = pod.request.memory_bytes, gpus = gpus_of(pod.request), pods = 1;
	for (const auto &[name, other] : api_.pods())
		if (other->node_name == node && other->phase != "Succeeded" && other->phase != "Failed") {
			milli += other->request.milli_cpu;
			memory += other->request.memory_bytes;
			gpus += gpus_of(other->request);
			pods++;
		}
	const std::int64_t slots = api_.nodes().at(node)->allocatable_pods;
	return milli <= have.milli_cpu && memory <= have.memory_bytes && gpus <= gpus_of(have) && (slots == 0 || pods <= slots);
}

// kube-scheduler, of which only its choice of that one node is played.
void World::schedule_foreign(const Action &a, const std::string &uid)
{
	time_.after(dice_.between("kube-scheduler/" + a.text("pod"), 1 * ms, 2 * second), [this, a, uid] {
		const std::string name = a.text("pod"), node = a.text("node");
		kube::PodPtr pod = api_.pod(name);
		if (!pod || pod->meta.uid != uid || !pod->node_name.empty() || pod->meta.deleting)
			return;
		const kube::Node &there = *api_.nodes().at(node);
		if (api_.down || api_.hung || !there.ready || there.unschedulable || !fits_by_the_book(*pod, node))
			return schedule_foreign(a, uid);
		if (!pod->resource_claims.empty() && !claim_controllers_.allocate(*pod, node))
			return schedule_foreign(a, uid);
		tell(story_, "kube-scheduler: pod ", name, " (", uid, ") is bound to ", node);
		api_.change(name, uid, [&node](kube::Pod &p) { p.node_name = node; });
	});
}

void World::break_watches()
{
	watch_.interrupt(false);
	foreign_watch_.interrupt(false);
	claim_watch_.interrupt(false);
}

} // namespace sk8::sim
