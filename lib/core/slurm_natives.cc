// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The Slurm thread's part for jobs of Slurm's own: all of them after a start, when those that
// end have left their nodes, and what becomes of those in the gate.
#include "lib/base/guard.h"
#include "lib/core/slurm_lock.h"
#include "lib/core/slurm_worker.h"

namespace sk8::core {

// slurmctld asks its nodes to register some four seconds after its start, and a slurmd that is down does not keep who waits.
static constexpr Millis longest_registration{20'000}, registration_look{250};

// How long before its job's end an srun is told: the word is on its way for milliseconds, on a busy controller for more, and srun
// does not wait for it when it finds the job ended.
static constexpr Millis told_before{2'000};

void SlurmWorker::answer_gate(JobRef job, const GateAnswer &answer, std::function<bool()> still)
{
	post([this, who = InGate{job, answer, std::move(still)}] { answer_gate(who); });
}

void SlurmWorker::answer_gate(const InGate &who)
{
	if (who.answer.open && !nodes_registered(who.job)) {
		after(registration_look, [this, who] { answer_gate(who); });
		return;
	}
	const auto delay = std::chrono::duration_cast<std::chrono::seconds>(who.answer.delay);
	const sk8_gate_answer a{who.job.id, who.answer.open, static_cast<std::uint32_t>(delay.count()), who.answer.why.c_str()};
	if (!who.answer.open && !who.told && tell_refusal(a)) {
		InGate again = who;
		again.told = true;
		after(told_before, [this, again] { answer_gate(again); });
		return;
	}
	if (who.still())
		ops_.answer_gate(&a);
}

bool SlurmWorker::tell_refusal(const sk8_gate_answer &answer)
{
	SlurmLock lock(ops_, clock_, false);
	return ops_.tell_refusal(&answer);
}

// Or not waited for any more, which costs no lock.
bool SlurmWorker::nodes_registered(JobRef job)
{
	if (in_charge_since_ && clock_.monotonic() >= *in_charge_since_ + longest_registration)
		return true;
	SlurmLock lock(ops_, clock_, false);
	return ops_.nodes_registered(job.id);
}

void SlurmWorker::watch_end(JobRef job)
{
	post([this, job] { leaving_[{job.id, job.submit_time}].clear(); }); // of one job two runs may leave at a time
}

void SlurmWorker::end_native(const Seat &who, JobRef job, bool requeue, std::string why, SlurmPort::Done done)
{
	EndNative end{job, requeue, std::move(why)};
	enqueue({who, end, [this, who, end, done = std::move(done)](const SlurmReply &reply) mutable {
		if (!reply.told)
			return done(reply);
		end.told = true;
		after(told_before, [this, command = Command{who, end, done}] { enqueue(command); });
	}});
}

void SlurmWorker::run(const EndNative &e, SlurmReply &reply)
{
	const sk8_native_end end{e.ref.id, e.ref.submit_time, e.requeue, e.told, e.why.c_str()};
	sk8_outcome out{};
	ops_.end_native(&end, &out);
	copy_outcome(out, reply);
	reply.requeued = out.running;
	reply.told = out.told;
}

void SlurmWorker::set_devices(const Seat &who, JobRef job, DeviceChange change, SlurmPort::Done done)
{
	enqueue({who, SetDevices{job, std::move(change)}, std::move(done)});
}

void SlurmWorker::run(const SetDevices &s, SlurmReply &reply)
{
	const sk8_device_change change{s.ref.id,
				       s.ref.submit_time,
				       s.change.node.c_str(),
				       s.change.gres.c_str(),
				       static_cast<std::uint32_t>(s.change.devices.size()),
				       s.change.devices.data(),
				       s.change.from.id,
				       s.change.from.submit_time};
	sk8_outcome out{};
	ops_.set_devices(&change, &out);
	copy_outcome(out, reply);
	if (!reply.ok)
		return;
	for (const JobRef &ref : {s.ref, s.change.from})
		learn_devices(ref, reply);
}

// A hook that ends the job asks the table what it had. Jobs that are not ours are none of its.
void SlurmWorker::learn_devices(JobRef ref, SlurmReply &reply)
{
	sk8_job found{};
	if (ref.id == 0 || !ops_.find(ref.id, &found) || found.submit_time != ref.submit_time)
		return;
	const auto key = PodKey::from_mark(found.mark ? found.mark : "");
	if (!key)
		return;
	const JobPtr job = share(job_from_abi(found));
	holds_.job_started(*key, *job);
	reply.changed.emplace_back(*key, job);
}

// slurmctld's locks are held. Posted under them: what hooks tell of a job comes later.
void SlurmWorker::read_natives()
{
	std::lock_guard lock(mutex_);
	std::vector<std::shared_ptr<SlurmListener>> to;
	for (const auto &[cluster, l] : listeners_)
		if (l->wants_natives())
			to.push_back(l);
	if (to.empty())
		return;
	std::vector<NativeJobPtr> jobs;
	ops_.each_native(
		[](void *arg, const sk8_native_job *j) {
			guard("job list",
			      [&] { static_cast<std::vector<NativeJobPtr> *>(arg)->push_back(native_from_abi(*j)); });
		},
		&jobs);
	for (const auto &l : to)
		l->post([to = l.get(), jobs] { to->natives_replaced(jobs); });
}

// No news of Slurm's tells that the last process is gone: those few are looked at each time.
void SlurmWorker::scan_natives(Posts &posts)
{
	if (leaving_.empty())
		return;
	std::vector<std::string> clusters;
	{
		std::lock_guard lock(mutex_);
		for (const auto &[cluster, l] : listeners_)
			clusters.push_back(cluster); // also one where no node is mixed any more
	}
	SlurmLock lock(ops_, clock_, false, &scan_held_us_);
	for (auto it = leaving_.begin(); it != leaving_.end();) {
		const JobRef ref{it->first.first, it->first.second};
		auto &before = it->second;
		NativeJobPtr now;
		ops_.with_native(
			ref.id,
			[](void *arg, const sk8_native_job *j) {
				guard("job", [&] { *static_cast<NativeJobPtr *>(arg) = native_from_abi(*j); });
			},
			&now);
		std::set<std::string> still_on;
		if (now && now->ref == ref)
			for (const auto &share : now->shares)
				still_on.insert(share.node);
		if (still_on != before || still_on.empty())
			for (const auto &cluster : clusters)
				posts[cluster].push_back([ref, still_on](SlurmListener &l) { l.native_left(ref, still_on); });
		before = still_on;
		it = still_on.empty() ? leaving_.erase(it) : std::next(it);
	}
}

} // namespace sk8::core
