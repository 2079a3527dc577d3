// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The verbs of a case: what people and bad luck can do.
#include <algorithm>
#include <cstring>

#include "test/sim/resizing.h"
#include "test/sim/world.h"

namespace sk8::sim {

kube::PodPtr World::pod_named(const Action &a) const
{
	return api_.pod(a.text("pod"));
}

SlurmJob *World::job_named(const Action &a)
{
	return slurm_.up() ? slurm_.live_job(a.has("pod") ? a.text("pod") : a.text("job")) : nullptr;
}

struct Verbs {
	using Function = void (*)(World &, const Action &);
	struct Row {
		const char *verb;
		Function function;
		bool trouble = false; // the engine cannot be expected to do something at once
	};
	static const Row table[];

	// ---- Kubernetes' users ----

	static void foreign(World &w, const Action &a) { w.create_foreign(a); }

	static void static_pod(World &w, const Action &a) { w.write_static(a); }
	static void unstatic(World &w, const Action &a) { w.kubelet_.remove_file("", a.text("pod")); }

	// high=1: of a partition that preempts others, high=2: of one that preempts those, too; qos=patient
	static void wish_tier(kube::Pod &pod, const Action &a)
	{
		static const char *const partitions[] = {"", "high", "top"};
		const auto tier = static_cast<std::size_t>(std::clamp<std::int64_t>(a.number("high"), 0, 2));
		if (tier > 0)
			pod.meta.annotations["slurm-k8s.io/partition"] = partitions[tier];
		if (a.has("qos"))
			pod.meta.annotations["slurm-k8s.io/qos"] = a.text("qos");
	}
	// again=N: tries so often, once a second, as a controller whose pod of this name must go first
	static void create(World &w, const Action &a)
	{
		if (w.calm_)
			return;
		kube::Pod pod;
		pod.meta.ns = a.has("ns") ? a.text("ns") : "team-a";
		pod.meta.name = a.text("pod");
		if (w.api_.pod(pod.meta.name)) {
			Action later = a;
			later.with["again"] = std::to_string(a.number("again") - 1);
			if (a.number("again") > 0)
				w.time_.after(second, [&w, later] { create(w, later); });
			return;
		}
		pod.meta.uid = "uid" + std::to_string(w.next_uid_++);
		pod.scheduler_name = "slurm";
		pod.phase = "Pending";
		pod.grace_seconds = a.number("grace", 5);
		if (!a.has("bare"))
			pod.meta.controller_kind = "ReplicaSet";
		const std::int64_t cpu = std::min<std::int64_t>(a.number("cpu", 1), w.case_.cores);
		const std::int64_t mem = std::min(a.number("mem", 100), w.case_.memory);
		pod.request.milli_cpu = cpu * 1000;
		pod.request.memory_bytes = mem << 20;
		const auto gpus = w.case_.claims ? 0 : static_cast<int>(std::min<std::int64_t>(a.number("gpu"), w.case_.gpus));
		w.claim_devices(pod, a);
		if (gpus)
			pod.request.extended[gpu_resource] = gpus;
		pod.has_cpu_request = pod.has_memory_request = true;
		wish_tier(pod, a);
		Program p;
		p.start_delay = a.number("pull", 500) * ms;
		p.life = a.has("life") ? a.seconds("life") : -1;
		p.exit_code = static_cast<int>(a.number("exit"));
		p.out_of_memory = a.has("oom");
		p.ignores_sigterm = a.has("stubborn");
		p.refused = a.has("refused");
		p.cores = static_cast<int>(cpu);
		p.memory = mem;
		p.gpus = gpus;
		w.kubelet_.set_program(pod.meta.uid, p);
		w.judge_.created(pod, p);
		w.api_.create(std::move(pod));
	}
	static void remove(World &w, const Action &a)
	{
		kube::PodPtr pod = w.pod_named(a);
		if (!pod)
			return;
		w.judge_.deleted_by_people(pod->meta.uid);
		w.api_.remove(pod->meta.name, pod->meta.uid, a.has("force") ? 0 : a.number("grace", -1));
	}
	static void annotate(World &w, const Action &a)
	{
		if (kube::PodPtr pod = w.pod_named(a))
			w.api_.change(pod->meta.name, pod->meta.uid, [](kube::Pod &p) { p.meta.annotations["x/y"] += "z"; });
	}
	static void finalizer(World &w, const Action &a)
	{
		kube::PodPtr pod = w.pod_named(a);
		const std::string name = "people.io/keep";
		const bool on = a.number("on", 1) != 0;
		if (!pod)
			return;
		w.judge_.finalizer_by_people(pod->meta.uid, name, false);
		if (w.api_.patch_finalizer(pod->meta.name, pod->meta.uid, name, on) == 200 && on)
			w.judge_.finalizer_by_people(pod->meta.uid, name, true);
	}
	// A garbage collector declares the pod to have failed, whatever runs.
	static void gc(World &w, const Action &a)
	{
		kube::PodPtr pod = w.pod_named(a);
		if (!pod || pod->node_name.empty() || pod->phase == "Succeeded" || pod->phase == "Failed")
			return;
		w.judge_.phase_by_people(pod->meta.uid);
		w.judge_.deleted_by_people(pod->meta.uid);
		w.api_.change(pod->meta.name, pod->meta.uid, [](kube::Pod &p) {
			p.phase = "Failed";
			p.admitted = false;
			p.garbage_collected = true;
		});
		w.api_.remove(pod->meta.name, pod->meta.uid, -1);
	}
	// Its container's requests, in place: cpu=N or mcpu=N, mem=N. Of a static pod that is refused.
	static void resize(World &w, const Action &a)
	{
		kube::PodPtr pod = w.pod_named(a);
		if (w.calm_ || !pod || w.judge_.is_reservation(pod->meta.uid) || pod->phase == "Succeeded" || pod->phase == "Failed")
			return;
		const std::int64_t milli = a.number("mcpu", 1000 * std::min<std::int64_t>(a.number("cpu", 1), w.case_.cores));
		const std::int64_t memory = std::min(a.number("mem", 100), w.case_.memory) << 20;
		w.judge_.resized_by_people(pod->meta.uid);
		w.api_.change(pod->meta.name, pod->meta.uid, [&](kube::Pod &p) { ask_for(p, milli, memory); });
	}
	static void driver(World &w, const Action &a) { w.take_driver(a); }
	static void taint(World &w, const Action &a) { w.taint_device(a); }
	static void cordon(World &w, const Action &a) { w.cordon(a.text("node"), a.number("on", 1) != 0); }

