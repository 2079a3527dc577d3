// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The part of a process for jobs of Slurm's own, as runtime_natives.cc, cluster_natives.cc
// and reservation_link.h have it; and how a process begins and ends.
#include <algorithm>

#include "test/sim/process.h"
#include "test/sim/resizing.h"

namespace sk8::sim {

using core::JobRef;

Process::Process(const Outside &outside)
	: out_(outside), settings_(outside.config.settings),
	  gate_([this](JobRef job, const core::GateAnswer &answer) { answer_gate(job, answer); },
		holds_.taken_by())
{
}

Process::~Process()
{
	die();
}

void Process::die()
{
	if (!alive_)
		return;
	alive_ = in_charge_ = false;
	dying_ = true;
	stop_engine();
	worker_.reset();
}

// ---- the borders ----

class Process::NativeGate final : public core::NativePort, public core::ReservationPort {
public:
	explicit NativeGate(Process &p) : p_(p) {}

	void answer(JobRef job, core::GateAnswer answer) override
	{
		if (p_.effect("answer the gate"))
			p_.gate_.vote(p_.settings_.name, job, answer);
		if (answer.open && p_.out_.mutant == Mutant::device_pod_goes_early && p_.devices_only())
			p_.post([&p = p_, job] { p.native_left(job, {}); });
	}
	void watch_end(JobRef job) override
	{
		if (p_.dying_)
			return;
		if (p_.out_.mutant == Mutant::reservation_goes_early)
			return p_.post([&p = p_, job] { p.native_left(job, {}); });
		p_.worker_->watch_end(job);
		p_.plan_round(p_.out_.dice.between("round", 0, 10 * ms));
	}
	void end(JobRef job, bool requeue, std::string why, core::SlurmPort::Done done) override
	{
		if (!p_.effect("end a job of Slurm's own"))
			return;
		p_.worker_->end_native(p_.worker_->seat(p_.settings_.name), job, requeue, std::move(why), std::move(done));
		p_.plan_round(p_.out_.dice.between("round", 0, 10 * ms));
	}
	void set_devices(JobRef job, core::DeviceChange change, core::SlurmPort::Done done) override
	{
		if (!p_.effect("set devices of a job of Slurm's own"))
			return;
		if (p_.out_.mutant == Mutant::gate_devices_believed)
			return p_.post([done = std::move(done)] { done({.ok = true}); });
		p_.worker_->set_devices(p_.worker_->seat(p_.settings_.name), job, std::move(change), std::move(done));
		p_.plan_round(p_.out_.dice.between("round", 0, 10 * ms));
	}
	// No job has a template here.
	void find_trouble(const core::PodKey &, Lacks, std::function<void(const std::string &)> done) override { done(""); }
	void create_pod(const std::string &ns, const Json &object, Created done) override
	{
		if (p_.effect("create"))
			p_.requests_->create_reservation(ns, object, std::move(done));
	}
	void resize_pod(const core::PodKey &key, const std::string &version, const Json &requests, Resized done) override
	{
		if (!p_.effect("resize"))
			return;
		p_.requests_->resize_reservation(key, version, requests, [done = std::move(done), m = p_.out_.mutant](const auto &r) {
			const auto pod = r.ok() && r.pod ? mutate_reservation(m, foreign_pod_seen(*r.pod)) : nullptr;
			done(r, Resizes::yes, pod);
		});
	}
	void annotate_pod(const core::PodKey &key, std::string_view name, const std::string &value, core::KubePort::Done done) override
	{
		if (p_.effect("annotate"))
			p_.requests_->annotate_pod(key, {{std::string(name), value}}, std::move(done));
	}
	void delete_pod(const core::PodKey &key, std::int64_t grace_seconds, core::KubePort::Done done) override
	{
		if (!p_.effect("delete"))
			return;
		if (p_.out_.mutant != Mutant::reservation_not_deleted)
			return p_.requests_->delete_pod(key, {grace_seconds, ""}, std::move(done));
		p_.requests_->get_pod(key, std::move(done)); // which answers, and that is all
	}

private:
	Process &p_;
};

void Process::start_reservations()
{
	native_gate_ = std::make_shared<NativeGate>(*this);
	core::ClusterSettings settings = settings_;
	using OnEviction = core::ReservationSettings::OnEviction;
	if (out_.mutant == Mutant::eviction_requeues)
		settings.reservations.eviction = OnEviction::requeue;
	if (out_.mutant == Mutant::eviction_ignored)
		settings.reservations.eviction = OnEviction::ignore;
	reservations_ = std::make_unique<core::Reservations>(
		settings,
		core::ReservationPorts{*native_gate_, *native_gate_, *this, [](std::uint32_t) { return "alice"; },
				       [this](const std::string &uid) { foreign_->cover_changed(uid); },
				       holds_.taken_by()},
		controller_->nodes());
	gate_changed();
}

core::Cover Process::covered(const std::string &uid) const
{
	if (out_.mutant != Mutant::covered_by_name)
		return reservations_ ? reservations_->covered(uid) : core::Cover();
	const auto named = [&](const auto &pod) { return pod.second->meta.uid == uid && core::is_reservation_name(pod.first); };
	return {.whole = std::ranges::any_of(out_.api.pods(), named)};
}

void Process::reservations_replaced(const std::vector<core::ForeignPodPtr> &pods)
{
	if (!reservations_)
		return;
	std::vector<core::ForeignPodPtr> seen;
	std::map<std::string, core::ForeignPodPtr> now;
	for (const auto &pod : pods) {
		seen.push_back(mutate_reservation(out_.mutant, pod));
		now[pod->meta.uid] = pod;
	}
	for (const auto &[uid, last] : std::exchange(last_seen_, now))
		if (out_.mutant == Mutant::absence_is_eviction && !now.contains(uid))
			reservations_->removed(last);
	reservations_->replaced(seen);
}

void Process::reservation_seen(const core::ForeignPodPtr &pod, bool removed)
{
	if (!reservations_)
		return;
	if (removed)
		last_seen_.erase(pod->meta.uid);
	else
		last_seen_[pod->meta.uid] = pod;
	const core::ForeignPodPtr seen = mutate_reservation(out_.mutant, pod);
	if (removed)
		reservations_->removed(seen);
	else
		reservations_->changed(seen);
}

// ---- hooks ----

bool Process::gate(const sk8_native_job &job)
{
	hooks_++;
	if (out_.mutant == Mutant::gate_open || (out_.mutant == Mutant::device_gate_open && devices_only()))
		return false;
	if (!in_charge_ || !gate_.arrive(core::native_from_abi(job)))
		return false;
	if (reservations_)
		gate_changed();
	return true;
}

void Process::native_fini(std::uint32_t id, std::int64_t submit_time)
{
	hooks_++;
	if (!in_charge_ || !gate_.used())
		return;
	const JobRef job{id, submit_time};
	if (out_.mutant != Mutant::gate_not_left)
		gate_.ended(job);
	if (reservations_)
		post([this, job] { reservations_->ended(job); });
}

void Process::gate_changed()
{
	post([this] {
		for (const auto &job : gate_.waiting(settings_.name))
			reservations_->arrived(job);
	});
}

void Process::answer_gate(JobRef job, const core::GateAnswer &answer)
{
	if (!worker_ || dying_)
		return;
	if (answer.open)
		out_.requests.gate_opened(job);
	worker_->answer_gate(job, answer, [this, job] { return gate_.told(job); });
	plan_round(out_.dice.between("round", 0, 10 * ms));
}

// ---- the Slurm thread ----

void Process::natives_replaced(const std::vector<core::NativeJobPtr> &jobs)
{
	if (reservations_)
		reservations_->jobs_replaced(jobs);
}

void Process::native_left(JobRef job, const std::set<std::string> &still_on)
{
	if (reservations_)
		reservations_->left(job, still_on);
}

} // namespace sk8::sim
