// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/model_api.h"

#include <algorithm>

#include "lib/core/names.h"
#include "lib/core/pod_end.h"

namespace sk8::sim {

kube::PodPtr ModelApi::pod(const std::string &name) const
{
	auto it = pods_.find(name);
	return it == pods_.end() ? nullptr : it->second;
}

bool ModelApi::since(std::int64_t version, std::vector<ApiEvent> &out) const
{
	if (version < oldest_ || version > version_)
		return false;
	auto from = std::upper_bound(history_.begin(), history_.end(), version,
				     [](std::int64_t v, const ApiEvent &e) { return v < e.version; });
	out.assign(from, history_.end());
	return true;
}

// ---- storing ----

void ModelApi::publish(ApiEvent event)
{
	history_.push_back(event);
	for (ApiListener *l : listeners_)
		l->pod_event(event);
}

void ModelApi::store(kube::Pod pod)
{
	pod.meta.resource_version = std::to_string(++version_);
	auto stored = std::make_shared<const kube::Pod>(std::move(pod));
	pods_[stored->meta.name] = stored;
	publish({version_, false, stored});
}

void ModelApi::drop(const kube::Pod &last)
{
	kube::Pod copy = last;
	copy.meta.resource_version = std::to_string(++version_);
	pods_.erase(copy.meta.name);
	tell(story_, "api: pod ", copy.meta.name, " (", copy.meta.uid, ") is gone");
	publish({version_, true, std::make_shared<const kube::Pod>(std::move(copy))});
}

void ModelApi::store_or_drop(kube::Pod pod)
{
	if (pod.meta.deleting && pod.meta.deletion_grace_seconds == 0 && pod.meta.finalizers.empty())
		drop(pod);
	else
		store(std::move(pod));
}

void ModelApi::set_node(kube::Node node)
{
	if (deleted_nodes_.contains(node.meta.name))
		return; // 404
	node.meta.resource_version = std::to_string(node_history_.size() + 1);
	auto stored = std::make_shared<const kube::Node>(std::move(node));
	nodes_[stored->meta.name] = stored;
	publish({stored, false});
}

void ModelApi::remove_node(const std::string &name)
{
	tell(story_, "api: node ", name, " is deleted");
	deleted_nodes_.insert(name);
	publish({nodes_.at(name), true});
}

void ModelApi::register_node(const std::string &name)
{
	tell(story_, "api: node ", name, " is registered again");
	deleted_nodes_.erase(name);
	kube::Node node = *nodes_.at(name);
	node.meta.uid = new_uid();
	node.meta.creation_time = wall();
	node.meta.annotations.clear();
	node.conditions.clear();
	node.unschedulable = false;
	node.ready = true;
	node.heartbeat = wall();
	set_node(std::move(node));
}

void ModelApi::publish(NodeEvent event)
{
	node_history_.push_back(event);
	for (ApiListener *l : listeners_)
		l->node_event(event);
}

// ---- requests ----

int ModelApi::create(kube::Pod pod)
{
	if (pods_.contains(pod.meta.name))
		return 409;
	tell(story_, "api: pod ", pod.meta.name, " (", pod.meta.uid, ") is created");
	pod.meta.creation_time = wall();
	new_pods_[pod.meta.uid] = pod;
	store(std::move(pod));
	return 201;
}

kube::Pod ModelApi::new_pod_like(const std::string &uid)
{
	kube::Pod pod = new_pods_.at(uid);
	pod.meta.uid = "again" + std::to_string(++again_);
	pod.meta.annotations[std::string(core::names::resubmitted_from)] = uid;
	return pod;
}

bool ModelApi::change(const std::string &name, const std::string &uid, const std::function<void(kube::Pod &)> &edit)
{
	auto it = pods_.find(name);
	if (it == pods_.end() || it->second->meta.uid != uid)
		return false;
	kube::Pod copy = *it->second;
	edit(copy);
	store_or_drop(std::move(copy));
	return true;
}

int ModelApi::patch_finalizer(const std::string &name, const std::string &uid, const std::string &finalizer, bool present)
{
	auto it = pods_.find(name);
	if (it == pods_.end())
		return 404;
	kube::Pod copy = *it->second;
	if (copy.meta.uid != uid)
		return 409;
	auto &list = copy.meta.finalizers;
	const bool there = std::find(list.begin(), list.end(), finalizer) != list.end();
	if (there == present)
		return 200; // nothing changes: not even its version
	if (present && copy.meta.deleting)
		return 422; // none may be added to what is being deleted
	if (present)
		list.push_back(finalizer);
	else
		std::erase(list, finalizer);
	store_or_drop(std::move(copy));
	return 200;
}

int ModelApi::bind(const std::string &name, const std::string &uid, const std::string &node,
		   const std::map<std::string, std::string> &annotations)
{
	auto it = pods_.find(name);
	if (it == pods_.end())
		return 404;
	kube::Pod copy = *it->second;
	if (copy.meta.uid != uid || copy.meta.deleting || !copy.node_name.empty() || copy.scheduling_gated)
		return 409;
	copy.node_name = node;
	copy.scheduled_condition_true = true;
	for (const auto &[k, v] : annotations)
		copy.meta.annotations[k] = v;
	tell(story_, "api: pod ", name, " (", uid, ") is bound to ", node);
	for (ApiListener *l : listeners_)
		l->bound(copy);
	store(std::move(copy));
	return 201;
}

// As the registry's BeforeDelete and the pod strategy's CheckGracefulDelete have it:
// a pod without node, or one that has ended, goes at once; a second DELETE can only
// shorten the time.
int ModelApi::remove(const std::string &name, const std::string &uid, std::int64_t grace)
{
	auto it = pods_.find(name);
	if (it == pods_.end())
		return 404;
	kube::Pod copy = *it->second;
	if (!uid.empty() && copy.meta.uid != uid)
		return 409;
	if (grace < 0)
		grace = copy.grace_seconds;
	if (copy.node_name.empty() || copy.phase == "Succeeded" || copy.phase == "Failed")
		grace = 0;
	if (copy.meta.deleting && grace >= copy.meta.deletion_grace_seconds)
		return 200;
	const std::int64_t asked = copy.meta.deleting ? core::deletion_asked_at(copy) : wall();
	copy.meta.deleting = true;
	copy.meta.deletion_grace_seconds = grace;
	copy.meta.deletion_time = asked + grace;
	tell(story_, "api: pod ", name, " (", copy.meta.uid, ") is deleted, grace ", std::to_string(grace));
	store_or_drop(std::move(copy));
	return 200;
}

int ModelApi::set_condition(const std::string &name, const std::string &version, const std::string &reason,
			    const std::string &message)
{
	auto it = pods_.find(name);
	if (it == pods_.end())
		return 404;
	if (it->second->meta.resource_version != version)
		return 409;
	kube::Pod copy = *it->second;
	copy.scheduled_reason = reason;
	copy.scheduled_message = message;
	store(std::move(copy));
	return 200;
}

// ---- backup ----

void ModelApi::backup()
{
	saved_pods_ = pods_;
	saved_version_ = version_;
}

kube::PodPtr ModelApi::saved_pod(const std::string &name) const
{
	auto it = saved_pods_.find(name);
	return it == saved_pods_.end() ? nullptr : it->second;
}

void ModelApi::restore()
{
	if (saved_version_ == 0)
		return;
	tell(story_, "api: etcd is restored from a backup");
	restores_++;
	pods_ = saved_pods_;
	version_ = oldest_ = saved_version_; // goes back, as etcd's revision does
	history_.clear();
	for (ApiListener *l : listeners_)
		l->restored();
}

} // namespace sk8::sim
