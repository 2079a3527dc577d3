// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Static pods: a kubelet runs what stands in its files, whether or not an API server is there,
// and shows it there as a mirror pod. Whoever deletes the mirror ends nothing: it is made
// again, with another uid. Only the file counts.
#include "test/sim/model_kubelet.h"

#include <algorithm>
#include <utility>

namespace sk8::sim {

using State = Container::State;

static constexpr Micros again = 2 * second; // a kubelet that cannot reach the server
static constexpr const char *mirror_annotation = "kubernetes.io/config.mirror";

static std::string shown_by(const kube::Pod &pod)
{
	auto it = pod.meta.annotations.find(mirror_annotation);
	return it == pod.meta.annotations.end() ? "" : it->second;
}

StaticPod *ModelKubelet::static_pod(const std::string &uid)
{
	auto it = statics_.find(uid);
	return it == statics_.end() ? nullptr : &it->second;
}

bool ModelKubelet::has_file(const std::string &uid) const
{
	auto it = statics_.find(uid);
	return it != statics_.end() && it->second.file;
}

// The uid of its object.
std::string ModelKubelet::shown_as(const Container &c) const
{
	auto it = statics_.find(c.uid);
	return it == statics_.end() ? c.uid : it->second.mirror;
}

void ModelKubelet::sync_static_later(const std::string &uid, Micros delay)
{
	time_.after(delay, [this, uid] { sync_static(uid); });
}

// ---- files ----

void ModelKubelet::write_file(StaticPod pod)
{
	remove_file(pod.node, pod.name); // another content is another pod
	const std::string uid = pod.uid;
	tell(story_, "node ", pod.node, ": file of static pod ", pod.name, " (", uid, ")");
	statics_[uid] = std::move(pod);
	sync_static_later(uid, dice_.between("static/" + uid, 10 * ms, 2 * second));
}

void ModelKubelet::remove_file(const std::string &node, const std::string &name)
{
	for (auto &[uid, s] : statics_) {
		if (!s.file || s.name != name || (!node.empty() && s.node != node))
			continue;
		tell(story_, "node ", s.node, ": the file of static pod ", s.name, " (", uid, ") is gone");
		s.file = false;
		sync_static_later(uid, dice_.between("static/" + uid, 10 * ms, 2 * second));
	}
}

void ModelKubelet::remove_all_files()
{
	std::vector<std::pair<std::string, std::string>> all;
	for (const auto &[uid, s] : statics_)
		if (s.file)
			all.emplace_back(s.node, s.name);
	for (const auto &[node, name] : all)
		remove_file(node, name);
}

// ---- what the kubelet makes of them ----

// The former one of this name must have ended.
bool ModelKubelet::may_start(const StaticPod &pod) const
{
	return std::ranges::none_of(statics_, [&](const auto &other) {
		const Container *c = find(pod.node, other.first);
		return other.first != pod.uid && other.second.node == pod.node && other.second.name == pod.name && c &&
		       c->state != State::ended;
	});
}

void ModelKubelet::start_static(const StaticPod &pod)
{
	const Key key{pod.node, pod.uid};
	Container &c = containers_[key];
	const bool reporting = c.reporting;
	c = {};
	c.reporting = reporting;
	c.pod = pod.name;
	c.uid = pod.uid;
	c.node = pod.node;
	c.program = pod.program;
	c.seen_at = epoch + time_.now() / second;
	if (!admits(c))
		return; // not tried again before the kubelet starts anew
	listener_.container_admitted(c);
	time_.after(c.program.start_delay, [this, key] { start(key); });
}

void ModelKubelet::sync_static(const std::string &uid)
{
	StaticPod &pod = statics_.at(uid);
	if (!powered(pod.node))
		return; // power() looks again
	const Container *c = find(pod.node, uid);
	if (pod.file && !c) {
		if (!may_start(pod))
			return sync_static_later(uid, again);
		start_static(pod);
		c = find(pod.node, uid);
	}
	if (!pod.file && c && c->state != State::ended)
		terminate(containers_.at({pod.node, uid}), pod.grace);
	if (!reachable(pod.node))
		return sync_static_later(uid, again);
	const bool over = !c || c->state == State::ended;
	kube::PodPtr shown = api_.pod(pod.name);
	const bool its_own = shown && shown_by(*shown) == uid && shown->node_name == pod.node;
	if (over && pod.file && !(its_own && shown->meta.deleting))
		return; // it ended by itself, and its object says so
	if (its_own && !over && !shown->meta.deleting) {
		pod.mirror = shown->meta.uid; // perhaps of a backup
		return plan_report(containers_.at({pod.node, uid}));
	}
	if (its_own)
		api_.remove(pod.name, shown->meta.uid, 0);
	if (!over && pod.file) // what is to end is not shown any more
		show(pod);
}

void ModelKubelet::show(StaticPod &pod)
{
	if (api_.pod(pod.name)) // of a former one, or somebody keeps it
		return sync_static_later(pod.uid, again);
	kube::Pod mirror;
	mirror.meta.ns = "others";
	mirror.meta.name = pod.name;
	mirror.meta.uid = pod.mirror = "mirror" + std::to_string(mirrors_.size() + 1);
	mirrors_.insert(pod.mirror);
	mirror.meta.controller_kind = "Node";
	mirror.meta.annotations[mirror_annotation] = pod.uid;
	mirror.scheduler_name = "default-scheduler";
	mirror.node_name = pod.node;
	mirror.phase = "Pending";
	mirror.grace_seconds = pod.grace;
	mirror.request.milli_cpu = pod.program.milli();
	mirror.request.memory_bytes = pod.program.memory << 20;
	set_program(mirror.meta.uid, pod.program);
	listener_.mirror_made(mirror, pod.uid);
	api_.create(std::move(mirror));
	plan_report(containers_.at({pod.node, pod.uid}));
}

// True: the pod that was heard of is only a mirror.
bool ModelKubelet::look_at_mirror(const std::string &node, const std::string &name, const std::string &uid)
{
	for (const auto &[id, s] : statics_)
		if (s.node == node && s.name == name)
			sync_static(id);
	return statics_.contains(uid) || mirrors_.contains(uid);
}

// Its last report is out, or it went without one.
void ModelKubelet::end_of_static(const StaticPod &pod)
{
	if (!pod.file)
		sync_static_later(pod.uid, dice_.between("delete/" + pod.name, 1 * ms, 50 * ms));
}

bool ModelKubelet::goes_unreported(const StaticPod &pod)
{
	return !pod.file && dice_.chance("unreported/" + pod.uid, 300);
}

// Its node is on again.
void ModelKubelet::restart_statics(const std::string &node)
{
	for (const auto &[uid, s] : statics_) {
		if (s.node != node)
			continue;
		const Container *c = find(node, uid);
		if (s.file && c && c->state == State::ended && !c->by_itself)
			start_static(s);
		sync_static_later(uid, second);
	}
}

} // namespace sk8::sim
