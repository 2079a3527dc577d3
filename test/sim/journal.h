// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The saved ledger without a file: the text is that of lib/core/hold_journal, and what
// survives a crash is what was flushed, perhaps with half a line behind it.
#ifndef SK8_SIM_JOURNAL_H
#define SK8_SIM_JOURNAL_H

#include <functional>
#include <string>

#include "lib/core/hold_journal.h"

namespace sk8::sim {

// StateSaveLocation: outlives slurmctld.
struct Disk {
	bool found = false; // the file is there
	std::string ledger;
	bool full = false;
	core::Ledger saved() const; // empty: nothing, or nothing that can be read
	bool holds(const std::string &uid, const std::string &node) const;
};

class Journal final : public core::JournalText {
public:
	// may: false if slurmctld dies here; torn: how much of a text reaches the disk then.
	Journal(Disk &disk, const core::Ledger &known, std::function<bool()> may,
		std::function<std::size_t(std::size_t)> torn);

	Result<void> flush() override;

private:
	Disk &disk_;
	std::function<bool()> may_;
	std::function<std::size_t(std::size_t)> torn_;
	bool open_ = false, dead_ = false;
};

} // namespace sk8::sim

#endif
