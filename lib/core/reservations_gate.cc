// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The reservations controller's part for jobs in the gate.
#include <algorithm>

#include "lib/base/doubling.h"
#include "lib/base/text.h"
#include "lib/core/reservation_log.h"
#include "lib/core/reservations.h"
#include "lib/core/service_account.h"

namespace sk8::core {

static constexpr Millis longest_requeue{120'000};
static constexpr std::size_t max_refusals = 10'000;

void Reservations::judge(Entry &e)
{
	if (!ready() && (e.job->exclusive || may_have_pods(*e.job)))
		return;
	if (!ready()) { // what is masked is known before Kubernetes is
		const std::string why = taken(e);
		return why.empty() ? open(e) : refuse(e, why);
	}
	const ExclusiveWord empty = word(e);
	if (empty.is == ExclusiveWord::Is::refused)
		return refuse(e, empty.why);
	if (empty.is == ExclusiveWord::Is::waits) {
		e.waited_for_nodes = true;
		return;
	}
	e.waited_for_nodes |= sleeps(e);
	if (const std::string why = taken(e); !why.empty())
		return refuse(e, why);
	if (e.nameless)
		return refuse(e, "the name of user " + std::to_string(e.job->user_id) + " is not known on the controller");
	if (const std::string why = container_trouble(e); !why.empty())
		return end(e, why);
	for (const auto &[node, p] : e.pods)
		if (p.wanted && p.to_go() && p.ours() && e.job->requeues)
			return refuse(e, std::string(p.trouble)); // that of a shared one is forgotten meanwhile
	if (!std::ranges::all_of(e.pods, [&](const auto &at) { return may_start(e, at.second); }))
		return;
	for (const auto &[node, p] : e.pods)
		if (const std::string why = claimed_taken(e, p); !why.empty())
			return refuse(e, why);
	open(e);
}

ExclusiveWord Reservations::word(const Entry &e) const
{
	return ports_.exclusive && e.in_gate && e.job->exclusive ? ports_.exclusive->word(*e.job) : ExclusiveWord{};
}

// Slurm asks the gate before it wakes the job's nodes, and sees to it that they do not take for ever (ResumeTimeout). Before
// that no kubelet can say anything.
bool Reservations::sleeps(const Entry &e) const
{
	return std::ranges::any_of(e.pods, [&](const auto &at) { return at.second.wanted && nodes_.asleep(at.first); });
}

bool Reservations::may_start(const Entry &e, const Pod &p)
{
	if (!p.wanted)
		return true;
	return p.admitted && !p.too_small() && (!has_container(e, p) || p.container.runs) && (p.shared || compare_devices(e, p) == Devices::same) &&
	       compare_claims(e, p) == Devices::same;
}

// known: drivers' devices are.
std::string Reservations::bad_claims(const Entry &e, bool known)
{
	if (!e.more || !claims_devices(**e.more))
		return "";
	if (!known)
		return "it has resourceClaims, and clusters[].resources in slurm-k8s.yaml names no deviceClass, so they are of none of Slurm's devices";
	if (const std::string &claim = (*e.more)->one_claim; !claim.empty() && e.job->shares.size() > 1)
		return "ResourceClaim " + one_line(claim, 64) + " has devices of one node, and the job has " + std::to_string(e.job->shares.size()) +
		       ": give a resourceClaimTemplateName, of which each node's pod gets a claim of its own";
	return "";
}

// What its user wants is nothing that anybody could make, wherever it is queued again.
std::string Reservations::bad_wish(const Entry &e) const
{
	const std::string &image = image_of(*e.job, more(e));
	if (e.more && !*e.more)
		return "--k8s-template: " + e.more->error().message;
	if (!e.bad_account.empty())
		return "--k8s-service-account: " + e.bad_account;
	if (image.empty() && e.job->pod_template.empty())
		return "--k8s-service-account: the token is for the job's container, give --k8s-image, too";
	if (image.empty())
		return "--k8s-template: no image is named, give one to its container \"job\", or --k8s-image";
	if (const std::string why = bad_image(image); !why.empty())
		return "--k8s-image " + why;
	if (!e.job->service_account.empty() && e.more && takes_token_folder(**e.more))
		return "--k8s-template: container job mounts a volume where the token of its service account is, or a claim or host path above it, "
		       "on " SK8_TOKEN_FOLDER;
	if (const std::string why = bad_claims(e, ports_.dra && ports_.dra->wanted()); !why.empty())
		return "--k8s-template: " + why;
	for (const NativeShare &share : e.job->shares)
		if (const std::string why = e.more ? does_not_fit(**e.more, share) : ""; !why.empty())
			return "--k8s-template: " + why;
	return "";
}

// One that runs already may have been allowed more by former settings: a pod that is made again does not have it.
NativeJob Reservations::as_allowed(const Entry &e)
{
	NativeJob out = *e.job;
	if (!e.bad_account.empty())
		out.service_account.clear();
	return out;
}

// No pod is made for a job that judge() ends at once.
bool Reservations::is_hopeless(const Entry &e) const
{
	return e.in_gate && e.job->wants_container() && !bad_wish(e).empty();
}

std::string Reservations::mount_text(const std::string &node, const Pod &p)
{
	const bool of_token = p.mount_trouble.find("\"" + std::string(account_volume) + "\"") != std::string::npos;
	return std::string(of_token ? "--k8s-service-account" : "--k8s-template") + ": on node " + node + " a volume cannot be mounted: " + p.mount_trouble;
}

// Why the container that its user wants will never run. Where none of them is to be on nodes of this cluster, another one may allow more.
std::string Reservations::container_trouble(const Entry &e) const
{
	if (std::ranges::none_of(e.pods, [&](const auto &at) { return at.second.wanted && has_container(e, at.second); }))
		return "";
	if (const std::string why = bad_wish(e); !why.empty())
		return why;
	for (const auto &[node, p] : e.pods) {
		if (p.wanted && p.lacks_claims() && is_lasting_mount_trouble(p.mount_trouble))
			return "--k8s-template: on node " + node + " a resource claim cannot be made: " + p.mount_trouble;
		if (p.wanted && !p.wrong_claims.empty())
			return "--k8s-template: " + p.wrong_claims;
		if (p.wanted && !p.container.trouble.empty())
			return "image " + image_of(*e.job, more(e)) + " on node " + node + ": " + p.container.trouble;
		if (p.wanted && !p.to_place && !p.container.runs && is_lasting_mount_trouble(p.mount_trouble))
			return mount_text(node, p);
		if (p.wanted && !e.job->service_account.empty() && is_unknown_account(p.trouble))
			return "--k8s-service-account: " + p.trouble;
	}
	return "";
}

// A kubelet tries for ever to mount what is not there, and says so in events only; so does who makes claims.
void Reservations::look_at_volumes(Id id)
{
	const auto entry = entries_.find(id);
	if (entry == entries_.end() || !entry->second.in_gate)
		return;
	for (const auto &[node, p] : entry->second.pods) {
		if (!p.wanted || p.uid.empty() || !(p.admitted || p.to_place) || !has_container(entry->second, p) || p.container.runs)
			continue;
		const auto lacks = p.to_place ? ReservationPort::Lacks::claim : ReservationPort::Lacks::volume;
		ports_.kube.find_trouble({settings_.name, settings_.reservations.ns, p.name, p.uid}, lacks,
					 [this, id, node = node, uid = p.uid, to_place = p.to_place](const std::string &message) {
			auto it = entries_.find(id);
			if (it == entries_.end() || it->second.pods.at(node).uid != uid || it->second.pods.at(node).to_place != to_place)
				return;
			it->second.pods.at(node).mount_trouble = message;
			sync(id);
		});
	}
	ports_.timer.after(time_to_mount, [this, id] { look_at_volumes(id); });
}

// It is cancelled, and leaves the gate as any job that is cancelled there.
void Reservations::end(Entry &e, const std::string &why)
{
	if (e.asked != Asked::no)
		return;
	e.asked = Asked::waits;
	log_job(info, e.job->ref, "cancelled: %s", why.c_str());
	ports_.slurm.end(e.job->ref, false, why, [this, id = Id{e.job->ref.id, e.job->ref.submit_time}, why](const SlurmReply &r) {
		auto it = entries_.find(id);
		if (r.ok || it == entries_.end() || !it->second.in_gate)
			return;
		it->second.asked = Asked::refused; // never launched without its container
		refuse(it->second, why);
		sync(id);
	});
}

// Slurm gives nobody what is masked. But a slurmctld that was killed may have forgotten that this
// job ended in the gate, and that a pod got what it had. Where its pod holds all that it has the kubelet says so.
std::string Reservations::taken(const Entry &e) const
{
	for (const NativeShare &share : e.job->shares) {
		auto it = e.pods.find(share.node);
		if (it != e.pods.end() && it->second.wanted && !it->second.devices_only)
			continue;
		if (const std::string why = taken_text(share, ports_.taken_by); !why.empty())
			return why;
	}
	return "";
}

// Of what its claims get no kubelet says anything.
std::string Reservations::claimed_taken(const Entry &e, const Pod &p) const
{
	if (!e.in_gate || !p.wanted || !has_claims(e, p))
		return "";
	NativeShare claimed{p.share.node, 0, 0, p.share.gres, {}};
	std::erase_if(claimed.gres, [this](const Gres &g) { return !is_claimed(g.name); });
	return taken_text(claimed, ports_.taken_by);
}

void Reservations::open(Entry &e)
{
	e.in_gate = false;
	refusals_.erase(e.job->ref.id);
	if (ports_.exclusive)
		ports_.exclusive->answered(e.job->ref, true);
	for (auto &[node, p] : e.pods)
		if (p.shared)
			tell_shared(e, p); // it runs from now on
	ports_.slurm.answer(e.job->ref, {});
}

void Reservations::send_back(const NativeJob &job, const std::string &why, Millis delay)
{
	log_job(info, job.ref, "%s: %s", job.requeues ? "back into the queue" : "not started", why.c_str());
	ports_.slurm.answer(job.ref, not_started(why, delay));
}

// Two jobs whose pods have got the devices of one another are refused together: started together they may be so for ever.
static Millis pause_before(JobRef job, int refusals)
{
	if (refusals == 0)
		return Millis(0);
	const Millis delay = doubled(Millis(1'000), longest_requeue, refusals - 1);
	return delay < Millis(8'000) ? delay : delay + delay * (job.id % 4) / 8;
}

// It goes back into the queue, or ends: job_fini comes, and its pods go.
void Reservations::refuse(Entry &e, const std::string &why)
{
	if (refusals_.size() > max_refusals)
		refusals_.clear();
	const int before = refusals_[e.job->ref.id]++;
	if (ports_.exclusive)
		ports_.exclusive->answered(e.job->ref, false);
	const Millis delay = pause_before(e.job->ref, before);
	e.in_gate = false;
	e.ending = true;
	if (!e.perhaps_launched)
		not_wanted(e);
	send_back(*e.job, why, delay);
	if (e.perhaps_launched)
		keep_to_the_end(e);
	for (auto &[node, p] : e.pods)
		step(e, p);
	look_at_neighbours();
}

// Refused in the second of its submission, and started anew: Slurm has made its submit time, by which its runs are told apart,
// one second more, and what it was again (job_mgr.c: who requeues a job in the gate comes to batch_requeue_fini() twice). The
// pods of this run have the names of those that go, so it waits until they have gone.
void Reservations::arrived_again(Entry &former, const NativeJobPtr &job)
{
	if (!std::exchange(former.again, job))
		ports_.timer.after(settings_.nodes.gate_timeout, [this, id = Id{job->ref.id, job->ref.submit_time}] { timeout(id); });
}

void Reservations::not_wanted(Entry &e)
{
	for (auto &[node, p] : e.pods) {
		p.wanted = false;
		cover(e, p);
	}
}

void Reservations::timeout(Id id)
{
	auto it = entries_.find(id);
	if (it == entries_.end())
		return;
	Entry &e = it->second;
	if (const NativeJobPtr again = std::exchange(e.again, nullptr)) {
		if (ports_.exclusive)
			ports_.exclusive->answered(again->ref, false);
		return send_back(*again, "the reservation pod of its former start has not gone", Millis(0));
	}
	if (!e.in_gate)
		return;
	if (ready() && std::exchange(e.waited_for_nodes, word(e).is == ExclusiveWord::Is::waits || sleeps(e))) {
		ports_.timer.after(settings_.nodes.gate_timeout, [this, id] { timeout(id); }); // of its kubelets, from now on
		return;
	}
	std::string why = pods_listed_ && ports_.dra && !ports_.dra->synced() ? "the cluster's resource claims and devices have not been listed yet"
									      : "Kubernetes has not told which nodes and pods there are";
	bool room = ready();
	for (const auto &[node, p] : e.pods) {
		room &= !p.wanted || p.admitted;
		if (p.wanted && !p.admitted)
			why = p.trouble.empty() ? "the kubelet of node " + node + " has not said that there is room" : p.trouble;
		else if (p.wanted && p.too_small())
			why = p.trouble;
		else if (p.wanted && !p.shared && compare_devices(e, p) != Devices::same)
			why = p.other_devices ? p.trouble : "the agent of node " + node + " has not said which devices the job's pod has";
		else if (p.wanted && compare_claims(e, p) != Devices::same)
			why = "what the resource claims of the job's pod on node " + p.share.node + " have is not known";
		else if (!may_start(e, p))
			why = p.mount_trouble.empty() ? "image " + image_of(*e.job, more(e)) + " on node " + node + ": its container does not run yet"
						      : mount_text(node, p);
	}
	if (room && e.job->wants_container() && !std::exchange(e.waits_for_image, true)) {
		ports_.timer.after(settings_.reservations.image_timeout, [this, id] { timeout(id); });
		return;
	}
	refuse(e, why);
	sync(id);
}

} // namespace sk8::core
