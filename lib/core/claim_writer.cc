// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/claim_writer.h"

#include <algorithm>
#include <ranges>

#include "lib/base/text.h"
#include "lib/core/claim_pods.h"

namespace sk8::core {

std::string taken_by_another(const ClaimDevices &wanted, const std::string &node, const Dra &dra, const Claims &own)
{
	const auto is_own = [&](const std::string &name) {
		return std::ranges::any_of(own, [&](const auto &claim) { return name == claim->meta.ns + "/" + claim->meta.name; });
	};
	for (const auto &d : wanted.devices)
		if (const std::string other = dra.holder(d, *wanted.claim); !other.empty() && !is_own(other))
			return "device " + one_line(d.device, 128) + " of node " + node + " is allocated to resource claim " + other;
	return "";
}

static constexpr int most_writes = 4; // for a claim: it is freed, protected, given its devices

static bool is_given(const ClaimDevices &c)
{
	return c.claim->allocated && c.claim->devices == c.devices;
}

static ClaimWrite failed(std::string why)
{
	return {.is = ClaimWrite::Is::failed, .patch = {}, .why = std::move(why)};
}

static ClaimWrite write_to(bool status, Json patch)
{
	return {.is = ClaimWrite::Is::write, .status = status, .patch = std::move(patch), .why = {}};
}

ClaimWrite next_write(ClaimWrites &w, const Dra &dra)
{
	const auto to_write = [&](std::size_t i) { return !is_given(w.claims[i]) || !is_reserved_for(*w.claims[i].claim, w.uid); };
	const auto to_free = [&](std::size_t i) { return i < w.shared_at && w.claims[i].claim->allocated && to_write(i); };
	const auto all = std::views::iota(std::size_t{0}, w.claims.size());
	auto next = std::ranges::find_if(all, to_free); // first: another one of this pod may be to get what it has
	if (next == all.end())
		next = std::ranges::find_if(all, to_write);
	if (next == all.end()) {
		for (const ClaimDevices &c : w.claims) // while its own write was under way
			if (std::string why = taken_by_another(c, w.node, dra); !why.empty())
				return failed(std::move(why));
		return {};
	}
	w.at = *next;
	w.tries.resize(w.claims.size());
	const ClaimDevices &wanted = w.claims[w.at];
	const kube::ResourceClaim &claim = *wanted.claim;
	const bool shared = w.at >= w.shared_at;
	if (w.tries[w.at]++ == most_writes)
		return failed("somebody else changes " + claim_text(claim.meta.name));
	if (shared && !is_given(wanted))
		return failed(claim_text(claim.meta.name) + " was freed meanwhile");
	if (shared)
		return write_to(true, reserving_patch(claim, w.pod, w.uid));
	if (to_free(w.at))
		return write_to(true, freeing_patch(claim));
	if (!is_protected(claim))
		return write_to(false, protecting_patch(claim));
	if (std::string why = taken_by_another(wanted, w.node, dra); !why.empty()) // while others were written
		return failed(std::move(why));
	return write_to(true, allocating_patch(wanted, w.node, w.pod, w.uid, dra.inventory));
}

void write_claims(const std::shared_ptr<ClaimWrites> &writes, const ClaimWritePorts &ports)
{
	if (!ports.goes_on())
		return;
	const ClaimWrite next = next_write(*writes, ports.dra);
	if (next.is != ClaimWrite::Is::write)
		return ports.done(next.why, {});
	ports.patch(*writes->claims[writes->at].claim, next.status, next.patch, [writes, ports](const KubeReply &r) {
		if (!r.ok() || !r.claim)
			return ports.done(r.error.empty() ? "the API server does not say what it has become" : r.error, r);
		ports.dra.claim_changed(r.claim);
		writes->claims[writes->at].claim = r.claim;
		write_claims(writes, ports);
	});
}

} // namespace sk8::core