	// ---- Slurm's users and administrators ----

	static void batch(World &w, const Action &a)
	{
		if (!w.slurm_.up())
			return;
		SlurmJob job;
		job.name = a.text("job");
		job.cpus = static_cast<std::uint32_t>(a.number("cpu", 1));
		job.memory_mb = static_cast<std::uint64_t>(a.number("mem", 100));
		job.gpus = static_cast<std::uint32_t>(a.number("gpu"));
		job.life = a.seconds("life", 5);
		job.high = static_cast<int>(a.number("high"));
		job.qos = a.text("qos");
		job.requeues = a.has("requeues");
		job.srun = a.has("srun");
		w.slurm_.sbatch(std::move(job));
	}
	static void end(World &w, const Action &a)
	{
		static constexpr struct {
			const char *how;
			sk8_job_state state;
			std::uint32_t by;
		} ways[] = {{"cancel", SK8_JOB_CANCELLED, 1000}, {"timeout", SK8_JOB_TIMEOUT, SK8_NO_UID},
			    {"nodefail-job", SK8_JOB_NODE_FAIL, SK8_NO_UID}, {"preempt", SK8_JOB_PREEMPTED, 0}};
		SlurmJob *job = w.job_named(a);
		if (job && a.verb == "preempt" && job->running())
			return w.slurm_.preempt_by_hand(*job, a.number("grace"));
		for (const auto &way : ways)
			if (job && a.verb == way.how)
				return w.slurm_.finish(*job, way.state, 0, way.by);
	}
	static void requeue(World &w, const Action &a)
	{
		if (SlurmJob *job = w.job_named(a))
			w.slurm_.requeue(*job);
	}
	static void take(World &w, const Action &a) { w.take_reservation(a); }
	static void impostor(World &w, const Action &a) { w.create_impostor(a); }
	static void priority(World &w, const Action &a)
	{
		SlurmJob *job = w.job_named(a);
		if (!job || !job->pending())
			return;
		job->priority = static_cast<std::uint32_t>(a.number("to", 0));
		tell(w.story_, "scontrol: job ", std::to_string(job->id), " priority ", std::to_string(job->priority));
		w.judge_.priority_by_people(*job);
		w.slurm_.updated();
	}
	static void exclude(World &w, const Action &a)
	{
		SlurmJob *job = w.job_named(a);
		if (!job || !job->pending() || job->excluded == a.text("nodes"))
			return; // what we have set already cannot be told from our own
		job->excluded = a.text("nodes");
		tell(w.story_, "scontrol: job ", std::to_string(job->id), " excludes ", job->excluded);
		w.judge_.excluded_by_people(*job);
		w.slurm_.updated();
	}
	static void drain(World &w, const Action &a) { w.drain(a.text("node"), a.has("reason") ? a.text("reason") : "disk"); }
	static void down(World &w, const Action &a) { w.set_down(a.text("node"), a.has("reason") ? a.text("reason") : "board"); }
	static void undrain(World &w, const Action &a) { w.resume(a.text("node")); }
	static void reconfigure(World &w, const Action &) { w.reconfigure(); }
	static void second_job(World &w, const Action &a) { w.second_job(a); }
	static void config(World &w, const Action &a) { w.change_config(a); }

