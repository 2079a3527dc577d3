// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The engines' commands, one at a time, under slurmctld's write locks; the rest of
// the Slurm thread is in slurm_worker.cc.
#include "lib/core/slurm_worker.h"

#include <cerrno>

#include "lib/core/metrics.h"

namespace sk8::core {

// Slurm says EAGAIN when it has as many jobs as MaxJobCount allows. With thousands of
// pods that wait for a place the next one would be ours whenever there is one, and
// Slurm logs a line for each that it does not take.
static constexpr Millis full_pause{1'000};

static thread_local bool submitting = false;

bool submitting_now()
{
	return submitting;
}

// For a scope, a pod's own mask does not keep its job away. A job that runs
// afterwards covers the hold.
class MaskLift {
public:
	MaskLift(HoldTable &holds, const PodKey &key, bool wanted) : holds_(holds), key_(key), wanted_(wanted)
	{
		if (wanted_)
			holds_.lift(key_, true);
	}
	~MaskLift()
	{
		if (wanted_)
			holds_.lift(key_, false);
	}
	MaskLift(const MaskLift &) = delete;
	MaskLift &operator=(const MaskLift &) = delete;

private:
	HoldTable &holds_;
	const PodKey &key_;
	bool wanted_;
};

void copy_outcome(const sk8_outcome &out, SlurmReply &reply)
{
	reply.ok = out.rc == 0;
	reply.fatal = out.fatal;
	reply.text = out.text;
}

void SlurmWorker::run(const Submit &s, SlurmReply &reply)
{
	const JobRequest &r = s.request;
	// A submit that was repeated after a lost answer finds its first job.
	const auto [from, to] = ids_.equal_range(r.key.id());
	for (auto it = from; it != to; ++it) {
		sk8_job job{};
		if (ops_.find(it->second, &job) && r.key.mark() == job.mark && job.state < SK8_JOB_COMPLETED) {
			reply.ok = true;
			reply.job = share(job_from_abi(job));
			if (!r.required_node.empty() && job.state == SK8_JOB_PENDING)
				start(r, reply.job->ref, reply);
			return;
		}
	}
	if (clock_.monotonic() < full_until_) {
		reply.text = full_text_;
		return;
	}
	const std::string mark = r.key.mark(), gres = gres_request(r.gres);
	sk8_submit submit{};
	submit.mark = mark.c_str();
	submit.job_name = r.job_name.c_str();
	submit.uid = r.identity.uid;
	submit.gid = r.identity.gid;
	submit.account = r.identity.account.c_str();
	submit.partition = r.identity.partition.c_str();
	submit.qos = r.identity.qos.c_str();
	submit.reservation = r.identity.reservation.c_str();
	submit.wckey = r.wckey.c_str();
	submit.comment = r.comment.c_str();
	submit.features = r.features.c_str();
	submit.licenses = r.identity.licenses.c_str();
	submit.tres_per_node = gres.c_str();
	submit.cpus = r.cpus;
	submit.memory_mb = r.memory_mb;
	submit.time_limit_minutes = r.time_limit_minutes;
	submit.excluded_nodes = r.excluded_nodes.c_str();
	submit.required_node = r.required_node.c_str();
	submit.accrue_time = r.age.accrue_time;
	submit.given_priority = r.age.priority;
	submit.nice_set = r.nice.has_value();
	submit.nice = static_cast<std::int32_t>(r.nice.value_or(0));

	sk8_outcome out{};
	{
		MaskLift lift(holds_, r.key, !r.required_node.empty());
		submitting = true;
		ops_.submit(&submit, &out);
		submitting = false;
	}
	copy_outcome(out, reply);
	if (out.rc == EAGAIN) {
		full_until_ = clock_.monotonic() + full_pause;
		full_text_ = reply.text;
	}
	started(r.key, out.job_id, reply);
	give_devices(r, reply);
	if (reply.ok)
		metrics().jobs_submitted.add();
}

// Slurm had saved the pod's job before it started, and has forgotten that it did.
void SlurmWorker::start(const JobRequest &r, JobRef ref, SlurmReply &reply)
{
	const std::string mark = r.key.mark();
	sk8_outcome out{};
	{
		MaskLift lift(holds_, r.key, true);
		ops_.start(ref.id, ref.submit_time, mark.c_str(), r.required_node.c_str(), &out);
	}
	copy_outcome(out, reply);
	if (reply.ok)
		started(r.key, ref.id, reply);
	give_devices(r, reply);
}

void SlurmWorker::started(const PodKey &key, std::uint32_t id, SlurmReply &reply)
{
	sk8_job job{};
	reply.ok = id != 0 && ops_.find(id, &job);
	if (!reply.ok)
		return;
	reply.job = share(job_from_abi(job));
	remember(key, reply.job);
}

// Slurm has chosen some for a job that starts where its pod is, and from then on hides none of those that the pod has: under the
// same locks, so that nobody gets these. If another job has them the engine sees it, and asks again.
void SlurmWorker::give_devices(const JobRequest &r, SlurmReply &reply)
{
	if (!reply.ok || !reply.job->running() || reply.job->node != r.required_node)
		return;
	for (const Gres &g : r.devices) {
		const auto wanted = devices_named(r.devices, g.name), has = devices_named(reply.job->gres, g.name);
		if (wanted == has || wanted.size() != has.size())
			continue;
		SlurmReply given;
		run(SetDevices{reply.job->ref, {r.required_node, g.name, wanted, {}}}, given);
		for (const auto &[key, job] : given.changed)
			remember(key, reply.job = job);
	}
}

void SlurmWorker::run(const End &e, SlurmReply &reply)
{
	const std::string mark = e.key.mark();
	sk8_end end{};
	end.job_id = e.ref.id;
	end.submit_time = e.ref.submit_time;
	end.mark = mark.c_str();
	end.state = e.end.state;
	end.exit_code = e.end.exit_code;
	end.comment = e.end.comment.c_str();
	end.node = e.end.node.c_str();
	sk8_outcome out{};
	{
		MaskLift lift(holds_, e.key, !e.end.node.empty());
		ops_.end(&end, &out);
	}
	copy_outcome(out, reply);
}

void SlurmWorker::run(const Exclude &e, SlurmReply &reply)
{
	const std::string mark = e.key.mark();
	sk8_outcome out{};
	sk8_job now{};
	// An administrator may have been faster than we have seen.
	if (ops_.find(e.ref.id, &now) && !are_our_excluded_nodes(now.excluded_nodes)) {
		reply.text = "an administrator has chosen the nodes that the job excludes";
		return;
	}
	ops_.exclude(e.ref.id, e.ref.submit_time, mark.c_str(), e.nodes.c_str(), &out);
	copy_outcome(out, reply);
}

void SlurmWorker::run(const Spare &s, SlurmReply &reply)
{
	const std::string mark = s.key.mark();
	sk8_outcome out{};
	ops_.spare(s.ref.id, s.ref.submit_time, mark.c_str(), &out);
	copy_outcome(out, reply);
}

} // namespace sk8::core
