// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/claim_watch.h"

#include <algorithm>

namespace sk8::sim {

static constexpr int all_lists = 3;

void ClaimWatch::start(Calls calls)
{
	calls_ = std::move(calls);
	wanted_ = true;
	told_.clear();
	told_slices_.clear();
	class_told_ = false;
	list();
}

void ClaimWatch::stop()
{
	wanted_ = watching_ = false;
	connection_++;
	told_.clear();
	told_slices_.clear();
	class_told_ = false;
}

void ClaimWatch::later(Micros delay, std::function<void()> f)
{
	time_.after(delay, [this, connection = connection_, f = std::move(f)] {
		if (connection != connection_)
			return;
		f();
	});
}

// ---- lists ----

// Any of them may come first, and no event overtakes one.
void ClaimWatch::list()
{
	connection_++;
	lists_ = 0;
	watching_ = false;
	later(dice_.between("claims/list", 1 * ms, 30 * ms), [this] {
		if (api_.down || api_.hung)
			return later(dice_.between("claims/again", 500 * ms, 5 * second), [this] { list(); });
		watching_ = true;
		next_ = claims_.history().size();
		until_ = time_.now();
		const auto arrives = [this](std::function<void()> f) {
			const Micros delay = dice_.between("claims/late", 1 * ms, 400 * ms);
			until_ = std::max(until_, time_.now() + delay);
			later(delay, [this, f = std::move(f)] {
				lists_++;
				f();
			});
		};
		arrives([this, slices = claims_.slices()] {
			told_slices_ = slices;
			std::vector<kube::ResourceSlicePtr> list;
			for (const auto &[node, slice] : slices)
				list.push_back(slice);
			calls_.slices_replaced(list);
		});
		arrives([this] {
			class_told_ = true;
			calls_.classes_replaced({ModelClaims::device_class()});
		});
		arrives([this, claims = claims_.all()] {
			told_ = claims;
			std::vector<kube::ResourceClaimPtr> list;
			for (const auto &[name, claim] : claims)
				list.push_back(claim);
			calls_.claims_replaced(list);
		});
	});
}

void ClaimWatch::interrupt(bool lost)
{
	if (!wanted_)
		return;
	tell(story_, "claim watch: interrupted", lost ? ", 410" : "");
	connection_++;
	watching_ = false;
	const bool anew = lost || lists_ < all_lists;
	later(dice_.between("claims/again", 100 * ms, 3 * second), [this, anew] {
		if (anew)
			list();
		else
			resume();
	});
}

void ClaimWatch::resume()
{
	if (api_.down || api_.hung)
		return later(dice_.between("claims/again", 500 * ms, 5 * second), [this] { resume(); });
	watching_ = true;
	calls_.back();
	until_ = time_.now();
	for (std::size_t i = next_; i < claims_.history().size(); i++)
		deliver(i);
}

// ---- events ----

void ClaimWatch::remember(const ClaimEvent &event)
{
	if (event.slice && event.removed)
		told_slices_.erase(event.slice->node);
	else if (event.slice)
		told_slices_[event.slice->node] = event.slice;
	else if (event.removed)
		told_.erase({event.claim->meta.ns, event.claim->meta.name});
	else
		told_[{event.claim->meta.ns, event.claim->meta.name}] = event.claim;
}

void ClaimWatch::deliver(std::size_t which)
{
	const Micros usual = dice_.between("claims/event", 1 * ms, 50 * ms);
	const Micros late = lateness ? dice_.between("claims/event late", 0, lateness) : 0;
	until_ = std::max(until_, time_.now() + usual + late);
	later(until_ - time_.now(), [this, which] {
		const ClaimEvent event = claims_.history()[which];
		next_ = which + 1;
		remember(event);
		calls_.changed(event);
		if (event.claim)
			on_claim(event.claim);
	});
}

void ClaimWatch::claim_event(const ClaimEvent &)
{
	if (watching_)
		deliver(claims_.history().size() - 1);
}

} // namespace sk8::sim