	// for=N: looks so long, once a second, until it is true and taken; then=N: slurmctld
	// dies at the N-th effect after it
	static void release(World &w, const Action &a)
	{
		if (w.calm_)
			return;
		for (const auto &hold : w.process_ ? w.process_->ledger().holds : std::vector<core::Hold>()) {
			if (hold.key.name != a.text("pod") || !w.say_gone(hold, a.has("force")))
				continue;
			if (a.has("then"))
				w.process_->die_after(static_cast<int>(a.number("then")));
			return;
		}
		Action later = a;
		later.with["for"] = std::to_string(a.number("for") - 1);
		if (a.number("for") > 0)
			w.time_.after(second, [&w, later] { release(w, later); });
	}

	// ---- faults of Slurm's side ----

	static void crash(World &w, const Action &a)
	{
		w.down_ = a.number("down", 1000) * ms;
		w.forget_ = a.has("forget");
		if (w.process_)
			w.process_->die_after(static_cast<int>(a.number("after")));
	}
	static void shutdown(World &w, const Action &a)
	{
		if (!w.process_)
			return;
		w.down_ = a.number("down", 1000) * ms;
		w.slurm_.shut_down();
		w.crash();
	}
	static void locks(World &w, const Action &a)
	{
		auto set = [&w](Micros delay) {
			w.locks_ = delay;
			if (w.process_)
				w.process_->lock_delay = delay;
		};
		set(a.number("delay", 3000) * ms);
		w.until(a.seconds("for", 10), a, [set] { set(0); });
	}
	static void busy(World &w, const Action &a)
	{
		w.slurm_.busy = static_cast<int>(a.number("rate", 500));
		w.until(a.seconds("for", 10), a, [&w] { w.slurm_.busy = 0; });
	}
	static void diskfull(World &w, const Action &a)
	{
		w.disk_.full = true;
		w.until(a.seconds("for", 10), a, [&w] {
			w.disk_.full = false;
			w.disk_full_until_ = w.time_.now();
		});
	}
	static void clock(World &w, const Action &a) { w.slurm_.clock_step += a.number("step"); }

	// ---- faults of Kubernetes' side ----

	static void set_for(World &w, const Action &a, bool ModelApi::*what)
	{
		w.api_.*what = true;
		w.until(a.seconds("for", 5), a, [&w, what] { w.api_.*what = false; });
	}
	static void apidown(World &w, const Action &a)
	{
		w.break_watches();
		set_for(w, a, &ModelApi::down);
	}
	static void apihang(World &w, const Action &a)
	{
		w.break_watches();
		set_for(w, a, &ModelApi::hung);
	}
	static void forbid(World &w, const Action &a) { set_for(w, a, &ModelApi::forbids); }
	static void faults(World &w, const Action &a)
	{
		auto set = [&w](int rate) {
			w.faults_ = rate;
			if (w.process_)
				w.process_->set_faults(rate);
		};
		set(static_cast<int>(a.number("rate", 200)));
		w.until(a.seconds("for", 10), a, [set, &w] { set(w.case_.faults); });
	}
	static void backup(World &w, const Action &) { w.api_.backup(); }
	static void restore(World &w, const Action &)
	{
		w.api_.restore();
		w.judge_.etcd_restored();
	}
	static void watch(World &w, const Action &a)
	{
		if (a.text("of") == "claims")
			return w.watch_claims(a);
		if (a.has("lost"))
			w.api_.compact();
		PodWatch &watch = w.watch_of(a);
		if (a.has("break"))
			watch.interrupt(a.has("lost"));
		watch.lateness = a.number("late") * ms;
		watch.list_lateness = a.number("list") * ms;
		watch.twice = static_cast<int>(a.number("twice"));
		watch.reorders = a.has("reorders");
		w.until(a.seconds("for", 10), a, [&watch] { watch.usual(); });
	}

