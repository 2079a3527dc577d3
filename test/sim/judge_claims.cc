// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/judge_claims.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "test/sim/claim_controllers.h"

namespace sk8::sim {

using State = Container::State;

void Judge::look_at_claims(const ModelClaims &claims, ClaimWatch &watch)
{
	claims_ = std::make_unique<Claims>(*this, claims, watch);
	watch.on_claim = [this](const auto &claim) { claims_->claim_told(*claim); };
	watch.on_served = [this] { claims_->all_served(); };
}

void Judge::claims_after_loss()
{
	if (claims_)
		claims_->state_lost();
}

void Judge::binding_by_us(const core::PodKey &key)
{
	pods_.at(key.uid).may_arrive++;
	pods_.at(key.uid).said = false; // what was said is of what it held before
	if (claims_)
		claims_->binding_sent(key);
}

void Judge::claim_patch_by_us(const kube::ResourceClaim &claim, const Json &patch)
{
	claims_->patch_sent(claim, patch);
}

static bool meet(const std::vector<std::uint16_t> &a, const std::vector<std::uint16_t> &b)
{
	return std::ranges::find_first_of(a, b) != a.end();
}

static std::string indices(const std::vector<std::uint16_t> &devices)
{
	return core::index_list(devices);
}

// ---- what the engine knows of foreign pods ----

// By those claims, where those drivers are.
Judge::Claims::Devices Judge::Claims::devices_of(const PodTruth &t, const std::string &uid, const ClaimMap &claims,
						 const SliceMap &slices) const
{
	std::set<std::uint16_t> out;
	const kube::PodPtr pod = judge_.api_.pod(t.name);
	if (!judge_.is_there(pod, uid) || pod->node_name.empty() || !slices.contains(pod->node_name))
		return {};
	for (const auto &c : pod->resource_claims) {
		const auto claim = claims.find({pod->meta.ns, c.claim});
		if (claim == claims.end() || !is_reserved(*claim->second, uid))
			continue;
		for (auto d : devices_on(*claim->second, pod->node_name))
			out.insert(d);
	}
	return {out.begin(), out.end()};
}

// It goes on having them until its end, whatever is told later.
void Judge::Claims::told_of(const std::string &uid)
{
	PodTruth &t = judge_.pods_.at(uid);
	if (!t.foreign || !t.known)
		return;
	Devices all;
	std::ranges::set_union(t.told_devices, devices_of(t, uid, watch_.told(), watch_.told_slices()), std::back_inserter(all));
	t.told_devices = std::move(all);
}

void Judge::Claims::foreign_told(const std::string &uid)
{
	seen_.insert(uid);
	told_of(uid);
}

void Judge::Claims::claim_told(const kube::ResourceClaim &claim)
{
	for (const auto &uid : seen_)
		if (const kube::PodPtr pod = judge_.api_.pod(judge_.pods_.at(uid).name);
		    judge_.is_there(pod, uid) && pod->meta.ns == claim.meta.ns && kube::has_claim(pod->resource_claims, claim.meta.name))
			told_of(uid);
}

void Judge::Claims::all_served()
{
	served_.clear();
	for (const auto &[node, slice] : watch_.told_slices())
		served_.insert(node);
	for (const auto &uid : seen_)
		told_of(uid);
}

void Judge::Claims::engine_starts()
{
	seen_.clear();
	served_.clear();
}

void Judge::Claims::crashed(const core::Ledger &on_disk)
{
	for (auto &[uid, t] : judge_.pods_)
		t.told_devices.clear();
	for (const core::Hold &h : on_disk.holds)
		if (PodTruth &t = judge_.pods_.at(h.key.uid); t.foreign)
			t.told_devices = core::devices_named(h.gres, "gpu");
}

void Judge::Claims::state_lost()
{
	for (auto &[uid, t] : judge_.pods_)
		t.told_devices.clear();
}

// ---- two have one ----

// All that is left to know it from, see above.
bool Judge::Claims::cannot_be_read(const Container &c) const
{
	const bool freed = std::ranges::any_of(c.claims, [&](const ClaimName &name) {
		const auto claim = claims_.find(name);
		return !claim || !is_reserved(*claim, c.uid);
	});
	const bool told = served_.contains(c.node) && watch_.told_slices().contains(c.node);
	return judge_.state_lost_ && (freed || !claims_.has_driver(c.node) || !told);
}

void Judge::Claims::job_started(const SlurmJob &job)
{
	if (job.devices.empty())
		return;
	const auto own = core::PodKey::from_mark(job.mark);
	for (auto &[uid, t] : judge_.pods_)
		if (t.known_to_come) // of claims that it will be told of before anything starts
			t.told_devices = devices_of(t, uid, claims_.all(), claims_.slices());
	judge_.check_told_devices(job);
	for (const auto &[key, c] : judge_.kubelet_->containers()) {
		const PodTruth &t = judge_.pods_.at(c.uid);
		if (c.node != job.node || c.state != State::running || (own && own->uid == c.uid) || t.foreign || t.unknown ||
		    !meet(c.devices, job.devices) || cannot_be_read(c))
			continue;
		judge_.violation("I1: job " + std::to_string(job.id) + " gets GPUs " + indices(job.devices) + " of " + job.node + ", and " +
				 name_of("pod", c.pod, c.uid) + " has claimed " + indices(c.devices));
	}
}

bool Judge::Claims::share_a_claim(const Container &a, const Container &b) const
{
	return std::ranges::any_of(a.claims, [&](const ClaimName &name) { return std::ranges::find(b.claims, name) != b.claims.end(); });
}

// kube-scheduler gave a claim of it what it has, or gave somebody else a part of it when nobody had it for Slurm any more.
bool Judge::Claims::given_by_others(const Container &c) const
{
	return std::ranges::any_of(c.claims, [&](const ClaimName &name) {
		const auto claim = claims_.find(name);
		const auto given = given_.find(name);
		const bool foreign = claim && std::ranges::any_of(claim->reserved_for, [&](const auto &uid) {
			const auto other = judge_.pods_.find(uid);
			return other != judge_.pods_.end() && other->second.foreign;
		});
		return claim && (foreign || given == given_.end() || given->second != claim->devices);
	});
}

void Judge::Claims::container_started(const Container &c)
{
	if (c.devices.empty() || judge_.pods_.at(c.uid).foreign || given_by_others(c))
		return;
	const std::string who = "I1: " + name_of("pod", c.pod, c.uid) + " starts on " + c.node + " with GPUs " + indices(c.devices) +
				", of which ";
	for (const BatchProcess &p : judge_.slurm_->processes())
		if (p.node == c.node && !p.forgotten && meet(p.devices, c.devices))
			judge_.violation(who + "job " + std::to_string(p.job_id) + " has " + indices(p.devices));
	for (const auto &[key, other] : judge_.kubelet_->containers()) {
		const PodTruth &t = judge_.pods_.at(other.uid);
		if (other.node == c.node && other.uid != c.uid && other.state == State::running && !t.foreign && !t.unknown &&
		    meet(other.devices, c.devices) && !share_a_claim(other, c) && !cannot_be_read(other))
			judge_.violation(who + name_of("pod", other.pod, other.uid) + " has " + indices(other.devices));
	}
}

// ---- what is written ----

static bool has(const kube::ResourceClaim &claim, const kube::AllocatedDevice &device)
{
	return std::ranges::any_of(claim.devices, [&](const auto &d) { return d.pool == device.pool && d.device == device.device; });
}

void Judge::Claims::patch_sent(const kube::ResourceClaim &claim, const Json &patch)
{
	const ClaimName own{claim.meta.ns, claim.meta.name};
	const Json consumers = patch["status"]["reservedFor"];
	if (consumers.size() > 1)
		shared_.emplace(own, consumers.at(consumers.size() - 1)["uid"].str());
	const Json results = patch["status"]["allocation"]["devices"]["results"];
	if (results.size() > 0)
		given_[own].clear();
	results.each_item([&](const Json &r) {
		const kube::AllocatedDevice device{std::string(r["request"].str()), claim_class, std::string(r["pool"].str()),
						   std::string(r["device"].str())};
		given_[own].push_back(device);
		for (const auto &[name, other] : watch_.told()) {
			const auto now = claims_.find(name);
			if (name != own && has(*other, device) && now && has(*now, device))
				judge_.violation("I1: claim " + claim.meta.name + " is to get device " + device.device + " of " + device.pool +
						 ", which claim " + name.second + " has, as the engine was told");
		}
	});
}

void Judge::Claims::binding_sent(const core::PodKey &key)
{
	const kube::PodPtr pod = judge_.api_.pod(key.name);
	if (!judge_.is_there(pod, key.uid) || pod->resource_claims.empty() || is_done(*pod))
		return;
	const std::string who = name_of("pod", key.name, key.uid);
	const SlurmJob *job = nullptr;
	for (const auto &[id, j] : judge_.slurm_->jobs())
		if (j.running() && j.mark == core::PodKey{"c", key.ns, key.name, key.uid}.mark())
			job = &j;
	Devices all, alone;
	for (const auto &c : pod->resource_claims) {
		const auto claim = claims_.find({key.ns, c.claim});
		if (!claim || !claim->allocated || !is_reserved(*claim, key.uid))
			return judge_.violation("I1: the Binding of " + who + " is sent, and its claim " + c.claim + " is not for it");
		// Others had what it was to have alone, before it was bound.
		if (job && claim->reserved_for.size() > 1 && !meet(devices_on(*claim, job->node), job->devices))
			shared_.insert({{key.ns, c.claim}, key.uid});
		for (auto d : job ? devices_on(*claim, job->node) : Devices()) {
			all.push_back(d);
			if (claim->reserved_for.size() == 1 && !shared_.contains({{key.ns, c.claim}, key.uid}))
				alone.push_back(d);
		}
	}
	std::ranges::sort(all);
	std::ranges::sort(alone);
	const bool fits = !job || (std::ranges::includes(all, job->devices) && std::ranges::includes(job->devices, alone));
	if (!fits && !judge_.pods_.at(key.uid).two_jobs)
		judge_.violation("I1: the Binding of " + who + " is sent, whose claims have devices " + indices(all) + " of " + job->node +
				 ", and its job " + indices(job->devices));
}

// ---- where it runs ----

bool Judge::Claims::has_claims_alone(const Container &c) const
{
	return std::ranges::all_of(c.claims, [&](const ClaimName &name) {
		const auto claim = watch_.told().find(name);
		const auto now = claims_.find(name);
		return claim != watch_.told().end() && claim->second->reserved_for == std::vector{c.uid} && now &&
		       now->reserved_for == claim->second->reserved_for && !shared_.contains({name, c.uid});
	});
}

void Judge::Claims::check_devices(const Container &c)
{
	static constexpr Micros within = 60 * second;
	PodTruth &t = judge_.pods_.at(c.uid);
	const SlurmJob *job = c.state == State::running && !t.foreign ? judge_.job_there(c) : nullptr;
	const bool due = job && job->devices != c.devices && !t.two_jobs && has_claims_alone(c) &&
			 watch_.told_slices().contains(c.node) && judge_.can_be_corrected(c, *job);
	if (!due)
		t.others_since = -1;
	else if (t.others_since < 0)
		t.others_since = judge_.time_.now();
	if (due && judge_.time_.now() - std::max({t.others_since, judge_.bad_at_, judge_.away_at_}) > within)
		judge_.violation("I2: for a minute job " + std::to_string(job->id) + " has had GPUs " + indices(job->devices) + " of " +
				 c.node + " in Slurm, and " + name_of("pod", c.pod, c.uid) + " has claimed " + indices(c.devices));
}

// The job of a pod that had them first has ended, and others have them by then: from then on they are no job's.
void Judge::Claims::note_shared()
{
	for (const auto &[name, claim] : claims_.all())
		for (const auto &uid : claim->reserved_for.size() > 1 ? claim->reserved_for : std::vector<std::string>()) {
			const bool of_job = std::ranges::any_of(judge_.slurm_->jobs(), [&, claim = claim](const auto &at) {
				const auto key = core::PodKey::from_mark(at.second.mark);
				return at.second.running() && key && key->uid == uid && meet(devices_on(*claim, at.second.node), at.second.devices);
			});
			if (!of_job)
				shared_.insert({name, uid});
		}
}

void Judge::Claims::check()
{
	if (judge_.slurm_->up())
		note_shared();
	if (judge_.time_.now() < looked_at_ + second || !judge_.slurm_->up())
		return;
	looked_at_ = judge_.time_.now();
	for (const auto &[key, c] : judge_.kubelet_->containers())
		if (!c.devices.empty())
			check_devices(c);
}

std::int64_t Judge::Claims::missing(const std::string &node) const
{
	const auto slice = watch_.told_slices().find(node);
	return slice == watch_.told_slices().end() ? 0 : std::ranges::count(slice->second->devices, true, &kube::Device::tainted);
}

// ---- the end ----

// excused: something waits for a person.
std::string Judge::Claims::unfinished(bool excused) const
{
	for (const auto &[name, claim] : claims_.all()) {
		const bool waits = std::ranges::any_of(judge_.api_.pods(), [&](const auto &at) {
			const kube::Pod &pod = *at.second;
			const bool may = excused || (judge_.excuses_ && judge_.needs_person(pod.meta.uid, ""));
			return may && !is_done(pod) && pod.meta.ns == name.first && kube::has_claim(pod.resource_claims, name.second);
		});
		if (waits)
			continue;
		if (!claim->reserved_for.empty() || claim->allocated)
			return "claim " + name.second + " still has devices";
		if (!claims_.owner(name).empty())
			return "claim " + name.second + " is still there, which was made from a template";
	}
	return "";
}

} // namespace sk8::sim
