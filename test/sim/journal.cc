// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/journal.h"

#include <algorithm>
#include <utility>

namespace sk8::sim {

core::Ledger Disk::saved() const
{
	auto parsed = core::parse_journal(ledger);
	return parsed ? std::move(*parsed) : core::Ledger{};
}

bool Disk::holds(const std::string &uid, const std::string &node) const
{
	return std::ranges::any_of(saved().holds,
				   [&](const core::Hold &h) { return h.key.uid == uid && h.node == node; });
}

Journal::Journal(Disk &disk, const core::Ledger &known, std::function<bool()> may,
		 std::function<std::size_t(std::size_t)> torn)
	: JournalText(known), disk_(disk), may_(std::move(may)), torn_(std::move(torn))
{
}

Result<void> Journal::flush()
{
	const bool open = open_ && !begins_anew();
	if (open && pending_.empty())
		return {};
	if (!may_()) {
		if (open && !std::exchange(dead_, true)) // a rewrite is atomic
			disk_.ledger += pending_.substr(0, torn_(pending_.size()));
		return {};
	}
	if (disk_.full) { // as LedgerFile, which cuts off again what it could write
		open_ = false;  // written anew next time
		return Error{"No space left on device"};
	}
	if (!open) {
		disk_.ledger = whole();
		disk_.found = open_ = true;
		written_anew();
	} else {
		disk_.ledger += pending_;
	}
	pending_.clear();
	return {};
}

} // namespace sk8::sim
