// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/reservations.h"

#include <algorithm>

#include "lib/base/doubling.h"
#include "lib/core/reservation_log.h"
#include "lib/core/service_account.h"

namespace sk8::core {

static constexpr std::int64_t grace_seconds = 1;

Reservations::Reservations(const ClusterSettings &settings, ReservationPorts ports, const NodeView &nodes)
	: settings_(settings), ports_(std::move(ports)), nodes_(nodes), mixed_(settings.nodes.any(Sharing::mixed)),
	  only_former_(!settings.reserves() && !settings.has_containers()),
	  with_own_(with_own(settings.resources)), devices_(settings.resources),
	  shared_(settings_, {ports_.kube, ports_.timer, ports_.cover_changed,
			      [this](const std::string &node, Gone gone) { shared_news(node, gone); },
			      [this](const std::string &node) { return nodes_.in_slurm(node); },
			      [this](const std::string &node) { return nodes_.find(node) != nullptr; }})
{
}

// ---- what Slurm tells ----

Reservations::Entry &Reservations::enter(const NativeJobPtr &job)
{
	Entry &e = entries_[{job->ref.id, job->ref.submit_time}];
	const bool read = e.job && !e.nameless && e.job->pod_template == job->pod_template;
	e.job = job;
	read_wish(e, read);
	return e;
}

// What is allowed goes by names. While NSS does not answer nobody is refused anything for good: what was read stays, or nothing is.
void Reservations::read_wish(Entry &e, bool again)
{
	const NativeJob &job = *e.job;
	if (job.service_account.empty() && (again || job.pod_template.empty()))
		return;
	const auto user = ports_.user(job.user_id);
	e.nameless = !user && !again;
	if (user && !job.service_account.empty())
		e.bad_account = bad_service_account(job.service_account, settings_.reservations.service_accounts, {*user, job.account});
	if (user && !again && !job.pod_template.empty())
		e.more = read_pod_template(job.pod_template, settings_.reservations.templates, {*user, job.account});
}

void Reservations::arrived(const NativeJobPtr &job)
{
	const Id id{job->ref.id, job->ref.submit_time};
	const auto it = entries_.find(id);
	const bool listed = it != entries_.end();
	if (listed && it->second.in_gate)
		return;
	if (listed && it->second.ending)
		return arrived_again(it->second, job);
	Entry &e = enter(job);
	e.in_gate = true;
	e.perhaps_launched = listed || !jobs_listed_;
	ports_.timer.after(settings_.nodes.gate_timeout, [this, id] { timeout(id); });
	if (!job->pod_template.empty() || !job->service_account.empty())
		ports_.timer.after(time_to_mount, [this, id] { look_at_volumes(id); });
	sync(id);
}

void Reservations::jobs_replaced(const std::vector<NativeJobPtr> &jobs)
{
	heed_nodes();
	std::set<Id> listed;
	for (const auto &job : jobs) {
		listed.insert({job->ref.id, job->ref.submit_time});
		Entry &e = enter(job);
		if (job->ending && !e.ending)
			ended(job->ref);
	}
	std::vector<JobRef> missing;
	for (const auto &[id, e] : entries_)
		if (!listed.contains(id) && !e.in_gate)
			missing.push_back(e.job->ref);
	for (const JobRef &ref : missing)
		left(ref, {});
	jobs_listed_ = true;
	sync_all();
}

void Reservations::ended(JobRef job)
{
	auto it = entries_.find({job.id, job.submit_time});
	if (it == entries_.end())
		return;
	Entry &e = it->second;
	e.again.reset();
	if (std::exchange(e.ending, true))
		return;
	if (std::exchange(e.in_gate, false) && !e.perhaps_launched) // it has never been on its nodes
		return left(job, {});
	keep_to_the_end(e);
	look_at_neighbours();
}

// What it has there stays until Slurm has done with it, also on nodes that are told of later.
void Reservations::keep_to_the_end(Entry &e)
{
	NativeJob job_now = *e.job;
	job_now.ending = true;
	e.job = std::make_shared<NativeJob>(std::move(job_now));
	for (auto &[node, p] : e.pods)
		cover(e, p);
	ports_.slurm.watch_end(e.job->ref);
}

void Reservations::left(JobRef job, const std::set<std::string> &still_on)
{
	const Id id{job.id, job.submit_time};
	former_left(job, still_on);
	auto it = entries_.find(id);
	if (it == entries_.end())
		return;
	const bool runs = !it->second.ending && !still_on.empty(); // it has been made smaller, or was asked for by former_may_go()
	const auto stays = [&](const NativeShare &s) { return still_on.contains(s.node); };
	const auto &shares = it->second.job->shares;
	if (runs && (std::ranges::all_of(shares, stays) || std::ranges::none_of(shares, stays)))
		return;
	it->second.ending = !runs;
	// Also for pods that are told of later: after a start jobs may come first, and go.
	NativeJob job_now = *it->second.job;
	std::erase_if(job_now.shares, [&](const NativeShare &s) { return !stays(s); });
	it->second.job = std::make_shared<NativeJob>(std::move(job_now));
	for (auto &[node, p] : it->second.pods) {
		p.wanted &= still_on.contains(node);
		cover(it->second, p);
	}
	if (still_on.empty())
		not_wanted(it->second);
	sync(id);
	look_at_neighbours();
}

// ---- decisions ----

void Reservations::sync_all()
{
	if (std::exchange(nodes_are_news_, false))
		read_devices();
	choice_is_old_ = true;
	std::vector<Id> ids;
	for (const auto &[id, e] : entries_)
		ids.push_back(id);
	heed_nodes();
	shared_.set_ready(ready() && jobs_listed_);
	for (const Id &id : ids)
		sync(id);
	shared_.sync_all();
}

// What comes in the same turn must not find jobs as they were before the nodes changed.
void Reservations::heed_nodes()
{
	if (!std::exchange(choice_is_old_, false))
		return;
	choose_all();
	look_at_orphans(); // before any is made again
	tell_all_shared();
}

// All who share a pod, before it is made to fit them: those who are not known yet may run.
void Reservations::tell_all_shared()
{
	for (auto &[id, e] : entries_)
		for (auto &[node, p] : e.pods)
			if (p.shared)
				tell_shared(e, p);
}

void Reservations::choose_all()
{
	if (nodes_.synced())
		for (auto &[id, e] : entries_)
			choose_nodes(e);
}

// What its pod there holds. has_pod: a kubelet that does not know a resource for a moment takes none away. Nor does a Node object that
// is deleted: its kubelet goes on, and it may come back with room for others.
Reservations::Holds Reservations::holds_on(const NativeJob &job, const NativeShare &share, bool has_pod) const
{
	if (nodes_.mixed(share.node) || (job.wants_container() && nodes_.has_containers(share.node)))
		return Holds::all;
	const kube::Node *last = nodes_.last(share.node);
	if (!last) // deleted before this slurmctld started, or never one of Kubernetes
		return has_pod && nodes_.in_slurm(share.node) ? Holds::all : Holds::nothing;
	if (!settings_.reserves_devices() || !nodes_.is_or_was_shared(share.node) || !is_named(share.gres, with_own_))
		return Holds::nothing;
	const auto &known = last->allocatable.extended;
	return has_pod || !extended_of(share.gres, with_own_, known).empty() ? Holds::devices : Holds::nothing;
}

// Before anything is known of nodes.
bool Reservations::may_have_pods(const NativeJob &job) const
{
	const auto &names = settings_.nodes.names;
	const bool any_node = mixed_ || (job.wants_container() && settings_.has_containers());
	return std::ranges::any_of(job.shares, [&](const NativeShare &s) {
		const bool may_be_shared = names.empty() || std::ranges::find(names, s.node) != names.end();
		return may_be_shared && (any_node || (!settings_.resources.empty() && is_named(s.gres, with_own_)));
	});
}

bool Reservations::is_shared(const Entry &e, const NativeShare &share) const
{
	return !e.job->wants_container() && shared_.takes(share);
}

// One that is there already, of before this slurmctld or these settings.
bool Reservations::has_former_pod(const Entry &e, const NativeShare &share) const
{
	return (!orphans_.empty() && orphans_.contains(reservation_name(e.job->ref, share.node))) ||
	       (is_shared(e, share) && shared_.has_pod(share.node));
}

void Reservations::choose_nodes(Entry &e)
{
	for (const NativeShare &share : e.job->shares) {
		auto it = e.pods.find(share.node);
		const Holds holds = holds_on(*e.job, share, it != e.pods.end() || has_former_pod(e, share));
		if (it == e.pods.end() && holds != Holds::nothing) {
			it = e.pods.try_emplace(share.node).first;
			it->second.share = share;
			it->second.wanted = !e.ending || e.job->ending;
			it->second.shared = is_shared(e, share);
			it->second.name = reservation_name(e.job->ref, share.node);
			by_name_[it->second.name] = {{e.job->ref.id, e.job->ref.submit_time}, share.node};
		}
		if (it == e.pods.end())
			continue;
		it->second.devices_only = nodes_.last(share.node) ? holds == Holds::devices : it->second.small;
		if (it->second.too_small())
			it->second.trouble = "the job's reservation pod on node " + share.node + ", which is shared otherwise now, holds its devices only";
		if (!e.ending)
			it->second.wanted = holds != Holds::nothing || (!e.in_gate && it->second.container.runs);
	}
}

void Reservations::sync(Id id)
{
	heed_nodes();
	auto it = entries_.find(id);
	if (it == entries_.end())
		return;
	Entry &e = it->second;
	if (ready()) {
		choose_nodes(e);
		for (auto &[node, p] : e.pods) {
			if (p.shared)
				share(e, p);
			give_up(e, p, Gone::no);
			look_at_devices(e, p);
			look_at_claims(e, p);
			look_at_exchange(e, p);
			step(e, p);
		}
	}
	if (e.in_gate)
		judge(e);
	const bool idle = std::ranges::all_of(e.pods, [](const auto &at) { return at.second.uid.empty() && at.second.awaits == Pod::Awaits::nothing; });
	const bool unwanted = std::ranges::none_of(e.pods, [](const auto &at) { return at.second.wanted; });
	if (!e.ending || !ready() || !idle || !unwanted)
		return;
	bool leaves_one = false;
	for (const auto &[node, p] : e.pods) {
		by_name_.erase(p.name);
		leaves_one |= orphans_.contains(p.name);
	}
	const NativeJobPtr again = e.again;
	entries_.erase(it);
	if (leaves_one)
		look_at_orphans();
	if (again)
		arrived(again);
}

void Reservations::step(Entry &e, Pod &p)
{
	if (p.shared)
		return shared_.sync(p.share.node);
	const Millis now = ports_.timer.now();
	const ReservationFacts facts{.wanted = p.wanted && (!e.ending || !p.uid.empty()),
				     .exists = !p.uid.empty(),
				     .over = p.ours() && p.to_go(),
				     .deleting = p.deleting || (!p.uid.empty() && !p.ours()),
				     .busy = p.awaits != Pod::Awaits::nothing,
				     .unbound = p.to_place && !e.ending && e.asked == Asked::no,
				     .doubtful = p.doubtful};
	const ReservationStep what = next_step(facts);
	if (what == ReservationStep::none || now < p.retry_at)
		return;
	if (what == ReservationStep::create && !nodes_.find(p.share.node))
		return; // Kubernetes collects pods of nodes that it does not have
	if (what == ReservationStep::create && word(e).is != ExclusiveWord::Is::open)
		return; // its kubelet would refuse it
	if (what == ReservationStep::create && e.nameless)
		read_wish(e, false);
	if (what == ReservationStep::create && e.nameless)
		return e.in_gate ? void() : later(e, p); // without what its user may have it would not be the job's
	if (what == ReservationStep::create)
		return e.asked == Asked::waits || is_hopeless(e) ? void() : create(e, p);
	if (what == ReservationStep::place)
		return place(e, p);
	if (what == ReservationStep::look)
		return look_where_it_is(e, p);
	// A batch job that is refused goes back at once, and not before that is known.
	if (p.to_go() && e.in_gate && e.job->requeues)
		return;
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	p.awaits = Pod::Awaits::remove;
	p.by_us = true;
	remove({settings_.name, settings_.reservations.ns, p.name, p.uid}, [this, id, node = p.share.node](const KubeReply &r) {
		auto it = entries_.find(id);
		if (it == entries_.end())
			return;
		Pod &pod = it->second.pods.at(node);
		pod.awaits = Pod::Awaits::nothing;
		if (r.status == 404)
			lose(it->second, pod, Gone::unseen);
		else if (r.ok() && pod.to_place)
			pod.doubtful = true; // one without a node is gone at once
		else if (r.ok())
			pod.deleting = true;
		else
			failed(it->second, pod, r.error);
		sync(id);
	});
}

void Reservations::create(Entry &e, Pod &p)
{
	const Id id{e.job->ref.id, e.job->ref.submit_time};
	p.awaits = Pod::Awaits::create;
	const kube::Node *at = nodes_.find(p.share.node);
	const auto devices = extended_there(e, p, *at);
	const auto name = ports_.user(e.job->user_id);
	const std::string user = name.value_or(std::to_string(e.job->user_id));
	JobGroups groups{.ids = {}, .strict = at->strict_groups};
	if (name && ports_.groups && has_container(e, p))
		groups.ids = ports_.groups(*name, e.job->group_id);
	Json object = p.devices_only ? device_reservation_object(*e.job, p.share, user, settings_.reservations, devices)
				     : reservation_object(as_allowed(e), p.share, user, settings_.reservations, devices, more(e), groups);
	add_step_devices(object, step_devices(devices, settings_.resources));
	const bool unbound = object["spec"]["nodeName"].is_null();
	ports_.kube.create_pod(settings_.reservations.ns, object,
			       [this, id, node = p.share.node, small = p.devices_only, unbound](const KubeReply &r, const std::string &uid) {
		auto it = entries_.find(id);
		if (it == entries_.end())
			return;
		Pod &pod = it->second.pods.at(node);
		pod.awaits = Pod::Awaits::nothing;
		if (r.ok())
			pod.made_uid = uid;
		if (pod.too_large()) // the watch was faster
			pod.trouble = too_large_text(pod);
		else if (pod.astray())
			pod.trouble = astray_text(pod);
		if (!r.ok()) {
			failed(it->second, pod, r.error);
		} else if (pod.uid.empty()) { // faster than the watch
			pod.uid = uid;
			pod.fits = true;
			pod.small = small;
			if (unbound)
				is_to_be_placed(it->second, pod);
			cover(it->second, pod);
		}
		sync(id);
	});
}

void Reservations::remove(const PodKey &key, std::function<void(const KubeReply &)> done)
{
	ports_.kube.delete_pod(key, grace_seconds, std::move(done));
}

void Reservations::later(const Entry &e, Pod &p)
{
	const Millis delay = pause_after(p.failures++);
	p.retry_at = ports_.timer.now() + delay;
	ports_.timer.after(delay, [this, id = Id{e.job->ref.id, e.job->ref.submit_time}] { sync(id); });
}

void Reservations::failed(const Entry &e, Pod &p, const std::string &why)
{
	p.trouble = "the reservation pod on node " + p.share.node + ": " + why;
	log_job(warning, e.job->ref, "%s; tried again", p.trouble.c_str());
	later(e, p);
}

} // namespace sk8::core
