// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/gone_pods.h"

#include <algorithm>
#include <utility>

#include "lib/core/lost_pods.h"

namespace sk8::agent {

// Its cgroup was here with processes and is not here any more: two looks say so.
static constexpr Millis quiet_after_it_ran{4'000};
// The kubelet's watch of its pods comes back within a minute (client-go's reflector: 30 s, doubled by its jitter), and every
// two seconds it looks at what it has and should not have.
static constexpr Millis quiet_without_cgroup{120'000};
// One that mounts volumes, for which a kubelet waits 2 min 3 s (volume_manager.go, podAttachAndMountTimeout), may
// start a container after that, before it looks again whether the pod is still wanted.
static constexpr Millis quiet_in_empty_cgroup{300'000};

void GonePods::ask(const std::set<std::string> &words)
{
	std::erase_if(pods_, [&](const auto &pod) { return !words.contains(pod.first); });
	for (const std::string &word : words)
		pods_.try_emplace(word);
	if (!pods_.empty())
		return;
	renewed_.clear(); // nobody looks any more
	heard_since_.reset();
}

void GonePods::blind()
{
	for (auto &[word, pod] : pods_) {
		pod.quiet_since.reset();
		pod.runs = pod.gone = false;
	}
}

// The first time that is read may be of any age.
void GonePods::hear(const GoneLook &found)
{
	if (found.lease && found.lease->renewed != renewed_) {
		if (!std::exchange(renewed_, found.lease->renewed).empty() && !heard_since_)
			heard_since_ = found.at;
		renewed_at_ = found.at;
	}
	if (heard_since_ && (!found.lease || found.at - renewed_at_ > found.lease->lasts))
		heard_since_.reset();
}

bool GonePods::judge(const Pod &pod, bool has_cgroup, Millis now) const
{
	if (pod.ran && !has_cgroup)
		return now - *pod.quiet_since >= quiet_after_it_ran;
	if (!place_ || !heard_since_)
		return false;
	return now - std::max(*pod.quiet_since, *heard_since_) >= (has_cgroup ? quiet_in_empty_cgroup : quiet_without_cgroup);
}

void GonePods::look(const GoneLook &found)
{
	hear(found);
	place_ |= std::ranges::any_of(found.cgroups, [&](const auto &pod) { return found.objects.contains(pod.first); });
	for (auto &[word, pod] : pods_) {
		const std::string uid(core::uid_of_lost(word));
		const auto cgroup = found.cgroups.find(uid);
		const bool has_cgroup = cgroup != found.cgroups.end();
		pod.runs = has_cgroup && cgroup->second;
		pod.ran |= pod.runs;
		if (pod.runs || found.objects.contains(uid))
			pod.quiet_since.reset();
		else if (!pod.quiet_since)
			pod.quiet_since = found.at;
		pod.gone = pod.quiet_since && judge(pod, has_cgroup, found.at);
	}
}

std::set<std::string> GonePods::those(bool Pod::*is) const
{
	std::set<std::string> out;
	for (const auto &[word, pod] : pods_)
		if (pod.*is)
			out.insert(word);
	return out;
}

} // namespace sk8::agent
