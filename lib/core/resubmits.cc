// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/resubmits.h"

#include <algorithm>
#include <utility>

#include "lib/base/doubling.h"
#include "lib/core/metrics.h"
#include "lib/core/names.h"
#include "lib/core/pod_log.h"

namespace sk8::core {

using enum Resubmit::Step;

Resubmits::Resubmits(const std::vector<Resubmit> &known, ResubmitPorts ports, std::function<void(const kube::PodPtr &)> made)
	: ports_(ports), told_made_(std::move(made))
{
	for (const Resubmit &r : known) {
		bytes_ += r.manifest.size();
		rows_[r.key.uid].what = r;
	}
}

void Resubmits::start(const std::function<bool(const std::string &)> &known,
		      const std::function<bool(const std::string &)> &made)
{
	std::vector<std::string> uids;
	for (const auto &[uid, row] : rows_)
		if (row.what.step == Resubmit::Step::made ? !made(uid) : !known(uid))
			uids.push_back(uid);
	for (const auto &uid : uids) {
		if (rows_.at(uid).what.step == Resubmit::Step::made)
			forget(uid); // and is gone by now
		else
			gone(uid);
	}
}

void Resubmits::save(const Row &row)
{
	ports_.holds.remember_resubmit(row.what);
	ports_.journal.resubmit(row.what);
}

void Resubmits::forget(const std::string &uid)
{
	auto it = rows_.find(uid);
	if (it == rows_.end())
		return;
	bytes_ -= it->second.what.manifest.size();
	ports_.holds.forget_resubmit(it->second.what.key);
	ports_.journal.forget_resubmit(it->second.what.key);
	rows_.erase(it);
}

void Resubmits::want(const PodKey &key, const Age &age)
{
	if (rows_.size() >= Resubmit::max_count && !rows_.contains(key.uid)) {
		log_pod(warning, key, 0, "is not made again: %zu others are to be", rows_.size());
		return;
	}
	Row &row = rows_[key.uid];
	const bool first = row.what.key.uid.empty();
	if (!first && row.what.age == age)
		return;
	row.what.key = key;
	row.what.age = age;
	if (first)
		row.what.unsure_since = ports_.timer.wall_seconds();
	save(row);
}

void Resubmits::arrived(const std::string &uid)
{
	auto it = rows_.find(uid);
	if (it != rows_.end() && std::exchange(it->second.what.unsure_since, 0))
		save(it->second);
}

const Resubmit *Resubmits::find(const std::string &uid) const
{
	auto it = rows_.find(uid);
	return it == rows_.end() ? nullptr : &it->second.what;
}

Result<void> Resubmits::keep(const std::string &uid, std::string manifest)
{
	if (bytes_ + manifest.size() > Resubmit::max_bytes)
		return Error{"too many pods are to be made again at a time"};
	Row &row = rows_.at(uid);
	bytes_ += manifest.size();
	row.what.step = kept;
	row.what.manifest = std::move(manifest);
	save(row);
	return {};
}

void Resubmits::drop(const std::string &uid, const std::string &why)
{
	auto it = rows_.find(uid);
	if (it == rows_.end())
		return;
	const PodKey key = it->second.what.key;
	forget(uid);
	if (why.empty())
		return;
	log_pod(warning, key, 0, "is not made again: %s", why.c_str());
	ports_.reports.event(key, {true, std::string(names::event_not_resubmitted), "it is not made again: " + why});
}

void Resubmits::gone(const std::string &uid)
{
	const Resubmit *r = find(uid);
	if (!r)
		return;
	if (r->step == wanted)
		drop(uid, "its object went before it could be read");
	else if (r->step == kept)
		create(uid);
}

// Anybody can write the annotation, but only onto a pod of this name in this namespace,
// which would be in the place of that one anyway.
const Resubmits::Row *Resubmits::row_of(const PodKey &pod, const std::string &from) const
{
	auto it = rows_.find(from);
	if (it == rows_.end() || it->second.what.key.ns != pod.ns || it->second.what.key.name != pod.name)
		return nullptr;
	return &it->second;
}

void Resubmits::seen(const PodKey &pod, const std::string &from)
{
	if (!row_of(pod, from))
		return;
	Row &row = rows_.at(from);
	if (row.what.step == kept)
		made(row, pod);
}

Age Resubmits::age_for(const PodKey &pod, const std::string &from) const
{
	const Row *row = row_of(pod, from);
	return row ? row->what.age : Age{};
}

void Resubmits::settled(const PodKey &pod, const std::string &from)
{
	if (row_of(pod, from))
		forget(std::string(from));
}

// ---- making it ----

KubePort::Done Resubmits::answer(const Row &row, void (Resubmits::*f)(Row &, const KubeReply &))
{
	return [this, uid = row.what.key.uid, f](const KubeReply &r) {
		auto it = rows_.find(uid);
		if (it == rows_.end())
			return;
		it->second.busy = false;
		(this->*f)(it->second, r);
	};
}

void Resubmits::create(const std::string &uid)
{
	Row &row = rows_.at(uid);
	if (row.busy || row.what.step != kept)
		return;
	auto object = Json::parse(row.what.manifest);
	if (!object)
		return drop(uid, "what was kept of it cannot be read: " + object.error().message);
	row.busy = true;
	ports_.kube.create_pod(row.what.key.ns, *object, answer(row, &Resubmits::created));
}

// Passing: no answer, a right or room that is missing, an overloaded or broken server.
static bool may_pass(int status)
{
	return status / 100 != 4 || status == 401 || status == 403 || status == 408 || status == 429;
}

void Resubmits::created(Row &row, const KubeReply &r)
{
	if (row.what.step != kept)
		return; // it was seen meanwhile
	if (r.ok() && r.pod) {
		made(row, key_of(row.what.key.cluster, r.pod->meta));
		return told_made_(r.pod);
	}
	if (r.status == 409 || r.ok())
		return look(row); // the old one is still there, or ours is, whose answer was lost
	if (may_pass(r.status))
		return later(row, r);
	drop(std::string(row.what.key.uid), r.error);
}

void Resubmits::look(Row &row)
{
	row.busy = true;
	ports_.kube.get_pod(row.what.key, answer(row, &Resubmits::looked));
}

void Resubmits::looked(Row &row, const KubeReply &r)
{
	const std::string uid = row.what.key.uid;
	if (row.what.step != kept)
		return;
	if (!r.ok() || !r.pod || r.pod->meta.uid == uid)
		return later(row, r);
	if (row_of(row.what.key, resubmitted_from(*r.pod)) == &row) {
		made(row, key_of(row.what.key.cluster, r.pod->meta));
		return told_made_(r.pod);
	}
	drop(uid, "somebody made another pod of its name");
}

void Resubmits::made(Row &row, const PodKey &pod)
{
	bytes_ -= row.what.manifest.size();
	row.what.manifest.clear();
	row.what.step = Resubmit::Step::made;
	save(row);
	metrics().pods_resubmitted.add();
	log_pod(info, row.what.key, 0, "made again, with uid %s", pod.uid.c_str());
	ports_.reports.event(pod, {false, std::string(names::event_resubmitted),
				   "made again in the place of " + row.what.key.uid + ", from which Slurm took its node; its job keeps its age"});
}

static constexpr Millis first_delay{500}, longest_delay{30'000};

void Resubmits::later(Row &row, const KubeReply &r)
{
	const Millis delay = doubled(first_delay, longest_delay, row.failures++);
	if (row.failures == 4)
		log_pod(warning, row.what.key, 0, "cannot be made again yet; tried on%s%s", r.error.empty() ? "" : ": ", r.error.c_str());
	row.busy = true;
	ports_.timer.after(std::max(delay, r.retry_after.value_or(Millis(0))), [this, uid = row.what.key.uid] {
		auto it = rows_.find(uid);
		if (it == rows_.end())
			return;
		it->second.busy = false;
		create(uid);
	});
}

} // namespace sk8::core