	// ---- nodes ----

	static void nodefail(World &w, const Action &a)
	{
		const std::string node = a.text("node");
		if (!w.kubelet_.powered(node) || !w.slurm_.select().nodes.contains(node))
			return;
		w.judge_.nodes_troubled();
		w.slurm_.node_dies(node);
		w.kubelet_.power(node, false);
		w.until(a.seconds("for", 20), a, [&w, node] {
			if (w.judge_.is_gone(node))
				return;
			w.kubelet_.power(node, true);
			w.slurm_.node_returns(node);
		});
	}
	// It never comes back.
	static void nodegone(World &w, const Action &a)
	{
		const std::string node = a.text("node");
		if (w.judge_.is_gone(node) || !w.slurm_.select().nodes.contains(node))
			return;
		w.judge_.node_is_gone(node);
		if (!w.kubelet_.powered(node))
			return;
		w.slurm_.node_dies(node);
		w.kubelet_.power(node, false);
	}
	static void nodedelete(World &w, const Action &a) { w.delete_node(a.text("node"), a.seconds("for", 60), a); }
	static void slurm_flag(World &w, const Action &a)
	{
		w.flag_node(a.text("node"), a.verb == "fail" ? &SelectNode::fail : &SelectNode::maint, a.seconds("for", 20), a);
	}
	static void condition(World &w, const Action &a) { w.set_condition(a.text("node"), a.seconds("for", 20), a); }
	static void netcut(World &w, const Action &a)
	{
		w.judge_.nodes_troubled();
		w.kubelet_.connect(a.text("node"), false);
		w.until(a.seconds("for", 10), a, [&w, node = a.text("node")] { w.kubelet_.connect(node, true); });
	}
	static void kubelate(World &w, const Action &a)
	{
		w.judge_.nodes_troubled();
		w.kubelet_.lateness = a.number("late", 5000) * ms;
		w.until(a.seconds("for", 10), a, [&w] { w.kubelet_.lateness = 0; });
	}
	static void agentlate(World &w, const Action &a)
	{
		w.kubelet_.agent_lateness = a.number("late", 5000) * ms;
		w.until(a.seconds("for", 10), a, [&w] { w.kubelet_.agent_lateness = 0; });
	}
};

const Verbs::Row Verbs::table[] = {
	{"create", create},
	{"foreign", foreign},
	{"static", static_pod},
	{"unstatic", unstatic},
	{"delete", remove},
	{"annotate", annotate},
	{"finalizer", finalizer},
	{"gc", gc},
	{"resize", resize},
	{"driver", driver},
	{"taint", taint},
	{"cordon", cordon},
	{"drain", drain},
	{"down", down},
	{"undrain", undrain},
	{"batch", batch},
	{"cancel", end},
	{"timeout", end},
	{"nodefail-job", end},
	{"preempt", end},
	{"requeue", requeue},
	{"take", take},
	{"impostor", impostor},
	{"priority", priority},
	{"exclude", exclude},
	{"reconfigure", reconfigure},
	{"second", second_job},
	{"config", config, true},
	{"release", release},
	{"crash", crash, true},
	{"shutdown", shutdown, true},
	{"locks", locks},
	{"busy", busy},
	{"diskfull", diskfull},
	{"clock", clock},
	{"apidown", apidown, true},
	{"apihang", apihang, true},
	{"forbid", forbid, true},
	{"faults", faults, true},
	{"backup", backup},
	{"restore", restore, true},
	{"watch", watch, true},
	{"nodefail", nodefail},
	{"nodegone", nodegone},
	{"nodedelete", nodedelete},
	{"condition", condition},
	{"fail", slurm_flag},
	{"maint", slurm_flag},
	{"netcut", netcut},
	{"kubelate", kubelate},
	{"agentlate", agentlate},
};

void World::act(const Action &a)
{
	tell(story_, "** ", a.line());
	for (const auto &row : Verbs::table) {
		if (a.verb != row.verb)
			continue;
		if (row.trouble)
			judge_.trouble();
		return row.function(*this, a);
	}
	judge_.violation("the case has no verb \"" + a.verb + "\"");
}

} // namespace sk8::sim
