// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What of a bare pod's end leads to its being made again (resubmits.h).
#include "lib/core/pods_controller.h"

#include "lib/core/pod_end.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

// Of the job in whose place it gets one; nothing if there was none.
Age PodsController::age_of(const Entry &e) const
{
	return e.age.accrue_time ? e.age : resubmits_.age_for(e.key, e.made_from);
}

static bool lost_its_node(const Job &job)
{
	return job.preempted() || job.state == SK8_JOB_PREEMPTED || job.state == SK8_JOB_NODE_FAIL;
}

// Its DELETE is about to be sent. One that is being deleted already is so by others: they do
// not want it any more. True: it is to be made again.
bool PodsController::want_again(const Entry &e)
{
	if (e.pod->meta.deleting || !lost_its_node(*e.job) || !may_be_resubmitted(*e.pod, settings_))
		return false;
	resubmits_.want(e.key, e.job->age);
	return true;
}

// No DELETE of ours has arrived, for sure: who deletes it from now on may be another. The next one
// of ours has its own wish.
void PodsController::forget_refused_wish(Entry &e)
{
	const Resubmit *again = resubmits_.find(e.key.uid);
	if (again && again->step == Resubmit::Step::wanted && !e.delete_arrived)
		resubmits_.drop(e.key.uid, "");
}

// It is being deleted. Not by us: who did that does not want it again. While our DELETE is under way
// its answer decides, also if a list came in between that is older than both.
void PodsController::see_deletion(Entry &e)
{
	const Resubmit *again = resubmits_.find(e.key.uid);
	if (!again || !e.pod || !e.pod->meta.deleting || e.delete_sent || e.op == Op::deleting)
		return;
	if (!e.delete_arrived)
		resubmits_.drop(e.key.uid, "");
	else if (deleted_by_others_first(*again, *e.pod))
		resubmits_.drop(e.key.uid, "it had been deleted before Slurm took its node");
}

// Did it end because it was deleted, or with its node? What ended by itself has its result.
bool PodsController::ended_by_itself(const Entry &e) const
{
	if (ended_with_its_node(*e.pod))
		return false;
	switch (end_of_pod(e.pod.get(), PodState::over, "", e.deleted_alive_at).state) {
	case SK8_JOB_CANCELLED:
		return false;
	case SK8_JOB_COMPLETED:
		return true;
	default: // of a job that nobody knows any more: rather once more than never
		return e.job && e.job->state != SK8_JOB_NODE_FAIL;
	}
}

// Nothing of it runs any more. True: its manifest is asked for first.
bool PodsController::reads_manifest(Entry &e)
{
	const Resubmit *again = resubmits_.find(e.key.uid);
	if (!again || again->step != Resubmit::Step::wanted)
		return false;
	if (ended_by_itself(e)) {
		resubmits_.drop(e.key.uid, "");
		return false;
	}
	e.op = Op::reading;
	ports_.kube.get_manifest(e.key, [this, uid = e.key.uid](const KubeReply &r, const Json &object) {
		auto it = entries_.find(uid);
		if (it == entries_.end() || it->second.op != Op::reading)
			return;
		it->second.op = Op::none;
		manifest_read(it->second, r, object);
		sync(uid);
	});
	return true;
}

// What is to be made again is kept, and our DELETE never arrived.
bool PodsController::is_to_go(const Entry &e) const
{
	const Resubmit *again = resubmits_.find(e.key.uid);
	return again && again->step == Resubmit::Step::kept && !e.pod->meta.deleting;
}

// It is to be made again, since nothing of it ran any more, and waits for a node: what tells so is older than its Binding, or etcd is.
bool PodsController::comes_back(const kube::Pod &pod) const
{
	const Resubmit *again = resubmits_.find(pod.meta.uid);
	return again && again->step == Resubmit::Step::kept && pod.node_name.empty() && !pod.meta.deleting;
}

// A GET has told of it: etcd was restored from a backup. It is there itself, so no other one is made, and its job has the age.
void PodsController::see_back(Entry &e)
{
	if (!comes_back(*e.pod))
		return;
	e.age = resubmits_.find(e.key.uid)->age;
	resubmits_.drop(e.key.uid, "");
}

// It is known from now on: etcd may forget it before a watch has told of it.
void PodsController::made_again(const kube::PodPtr &pod)
{
	Entry &e = entry(key_of(settings_.name, pod->meta));
	e.watched = true; // the watch will tell of it, however late
	if (!e.pod)
		set_pod(e, pod);
	sync(pod->meta.uid);
}

void PodsController::manifest_read(Entry &e, const KubeReply &r, const Json &object)
{
	if (r.status == 404)
		return doubt(e);
	if (!r.ok())
		return refused(e, "its object could not be read, to make it again: ", r);
	auto manifest = resubmitted_manifest(object, e.key);
	if (!manifest) {
		resubmits_.drop(e.key.uid, manifest.error().message);
	} else if (auto kept = resubmits_.keep(e.key.uid, std::move(*manifest)); !kept) {
		return back_off(e, kept.error().message);
	}
	succeeded(e);
}

} // namespace sk8::core
