// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Claims in a case: what pods ask for, and what drivers do.
#include <algorithm>

#include "test/sim/world.h"

namespace sk8::sim {

static constexpr Micros latest_claim = 5 * second; // after the first pod that wants it

void World::play_claims()
{
	for (const auto &[name, n] : slurm_.select().nodes)
		claims_.driver_comes(name, case_.gpus);
	kubelet_.claims = &claims_;
	judge_.look_at_claims(claims_, claim_watch_);
	api_.listen(&claim_controllers_);
	claims_.listen(&claim_controllers_);
	claims_.listen(&claim_watch_);
}

// gpu=N: so many devices by a claim of its own, of a template. claim=c: by that one, which others may have, too; it is made with
// shares=N devices if it is not there, before the pod or some time later. All of them can be on one node.
void World::claim_devices(kube::Pod &pod, const Action &a)
{
	if (!case_.claims || case_.gpus == 0)
		return;
	std::int64_t left = case_.gpus;
	if (a.has("claim")) {
		const std::int64_t shares = std::clamp<std::int64_t>(a.number("shares", 1), 1, left);
		const ClaimName name{pod.meta.ns, a.text("claim")};
		left -= shares;
		pod.resource_claims.push_back({"shared", name.second});
		const std::string stream = "made claim/" + name.second;
		const Micros late = dice_.chance(stream, 300) ? dice_.between(stream, 0, latest_claim) : 0;
		time_.after(late, [this, name, shares] { claims_.create(name, shares, ""); });
	}
	if (const std::int64_t own = std::min(a.number("gpu"), left); own > 0)
		pod.resource_claims.push_back({template_claim(own), ""});
}

// It runs on its node: without power it tells nothing.
void World::driver_tells(const std::string &node)
{
	if (calm_)
		return; // see mend_drivers()
	if (kubelet_.powered(node))
		claims_.driver_comes(node, case_.gpus);
	else
		time_.after(second, [this, node] { driver_tells(node); });
}

// node=n1 for=N: its driver is away so long.
void World::take_driver(const Action &a)
{
	const std::string node = a.text("node");
	if (!case_.claims || calm_ || !claims_.has_driver(node) || !kubelet_.powered(node))
		return;
	claims_.driver_goes(node);
	until(a.seconds("for", 10), a, [this, node] { driver_tells(node); });
}

// node=n1 device=0 for=N
void World::taint_device(const Action &a)
{
	const std::string node = a.text("node");
	if (!case_.claims || calm_ || !claims_.has_driver(node) || !kubelet_.powered(node))
		return;
	claims_.taint(node, static_cast<std::size_t>(a.number("device")));
	until(a.seconds("for", 10), a, [this, node] {
		if (claims_.has_driver(node))
			driver_tells(node);
	});
}

void World::watch_claims(const Action &a)
{
	if (!case_.claims)
		return;
	if (a.has("break"))
		claim_watch_.interrupt(a.has("lost"));
	claim_watch_.lateness = a.number("late") * ms;
	until(a.seconds("for", 10), a, [this] { claim_watch_.usual(); });
}

void World::mend_drivers()
{
	claim_watch_.usual();
	for (const auto &[name, n] : slurm_.select().nodes)
		if (case_.claims && !judge_.is_gone(name))
			claims_.driver_comes(name, case_.gpus);
}

} // namespace sk8::sim
