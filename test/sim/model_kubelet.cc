// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/model_kubelet.h"

#include <algorithm>

#include "test/sim/config.h"
#include "test/sim/resizing.h"

namespace sk8::sim {

using State = Container::State;

static constexpr Micros again = 2 * second; // a kubelet that cannot reach the server

const Container *ModelKubelet::find(const std::string &node, const std::string &uid) const
{
	auto it = containers_.find({node, uid});
	return it == containers_.end() ? nullptr : &it->second;
}

bool ModelKubelet::runs_anywhere(const std::string &uid) const
{
	return std::any_of(containers_.begin(), containers_.end(), [&](const auto &c) {
		return c.first.second == uid && c.second.state == State::running;
	});
}

// ---- what it hears ----

void ModelKubelet::pod_event(const ApiEvent &event)
{
	const kube::Pod &pod = *event.pod;
	if (!pod.node_name.empty())
		notice(pod.node_name, pod.meta.name, pod.meta.uid,
		       dice_.between("kubelet/" + pod.meta.name, 1 * ms, 200 * ms));
}

void ModelKubelet::restored()
{
	// every kubelet lists again
	for (const auto &[key, c] : containers_)
		notice(c.node, c.pod, c.uid, second);
	for (const auto &[name, pod] : api_.pods())
		if (!pod->node_name.empty())
			notice(pod->node_name, name, pod->meta.uid, second);
}

void ModelKubelet::notice(const std::string &node, const std::string &name, const std::string &uid, Micros delay)
{
	time_.after(delay, [this, node, name, uid] { look(node, name, uid); });
}

void ModelKubelet::look(const std::string &node, const std::string &name, const std::string &uid)
{
	if (!powered(node))
		return; // power() looks again
	if (!reachable(node))
		return notice(node, name, uid, again);
	if (look_at_mirror(node, name, uid))
		return;
	kube::PodPtr pod = api_.pod(name);
	const bool mine = pod && pod->meta.uid == uid && pod->node_name == node;
	auto it = containers_.find({node, uid});
	if (it == containers_.end()) {
		if (mine)
			first_seen(node, *pod);
		return;
	}
	Container &c = it->second;
	if (!mine)
		return terminate(c, c.program.orphan_grace / second); // its object vanished: nothing is reported any more
	if (pod->meta.deleting)
		terminate(c, pod->meta.deletion_grace_seconds);
	else if (pod->phase == "Succeeded" || pod->phase == "Failed")
		terminate(c, pod->grace_seconds); // somebody else said so
	else
		resize(c, *pod);
	if (c.state == State::ended)
		plan_report(c);
}

// What was admitted and has not ended counts, and nothing else: it knows of no job of Slurm. In the order of fitsRequest() of the
// scheduler's plugin noderesources, which kubelets ask, too.
ModelKubelet::Lacks ModelKubelet::lacks_beside(const std::string &node, const Program &program,
					       const std::function<bool(const Container &)> &counts) const
{
	const kube::Resources &have = api_.nodes().at(node)->allocatable;
	std::int64_t milli = program.milli(), memory = program.memory, gpus = program.gpus, pods = 1;
	for (const auto &[key, c] : containers_)
		if (c.node == node && c.state != State::ended && counts(c)) {
			milli += c.program.milli();
			memory += c.program.memory;
			gpus += c.program.gpus;
			pods++;
		}
	const std::int64_t slots = api_.nodes().at(node)->allocatable_pods;
	const auto devices = have.extended.find(gpu_resource);
	Lacks out;
	if (slots > 0 && pods > slots)
		out.emplace_back("pods");
	if (milli > have.milli_cpu)
		out.emplace_back("cpu");
	if (memory > have.memory_bytes >> 20)
		out.emplace_back("memory");
	if (gpus > (devices == have.extended.end() ? 0 : devices->second))
		out.emplace_back(gpu_resource);
	return out;
}

ModelKubelet::Lacks ModelKubelet::lacks(const std::string &node, const Program &program, const Container *itself) const
{
	return lacks_beside(node, program, [itself](const Container &c) { return &c != itself; });
}

// As pkg/kubelet/preemption: others are ended for a critical pod, if that makes enough room, and no more of them than it
// takes. The real one takes those of less quality of service first, and of these as few as will do; this one takes any.
void ModelKubelet::make_room(const Container &c)
{
	if (!lacks_beside(c.node, c.program, [&c](const Container &other) { return &other != &c && other.program.critical; }).empty())
		return;
	for (auto &[key, other] : containers_) {
		if (lacks(c.node, c.program, &c).empty())
			return;
		if (other.node != c.node || &other == &c || other.program.critical || other.state == State::ended)
			continue;
		listener_.container_preempted(other);
		evict(other.node, other.uid, "Preempting");
	}
}

// If not, it ends: its reason is the first resource that it lacks, and no more of them (lifecycle/predicate.go).
bool ModelKubelet::admits(Container &c)
{
	if (c.program.critical && !lacks(c.node, c.program, &c).empty())
		make_room(c);
	const Lacks missing = lacks(c.node, c.program, &c);
	if (!missing.empty()) {
		c.program.refused = true;
		listener_.container_refused(c, missing);
	}
	if (c.program.refused)
		refuse(c, "OutOf" + (missing.empty() ? "cpu" : missing.front()));
	return !c.program.refused;
}

// One that has started anew a moment ago, which happens at any time, says so a few seconds late (mergePodStatus() in
// status_manager.go).
void ModelKubelet::refuse(Container &c, const std::string &reason)
{
	const Key key{c.node, c.uid};
	c.tells_late = dice_.chance("tells late/" + c.pod, 200);
	if (c.tells_late)
		time_.after(dice_.between("tells late/" + c.pod, 500 * ms, 5 * second), [this, key] {
			Container &mine = containers_.at(key);
			mine.tells_late = false;
			plan_report(mine);
		});
	tell(story_, "kubelet ", c.node, ": ", c.pod, " (", c.uid, ") is refused: ", reason, c.tells_late ? ", which is told late" : "");
	end(c, 0, reason, false);
}

void ModelKubelet::first_seen(const std::string &node, const kube::Pod &pod)
{
	const Key key{node, pod.meta.uid};
	Container &c = containers_[key];
	c.pod = pod.meta.name;
	c.uid = pod.meta.uid;
	c.node = node;
	c.program = programs_[pod.meta.uid];
	c.seen_at = epoch + time_.now() / second;
	for (const auto &wanted : pod.resource_claims)
		c.claims.emplace_back(pod.meta.ns, wanted.claim);
	if (pod.meta.deleting || pod.phase == "Succeeded" || pod.phase == "Failed")
		return end(c, 0, "", false); // before it was ever started
	if (is_resizable(pod)) {
		const Resizing r = resizing_of(pod);
		c.generation = r.generation;
		c.program.milli_cpu = r.milli_cpu;
		c.program.memory = r.memory_bytes >> 20;
	}
	if (!admits(c))
		return;
	give_devices(c);
	listener_.container_admitted(c);
	plan_report(c);
	time_.after(c.program.start_delay, [this, key] { start(key); });
}

// As pkg/kubelet/allocation: what a changed spec requests is set aside if it fits beside what other pods have, and
// else put off until there is more room.
void ModelKubelet::resize(Container &c, const kube::Pod &pod)
{
	if (!is_resizable(pod) || c.state == State::ended)
		return;
	const Resizing r = resizing_of(pod);
	if (r.generation == c.generation && !c.put_off)
		return;
	Program wanted = c.program;
	wanted.milli_cpu = r.milli_cpu;
	wanted.memory = r.memory_bytes >> 20;
	const bool put_off = !lacks(c.node, wanted, &c).empty(), changes = wanted.milli() != c.program.milli() || wanted.memory != c.program.memory;
	if (r.generation == c.generation && put_off)
		return;
	c.generation = r.generation;
	c.put_off = put_off;
	tell(story_, "kubelet ", c.node, ": ", c.pod, " (", c.uid, ") has ", std::to_string(c.program.milli()), " mCPU, asked ",
	     std::to_string(wanted.milli_cpu), put_off ? ", put off" : "");
	plan_report(c);
	if (put_off || !changes)
		return;
	c.program = wanted;
	listener_.container_resized(c);
	retry_resizes(c.node);
}

// There may be more room than before.
void ModelKubelet::retry_resizes(const std::string &node)
{
	for (const auto &[key, c] : containers_)
		if (c.node == node && c.put_off && c.state != State::ended)
			notice(node, c.pod, c.uid, dice_.between("retry/" + c.pod, 1 * ms, 3 * second));
}

// ---- containers ----

void ModelKubelet::start(const Key &key)
{
	Container &c = containers_.at(key);
	if (c.state != State::seen)
		return;
	if (!prepare_claims(c)) // its syncFrequency is a minute
		return time_.after(dice_.between("prepare/" + c.pod, second, 60 * second), [this, key] { start(key); });
	c.state = State::running;
	c.started_ever = true;
	tell(story_, "kubelet ", c.node, ": ", c.pod, " (", c.uid, ") runs");
	listener_.container_started(c);
	plan_report(c);
	if (c.program.life >= 0)
		time_.after(c.program.life, [this, key] {
			Container &mine = containers_.at(key);
			if (mine.state != State::running)
				return;
			if (mine.program.out_of_memory)
				end(mine, 137, "OOMKilled", true);
			else
				end(mine, mine.program.exit_code, mine.program.exit_code ? "Error" : "Completed", true);
		});
}

void ModelKubelet::terminate(Container &c, std::int64_t grace)
{
	if (c.state == State::seen)
		return end(c, 0, "", false);
	if (c.state == State::ended)
		return;
	const Key key{c.node, c.uid};
	const Micros kill = time_.now() + grace * second;
	if (!c.told_to_end && !c.program.ignores_sigterm)
		time_.after(dice_.between("sigterm/" + c.pod, 1 * ms, 300 * ms), [this, key] {
			Container &mine = containers_.at(key);
			if (mine.state == State::running)
				end(mine, 143, "Error", false);
		});
	c.told_to_end = true;
	if (c.kill_at >= 0 && c.kill_at <= kill)
		return;
	c.kill_at = kill;
	time_.after(grace * second, [this, key] {
		Container &mine = containers_.at(key);
		if (mine.state == State::running && mine.kill_at <= time_.now())
			end(mine, 137, "Error", false);
	});
}

bool ModelKubelet::evict(const std::string &node, const std::string &uid, const std::string &reason)
{
	auto it = containers_.find({node, uid});
	if (it == containers_.end() || it->second.state == State::ended || !powered(node))
		return false;
	it->second.evicted = true;
	end(it->second, 137, reason, false);
	return true;
}

void ModelKubelet::end(Container &c, int exit_code, const std::string &reason, bool by_itself)
{
	c.state = State::ended;
	c.exit_code = exit_code;
	c.reason = reason;
	c.by_itself = by_itself;
	c.ended_at = time_.now();
	tell(story_, "kubelet ", c.node, ": ", c.pod, " (", c.uid, ") ends: ", std::to_string(exit_code), " ", reason);
	listener_.container_ended(c);
	plan_report(c);
	retry_resizes(c.node);
}

// ---- reports ----

void ModelKubelet::plan_report(Container &c)
{
	if (c.reporting)
		return;
	c.reporting = true;
	const Micros late = lateness ? dice_.between("late/" + c.pod, 0, lateness) : 0;
	const Key key{c.node, c.uid};
	time_.after(dice_.between("report/" + c.pod, 1 * ms, 100 * ms) + late, [this, key] { report(key); });
}

void ModelKubelet::write_status(kube::Pod &pod, const Container &c) const
{
	pod.started_at = c.seen_at;
	if (c.state == State::ended && c.program.refused && c.tells_late)
		return; // and is_admitted() is not true
	kube::ContainerStatus status;
	status.name = "main";
	status.started_ever = c.started_ever;
	status.reason = c.reason;
	switch (c.state) {
	case State::seen:
		status.state = kube::ContainerStatus::State::waiting;
		pod.phase = "Pending";
		break;
	case State::running:
		status.state = kube::ContainerStatus::State::running;
		pod.phase = "Running";
		break;
	case State::ended:
		status.state = c.started_ever ? kube::ContainerStatus::State::terminated
					      : kube::ContainerStatus::State::waiting;
		status.exit_code = c.exit_code;
		status.finished_at = epoch + c.ended_at / second;
		pod.phase = c.started_ever && c.exit_code == 0 ? "Succeeded" : "Failed";
		if (!c.started_ever || c.evicted)
			pod.reason = c.reason;
		if (c.evicted)
			pod.phase = "Failed";
		if (c.evicted && (c.reason == "Evicted" || c.reason == "Preempting")) // else it does not admit it again
			pod.disruption = kube::Disruption::kubelet;
		break;
	}
	pod.admitted = c.state != State::ended;
	if (c.state == State::ended && c.program.refused)
		pod.containers.clear();
	else
		pod.containers = {status};
	if (is_resizable(pod)) {
		Resizing r = resizing_of(pod);
		r.seen = c.generation;
		r.has_milli_cpu = c.program.milli();
		r.has_memory_bytes = std::max<std::int64_t>(c.program.memory << 20, 1); // the least that it is asked for
		r.put_off = c.put_off;
		set_resizing(pod, r);
	}
}

// It has a final phase, and not all that its kubelet tells in the end.
static bool wants_last_word(const kube::Pod &pod)
{
	using enum kube::ContainerStatus::State;
	if (pod.started_at == 0)
		return true;
	if (pod.garbage_collected)
		return pod.containers.empty() || pod.containers[0].state != terminated;
	return !pod.containers.empty() && pod.containers[0].state == running;
}

void ModelKubelet::report(const Key &key)
{
	Container &c = containers_.at(key);
	c.reporting = false;
	if (!powered(c.node))
		return; // power() reports
	if (!reachable(c.node)) {
		c.reporting = true;
		time_.after(again, [this, key] { report(key); });
		return;
	}
	const StaticPod *from_file = static_pod(c.uid);
	if (from_file && c.state == State::ended && goes_unreported(*from_file))
		return end_of_static(*from_file);
	const std::string uid = shown_as(c);
	kube::PodPtr pod = api_.pod(c.pod);
	if (!pod || pod->meta.uid != uid || pod->node_name != c.node)
		return;
	// Of a static pod the kubelet's word counts, whatever its mirror said before (needsReconcile() in its status_manager.go).
	if (from_file || (pod->phase != "Succeeded" && pod->phase != "Failed")) {
		api_.change(c.pod, uid, [&](kube::Pod &p) { write_status(p, c); });
	} else if (c.state == State::ended && wants_last_word(*pod)) {
		// Somebody else set the final phase: the kubelet's word comes all the same, in the
		// end also for what never started (TerminatePod() in its status_manager.go).
		const std::string phase = pod->phase;
		api_.change(c.pod, uid, [&](kube::Pod &p) {
			write_status(p, c);
			p.phase = phase;
			if (!p.garbage_collected)
				return;
			p.containers.resize(1);
			p.containers[0].state = kube::ContainerStatus::State::terminated;
			if (!c.started_ever) {
				p.containers[0].reason = "ContainerStatusUnknown";
				p.containers[0].exit_code = 137;
			}
		});
	}
	if (c.state == State::ended && from_file)
		end_of_static(*from_file);
	else if (c.state == State::ended)
		time_.after(dice_.between("delete/" + c.pod, 1 * ms, 50 * ms), [this, key] { last_delete(key); });
}

// The kubelet's own, when all is cleaned up: grace 0, which overwrites the time.
void ModelKubelet::last_delete(const Key &key)
{
	const Container &c = containers_.at(key);
	if (!powered(c.node))
		return;
	if (!reachable(c.node)) {
		time_.after(again, [this, key] { last_delete(key); });
		return;
	}
	kube::PodPtr pod = api_.pod(c.pod);
	if (pod && pod->meta.uid == c.uid && pod->node_name == c.node && pod->meta.deleting)
		api_.remove(c.pod, c.uid, 0);
}

// ---- nodes ----

// The node lifecycle controller: what was not heard of for so long is not ready.
void ModelKubelet::plan_readiness(const std::string &name)
{
	const bool heard = !off_.contains(name) && !cut_.contains(name);
	time_.after(heard ? second : 40 * second, [this, name, heard] {
		if (!api_.nodes().contains(name))
			return; // of a shrunk case: it has fewer nodes
		kube::Node node = *api_.nodes().at(name);
		if (heard != (!off_.contains(name) && !cut_.contains(name)) || node.ready == heard)
			return;
		node.ready = heard;
		if (heard)
			node.heartbeat = epoch + time_.now() / second;
		api_.set_node(std::move(node));
	});
}

void ModelKubelet::report_state(const std::string &node)
{
	if (reporting_.insert(node).second)
		plan_heartbeat(node);
}

void ModelKubelet::plan_heartbeat(const std::string &name)
{
	time_.after(dice_.between("heartbeat/" + name, 10 * second, 40 * second), [this, name] {
		plan_heartbeat(name);
		if (!reachable(name) || !api_.nodes().contains(name))
			return;
		kube::Node node = *api_.nodes().at(name);
		node.ready = true;
		node.heartbeat = epoch + time_.now() / second;
		api_.set_node(std::move(node));
	});
}

void ModelKubelet::power(const std::string &node, bool on)
{
	if (!on) {
		tell(story_, "node ", node, " dies");
		off_.insert(node);
		plan_readiness(node);
		for (auto &[key, c] : containers_)
			if (c.node == node && c.state != State::ended)
				end(c, 255, "Unknown", false);
		return;
	}
	tell(story_, "node ", node, " is back");
	off_.erase(node);
	plan_readiness(node);
	restart_statics(node);
	for (auto &[key, c] : containers_) {
		if (c.node != node)
			continue;
		c.reporting = false;
		plan_report(c);
	}
	for (const auto &[name, pod] : api_.pods())
		if (pod->node_name == node)
			notice(node, name, pod->meta.uid, second);
}

void ModelKubelet::connect(const std::string &node, bool connected)
{
	if (connected)
		cut_.erase(node);
	else
		cut_.insert(node);
	plan_readiness(node);
}

} // namespace sk8::sim
