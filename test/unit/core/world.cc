// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/unit/core/world.h"

#include <stdexcept>

#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/pod_end.h"
#include "test/merge_patch.h"

namespace sk8::core::test {

World::World()
{
	settings.name = "c";
	NamespaceSettings ns;
	ns.match = "team-*";
	ns.user = "alice";
	settings.namespaces.push_back(ns);
	settings.resources = {{"nvidia.com/gpu", "gpu", ""}};
	for (const char *name : {"n1", "n2"}) {
		auto node = std::make_shared<kube::Node>();
		node->meta.name = name;
		node->meta.uid = std::string("uid-") + name;
		node->capacity = {{"nvidia.com/gpu", 8}};
		nodes.push_back(node);
	}
	start_controller();
}

void World::start_controller()
{
	generation_++;
	queue_.clear();
	auto lookup = [](const std::string &user) -> std::optional<Account> {
		if (user == "alice")
			return Account{1000, 1000};
		return std::nullopt;
	};
	dra = std::make_unique<Dra>(settings.resources);
	controller = std::make_unique<PodsController>(
		settings, PodsPorts{*this, *this, timer, *holds, journal, lookup, dra.get()});
	post([this] {
		if (dra->wanted())
			list_devices();
		list_pods();
		if (!nodes_last)
			list_nodes();
		std::vector<std::pair<PodKey, JobPtr>> all;
		for (const auto &j : jobs)
			all.emplace_back(j.key, share(j.job));
		controller->jobs_replaced(all);
		if (nodes_last)
			list_nodes();
	});
}

void World::list_pods()
{
	std::vector<kube::PodPtr> list;
	for (const auto &[name, p] : pods)
		list.push_back(std::make_shared<kube::Pod>(p));
	controller->pods_replaced("slurm", list);
}

void World::list_devices()
{
	dra->inventory.slices_replaced(slices);
	dra->inventory.classes_replaced(device_classes);
	std::vector<kube::ResourceClaimPtr> all;
	for (const auto &[name, object] : claims)
		all.push_back(*kube::decode_resource_claim(object));
	dra->claims_replaced(all);
	controller->dra_changed();
}

void World::start_with_drivers()
{
	ResourceSettings gpus{"", "gpu", ""};
	gpus.device_class = "gpu.example.com";
	settings.resources = {gpus};
	device_classes = {*kube::decode_device_class(*Json::parse(R"({"metadata":{"name":"gpu.example.com","uid":"class"},
		"spec":{"selectors":[{"cel":{"expression":"device.driver == 'gpu.example.com'"}}]}})"))};
	slices.clear();
	for (const std::string node : {"n1", "n2"}) {
		std::string devices;
		for (int i = 0; i < 4; i++)
			devices += (i ? "," : "") + strprintf(R"({"name":"gpu-%d","attributes":{"index":{"int":%d},"model":{"string":"a100"}}})", i, i);
		slices.push_back(*kube::decode_resource_slice(*Json::parse(
			R"({"metadata":{"name":"slice-)" + node + R"(","uid":"slice-)" + node + R"("},"spec":{"driver":"gpu.example.com","nodeName":")" +
			node + R"(","pool":{"name":")" + node + R"(","generation":1,"resourceSliceCount":1},"devices":[)" + devices + "]}}")));
	}
	start_controller();
}

void World::list_nodes()
{
	controller->slurm_nodes(slurm_nodes);
	controller->nodes_replaced(nodes);
}

void World::restart()
{
	controller.reset();
	timer = VirtualTimer();
	holds = std::make_unique<HoldTable>();
	journal.pending.clear();
	holds->restore(journal.saved());
	for (const auto &j : jobs)
		if (j.job.running())
			holds->job_started(j.key, j.job);
	start_controller();
}

void World::come_to_rest()
{
	for (int rounds = 0;; rounds++) {
		if (rounds > 10'000)
			throw std::logic_error("the world does not come to rest");
		if (queue_.empty()) {
			controller->end_of_turn();
			if (queue_.empty())
				return;
		}
		auto f = std::move(queue_.front());
		queue_.pop_front();
		f();
	}
}

void World::run(Millis time)
{
	come_to_rest();
	while (time > Millis(0)) {
		const Millis step = std::min(time, Millis(100));
		timer.advance(step);
		time -= step;
		come_to_rest();
	}
}

// ---- API server ----

void World::create_claim(const std::string &name, std::int64_t count, const Json &more)
{
	Json exactly = Json::object(), request = Json::object(), requests = Json::array();
	exactly.set("deviceClassName", "gpu.example.com").set("count", Json::integer(count));
	more.each_member([&](std::string_view key, const Json &value) { exactly.set(key, value); });
	requests.append(request.set("name", "gpus").set("exactly", exactly));
	const std::string uid = "claim" + std::to_string(next_uid_++);
	claims[name] = Json::object()
			       .set("metadata", Json::object().set("namespace", "team-a").set("name", name).set("uid", uid))
			       .set("spec", Json::object().set("devices", Json::object().set("requests", requests)));
	claim_changes(name, Json::object());
}

const kube::ResourceClaim &World::claim(const std::string &name)
{
	seen_claim_ = *kube::decode_resource_claim(claims.at(name));
	return *seen_claim_;
}

void World::claim_changes(const std::string &name, const Json &patch)
{
	claims[name] = merge_patch(merge_patch(claims.at(name), patch),
			     Json::object().set("metadata", Json::object().set("resourceVersion", std::to_string(++rv_))));
	post([this, claim = *kube::decode_resource_claim(claims.at(name))] {
		if (dra->claim_changed(claim))
			controller->claim_changed(claim->meta.ns, claim->meta.name);
	});
}

void World::patch_claim(const kube::ResourceClaim &claim, bool status, const Json &patch, KubePort::Done done)
{
	if (fault("claim", done))
		return;
	const auto at = claims.find(claim.meta.name);
	if (at == claims.end())
		return answer(done, 404);
	const Json meta = at->second["metadata"];
	if (meta["uid"].str() != patch["metadata"]["uid"].str() || meta["resourceVersion"].str() != patch["metadata"]["resourceVersion"].str())
		return answer(done, 409);
	if (patch["status"].is_object() != status)
		throw std::logic_error("a patch of a claim and of its status are two");
	// Kubernetes: an allocation is made or freed, never changed.
	if (at->second["status"]["allocation"].is_object() && patch["status"]["allocation"].is_object())
		return answer(done, 422);
	if (const auto meanwhile = std::exchange(at_claim_patch, nullptr))
		meanwhile();
	claim_changes(claim.meta.name, patch);
	answer(done, 200, nullptr, *kube::decode_resource_claim(claims.at(claim.meta.name)));
}

void World::changed(const std::string &name)
{
	pods.at(name).meta.resource_version = std::to_string(++rv_);
	if (!watch_delivers)
		return;
	auto copy = std::make_shared<kube::Pod>(pods.at(name));
	post([this, copy] { controller->pod_changed(copy); });
}

void World::removed(const kube::Pod &last)
{
	if (!watch_delivers)
		return;
	auto copy = std::make_shared<kube::Pod>(last);
	post([this, copy] { controller->pod_removed(copy); });
}

std::string World::create_running(const std::string &name)
{
	std::string uid = create_pod(name);
	run();
	slurm_starts(name);
	run();
	kubelet_starts(name);
	run();
	return uid;
}

std::string World::create_pod(const std::string &name, std::function<void(kube::Pod &)> edit)
{
	kube::Pod p;
	p.meta.ns = "team-a";
	p.meta.name = name;
	p.meta.uid = "uid-" + std::to_string(next_uid_++);
	p.scheduler_name = "slurm";
	p.phase = "Pending";
	p.request.milli_cpu = 500;
	p.request.memory_bytes = 100 << 20;
	p.has_cpu_request = p.has_memory_request = true;
	if (edit)
		edit(p);
	pods[name] = p;
	changed(name);
	return p.meta.uid;
}

void World::drop_if_free(const std::string &name)
{
	kube::Pod &p = pods.at(name);
	const bool gone = p.node_name.empty() || p.meta.deletion_grace_seconds == 0;
	if (!p.meta.deleting || !gone || !p.meta.finalizers.empty()) {
		changed(name);
		return;
	}
	kube::Pod last = p;
	pods.erase(name);
	removed(last);
}

void World::user_deletes(const std::string &name, std::int64_t grace, bool force)
{
	kube::Pod &p = pods.at(name);
	if (p.node_name.empty() || p.phase == "Succeeded" || p.phase == "Failed" || force)
		grace = 0;
	// a second DELETE shortens the time from the first one on (BeforeDelete(), delete.go of the apiserver)
	const std::int64_t asked = p.meta.deleting ? deletion_asked_at(p) : timer.wall_seconds();
	p.meta.deleting = true;
	p.meta.deletion_grace_seconds = grace;
	p.meta.deletion_time = asked + grace;
	drop_if_free(name);
}

kube::Pod *World::find(const PodKey &key)
{
	auto it = pods.find(key.name);
	return it == pods.end() ? nullptr : &it->second;
}

void World::answer(const KubePort::Done &done, int status, kube::PodPtr p, kube::ResourceClaimPtr claim)
{
	post([this, done, status, p, claim, generation = generation_] {
		if (generation != generation_)
			return;
		KubeReply r;
		r.status = std::max(status, 0);
		r.not_sent = status == not_sent;
		r.error = status >= 200 && status < 300 ? "" : "HTTP status " + std::to_string(status);
		r.pod = p;
		r.claim = claim;
		done(r);
	});
}

bool World::fault(const char *verb, const KubePort::Done &done)
{
	calls.push_back(verb);
	auto &f = fail[verb];
	if (f.empty())
		return false;
	const int status = f.front();
	f.pop_front();
	answer(done, status);
	return true;
}

void World::get_pod(const PodKey &key, KubePort::Done done)
{
	if (fault("get", done))
		return;
	kube::Pod *p = find(key);
	answer(done, p ? 200 : 404, p ? std::make_shared<kube::Pod>(*p) : nullptr);
}

void World::set_finalizer(const PodKey &key, bool present, KubePort::Done done)
{
	if (fault(present ? "finalizer" : "unfinalizer", done))
		return;
	kube::Pod *p = find(key);
	if (!p || p->meta.uid != key.uid)
		return answer(done, p ? 409 : 404);
	if (present && p->meta.deleting)
		return answer(done, 422);
	std::erase(p->meta.finalizers, names::finalizer);
	if (present)
		p->meta.finalizers.emplace_back(names::finalizer);
	drop_if_free(key.name);
	answer(done, 200);
}

void World::bind(const PodKey &key, const std::string &node,
		 const std::map<std::string, std::string> &annotations, KubePort::Done done)
{
	if (!journal.holds(key.uid))
		throw std::logic_error("Binding sent before its hold was on disk");
	if (const auto first = std::exchange(at_bind, {}))
		first();
	if (!binding_arrives_without_answer && fault("bind", done))
		return;
	if (binding_arrives_without_answer)
		calls.push_back("bind");
	kube::Pod *p = find(key);
	if (!p)
		return answer(done, 404);
	if (p->meta.uid != key.uid || !p->node_name.empty() || p->meta.deleting)
		return answer(done, 409);
	p->node_name = node;
	binding_annotations = annotations;
	for (const auto &[k, v] : annotations)
		p->meta.annotations[k] = v;
	changed(key.name);
	answer(done, std::exchange(binding_arrives_without_answer, false) ? answer_of_that : 201);
}

void World::annotate_pod(const PodKey &key, const AnnotationChanges &changes, KubePort::Done done)
{
	if (fault("annotate", done))
		return;
	kube::Pod *p = find(key);
	if (!p || p->meta.uid != key.uid)
		return answer(done, p ? 409 : 404);
	for (const auto &[k, v] : changes)
		if (v)
			p->meta.annotations[k] = *v;
		else
			p->meta.annotations.erase(k);
	changed(key.name);
	answer(done, 200);
}

void World::delete_pod(const PodKey &key, const Deletion &how, KubePort::Done done)
{
	if (how.grace_seconds < 1)
		throw std::logic_error("a force delete");
	if (fault("delete", done))
		return;
	kube::Pod *p = find(key);
	if (!p || p->meta.uid != key.uid)
		return answer(done, p ? 409 : 404);
	if (!how.if_version.empty() && how.if_version != p->meta.resource_version)
		return answer(done, 409);
	last_grace = how.grace_seconds;
	if (!p->meta.deleting || p->meta.deletion_grace_seconds > how.grace_seconds)
		user_deletes(key.name, how.grace_seconds);
	answer(done, 200);
}

void World::set_condition(const PodKey &key, const std::string &rv, const PodCondition &c, KubePort::Done done)
{
	if (fault("condition", done))
		return;
	kube::Pod *p = find(key);
	if (!p || p->meta.resource_version != rv)
		return answer(done, p ? 409 : 404);
	if (!p->node_name.empty())
		throw std::logic_error("a condition after the Binding");
	conditions[key.name] = c;
	p->scheduled_reason = c.reason;
	p->scheduled_message = c.message;
	changed(key.name);
	answer(done, 200);
}

// As much of it as the controller's copy is made from, and what it must leave out.
static Json object_of(const kube::Pod &p)
{
	Json meta = Json::object(), notes = Json::object();
	for (const auto &[k, v] : p.meta.annotations)
		notes.set(k, v);
	meta.set("namespace", p.meta.ns).set("name", p.meta.name).set("uid", p.meta.uid);
	meta.set("resourceVersion", p.meta.resource_version).set("annotations", notes);
	Json spec = Json::object();
	spec.set("schedulerName", p.scheduler_name).set("nodeName", p.node_name);
	Json out = Json::object();
	return out.set("metadata", meta).set("spec", spec).set("status", Json::object());
}

void World::get_manifest(const PodKey &key, Manifest done)
{
	if (fault("manifest", [done](const KubeReply &r) { done(r, Json()); }))
		return;
	kube::Pod *p = find(key);
	const Json object = p ? object_of(*p) : Json();
	answer([done, object](const KubeReply &r) { done(r, object); }, p ? 200 : 404);
}

void World::create_pod(const std::string &ns, const Json &object, KubePort::Done done)
{
	const bool lost = create_arrives_without_answer;
	if (!lost && fault("create", done))
		return;
	const std::string name(object["metadata"]["name"].str());
	if (ns != "team-a" || object["metadata"]["uid"].is_string() || !object["spec"]["nodeName"].is_null())
		throw std::logic_error("no manifest of a new pod");
	if (exists(name))
		return answer(done, 409);
	create_pod(name, [&](kube::Pod &p) {
		object["metadata"]["annotations"].each_member(
			[&](std::string_view key, const Json &value) { p.meta.annotations.emplace(key, value.str()); });
	});
	answer(done, std::exchange(create_arrives_without_answer, false) ? 0 : 201, std::make_shared<kube::Pod>(pods.at(name)));
}

void World::create_event(const PodKey &key, const PodEvent &event, KubePort::Done done)
{
	if (fault("event", done))
		return;
	events.push_back(key.name + ": " + event.reason + ": " + event.message);
	answer(done, 201);
}

void World::get_volumes(const PodKey &, const std::vector<std::string> &,
			std::function<void(const Volumes &)> done)
{
	post([done, volumes = volumes] { done(volumes); });
}

std::string World::events_text() const
{
	std::string out;
	for (const auto &e : events)
		out += e + '\n';
	return out;
}

// ---- kubelet ----

void World::resize(const std::string &name, std::int64_t milli_cpu, std::int64_t memory_mb)
{
	kube::Pod &p = pods.at(name);
	p.request.milli_cpu = milli_cpu;
	p.request.memory_bytes = memory_mb << 20;
	changed(name);
}

void World::kubelet_starts(const std::string &name)
{
	kube::Pod &p = pods.at(name);
	if (p.node_name.empty())
		throw std::logic_error("the kubelet of no node");
	p.phase = "Running";
	p.started_at = timer.wall_seconds();
	p.admitted = true;
	kube::ContainerStatus c;
	c.name = "main";
	c.state = kube::ContainerStatus::State::running;
	c.started_ever = true;
	p.containers = {c};
	changed(name);
}

void World::kubelet_ends(const std::string &name, int exit_code, const std::string &reason)
{
	kube::Pod &p = pods.at(name);
	auto &c = p.containers.at(0);
	c.state = kube::ContainerStatus::State::terminated;
	c.exit_code = exit_code;
	c.reason = reason;
	c.finished_at = timer.wall_seconds();
	p.phase = exit_code == 0 ? "Succeeded" : "Failed";
	changed(name);
	if (p.meta.deleting) {
		p.meta.deletion_grace_seconds = 0; // its final delete
		drop_if_free(name);
	}
}

// ---- Slurm ----

void World::start_there(SlurmJob &j, const std::string &node)
{
	j.job.state = SK8_JOB_RUNNING;
	j.job.node = node;
	j.job.cores = {5};
	if (j.job.gres.empty()) // the first ones
		for (Gres g : j.request.gres) {
			for (std::uint16_t i = 0; i < g.count; i++)
				g.devices.push_back(i);
			j.job.gres.push_back(std::move(g));
		}
	const bool taken = std::ranges::any_of(j.request.devices, [&](const Gres &g) {
		return std::ranges::any_of(g.devices, [&](std::uint16_t d) { return natives_devices.contains(d); });
	});
	if (!j.request.devices.empty() && !taken)
		j.job.gres = j.request.devices;
	holds->job_started(j.key, j.job);
}

void World::submit(JobRequest request, SlurmPort::Done done)
{
	calls.push_back("submit");
	SlurmReply reply = submit_reply;
	if (!request.required_node.empty() && !nodes_take_jobs)
		reply = {.ok = false, .text = "Requested nodes are busy"};
	for (auto &j : jobs) {
		if (j.key != request.key || j.job.ended())
			continue;
		if (request.required_node.empty())
			throw std::logic_error("two live jobs for one pod");
		j.request.devices = request.devices;
		if (reply.ok && !j.job.running())
			start_there(j, request.required_node);
		reply.job = share(j.job);
		return post([done, reply, generation = generation_, this] {
			if (generation == generation_)
				done(reply);
		});
	}
	if (reply.ok) {
		Job job;
		job.ref = {next_job_++, timer.wall_seconds()};
		job.partition = "batch";
		job.reason = "Resources";
		job.priority = 1000;
		job.excluded_nodes = request.excluded_nodes;
		jobs.push_back({request.key, job, request, {}});
		if (!request.required_node.empty())
			start_there(jobs.back(), request.required_node);
		reply.job = share(jobs.back().job);
	}
	post([done, reply, generation = generation_, this] {
		if (generation == generation_)
			done(reply);
	});
}

void World::end(const PodKey &key, JobRef ref, JobEnd end, SlurmPort::Done done)
{
	calls.push_back("end");
	SlurmReply reply{.ok = false, .fatal = true, .text = "no such job"};
	const bool busy = ends_refused > 0 && ends_refused--;
	if (busy)
		reply = {.ok = false, .text = "Slurm is busy"};
	for (auto &j : jobs) {
		if (busy || j.key != key || j.job.ref != ref || j.job.ended())
			continue;
		if (!j.job.running() && !end.node.empty()) {
			if (!nodes_take_jobs) {
				reply = {.ok = false, .text = "Requested nodes are busy"};
				continue;
			}
			start_there(j, end.node);
		}
		j.end = end;
		j.job.state = j.job.running() ? end.state : SK8_JOB_CANCELLED;
		j.job.exit_code = j.job.state == SK8_JOB_CANCELLED ? 0 : end.exit_code;
		j.job.ended_by_us = true;
		holds->job_ended(key, ref);
		reply = {.ok = true};
		post([this, key, job = share(j.job)] { controller->job_changed(key, job, timer.now()); });
	}
	post([done, reply, generation = generation_, this] {
		if (generation == generation_)
			done(reply);
	});
}

void World::exclude(const PodKey &key, const Job &job, std::string excluded, SlurmPort::Done done)
{
	calls.push_back("exclude");
	if (refuses_exclusion)
		return post([done] { done({.text = "Invalid node name specified"}); });
	for (auto &j : jobs)
		if (j.key == key && j.job.ref == job.ref)
			j.request.excluded_nodes = excluded;
	post([done] { done({.ok = true}); });
}

// As lib/slurm/gate_devices.c does it, of jobs with one GRES.
void World::set_devices(JobRef ref, DeviceChange change, SlurmPort::Done done)
{
	calls.push_back("devices");
	post([this, ref, change = std::move(change), done = std::move(done)] {
		const auto find = [&](JobRef wanted) { return std::ranges::find(jobs, wanted, [](const SlurmJob &j) { return j.job.ref; }); };
		const auto at = find(ref), from = find(change.from);
		const auto has = [](const SlurmJob &j, std::uint16_t d) { return std::ranges::count(j.job.gres.at(0).devices, d) > 0; };
		const bool taken = std::ranges::any_of(change.devices, [&](std::uint16_t d) {
			return natives_devices.contains(d) || std::ranges::any_of(jobs, [&](const SlurmJob &j) {
				       return j.job.running() && j.job.node == change.node && !j.job.gres.empty() && j.job.ref != ref &&
					      j.job.ref != change.from && has(j, d);
			       });
		});
		if (at == jobs.end() || !at->job.running() || taken)
			return done({.text = "another job has one of these devices"});
		if (devices_stay)
			return done({.ok = true});
		const auto had = std::exchange(at->job.gres[0].devices, change.devices);
		if (from != jobs.end()) {
			auto &its = from->job.gres[0].devices;
			const std::size_t count = its.size();
			std::erase_if(its, [&](std::uint16_t d) { return has(*at, d); });
			for (const std::uint16_t d : had)
				if (!has(*at, d) && its.size() < count)
					its.push_back(d);
			std::ranges::sort(its);
		}
		SlurmReply reply{.ok = true};
		for (const auto &j : {at, from})
			if (j != jobs.end()) {
				holds->job_started(j->key, j->job);
				reply.changed.emplace_back(j->key, share(j->job));
			}
		done(reply);
	});
}

Job *World::job_of(const std::string &name)
{
	Job *found = nullptr;
	for (auto &j : jobs)
		if (j.key.name == name)
			found = &j.job;
	return found;
}

std::string World::excluded(const std::string &name)
{
	std::string found = "no job";
	for (auto &j : jobs)
		if (j.key.name == name)
			found = j.request.excluded_nodes;
	return found;
}

void World::slurm_says(const std::string &name, const std::string &reason)
{
	for (auto &j : jobs) {
		if (j.key.name != name || j.job.state != SK8_JOB_PENDING)
			continue;
		j.job.reason = reason;
		post([this, key = j.key, job = share(j.job)] { controller->job_changed(key, job, timer.now()); });
	}
}

void World::slurm_starts(const std::string &name, const std::string &node, std::vector<std::uint16_t> cores)
{
	for (auto &j : jobs) {
		if (j.key.name != name || j.job.state != SK8_JOB_PENDING)
			continue;
		j.job.state = SK8_JOB_RUNNING;
		j.job.node = node;
		j.job.cores = cores;
		j.job.memory_mb = 100;
		holds->job_started(j.key, j.job);
		post([this, key = j.key, job = share(j.job)] { controller->job_changed(key, job, timer.now()); });
	}
}

void World::slurm_preempts(const std::string &name, std::int64_t grace)
{
	for (auto &j : jobs) {
		if (j.key.name != name || !j.job.running())
			continue;
		j.job.preempt_end = timer.wall_seconds() + grace;
		post([this, key = j.key, job = share(j.job)] { controller->job_changed(key, job, timer.now()); });
	}
}

void World::slurm_ends(const std::string &name, sk8_job_state state, std::uint32_t by)
{
	for (auto &j : jobs) {
		if (j.key.name != name || j.job.ended())
			continue;
		holds->job_ended(j.key, j.job.ref);
		j.job.state = state;
		j.job.ended_by = by;
		post([this, key = j.key, job = share(j.job)] { controller->job_changed(key, job, timer.now()); });
	}
}

void World::slurm_forgets(const std::string &name)
{
	std::erase_if(jobs, [&](const SlurmJob &j) { return j.key.name == name; });
}

void World::slurm_forgets_start(const std::string &name)
{
	for (auto &j : jobs) {
		if (j.key.name != name)
			continue;
		j.job.state = SK8_JOB_PENDING;
		j.job.node.clear();
		j.job.cores.clear();
	}
}

const NodeMask *World::mask(const std::string &node)
{
	static std::shared_ptr<const MaskSnapshot> kept;
	kept = holds->masks();
	if (kept)
		for (const auto &m : kept->masks)
			if (m->node == node)
				return m.get();
	return nullptr;
}

} // namespace sk8::core::test
