// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_taint.h"

#include <algorithm>

#include "lib/core/names.h"
#include "lib/core/placement.h"

namespace sk8::core {

static constexpr Millis first_pause{1'000}, longest_pause{300'000}, calm{600'000};

bool has_taint(const kube::Node &node, OurTaint which)
{
	return std::ranges::any_of(node.taints, [which](const kube::Taint &t) { return is_our_taint(t, which); });
}

std::optional<bool> taint_change(const kube::Node &node, bool in_slurm, OurTaint which, bool wanted)
{
	if (!in_slurm)
		return std::nullopt;
	const bool there = has_taint(node, which);
	// Kubernetes has no two taints of one key and effect: somebody's own keeps pods off, too.
	const bool another = std::ranges::any_of(node.taints, [which](const kube::Taint &t) {
		return t.key == taint_key(which) && t.effect == kube::TaintEffect::no_schedule && !is_our_taint(t, which);
	});
	if (wanted == there || (wanted && another))
		return std::nullopt;
	return wanted;
}

void TaintPace::put_on(Millis now)
{
	pause_ = next == Millis(0) || now - next > calm ? first_pause : std::min(pause_ * 2, longest_pause);
	next = now + pause_;
}

} // namespace sk8::core
