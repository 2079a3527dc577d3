// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// HoldJournal on a file in StateSaveLocation.
#ifndef SK8_CORE_LEDGER_FILE_H
#define SK8_CORE_LEDGER_FILE_H

#include <optional>
#include <set>
#include <string>

#include "lib/base/file.h"
#include "lib/core/hold_journal.h"

namespace sk8::core {

// "<state_dir>/slurm-k8s.<cluster>.ledger"
std::string ledger_path(const std::string &state_dir, const std::string &cluster);

// Adds the clusters that have a ledger there. Error: there may be others; a folder that is not there has none. Reads from the
// disk.
Result<void> add_saved_clusters(const std::string &state_dir, std::set<std::string> &out);

struct SavedLedger {
	bool found = false; // false: there is no file, so nothing is known
	Ledger ledger;
};
// Reads from the disk. An error means that the file exists and cannot be believed.
Result<SavedLedger> load_ledger(const std::string &path, std::uint32_t slurm_uid);

// Where a ledger that was refused is kept: no ledger of any cluster.
std::string refused_path(const std::string &path);
// Of a file that load_ledger() refuses, before the next flush() replaces it: afterwards its content is at refused_path() as well,
// for its owner only. A link if that will do, so that a full disk takes it, too. Error: there is no copy, for that reason; a former
// one is not replaced. Disk I/O.
Result<void> keep_refused(const std::string &path, std::uint32_t slurm_uid);

class LedgerFile final : public JournalText {
public:
	// known: what load_ledger() gave, or the table has by now.
	LedgerFile(std::string path, const Ledger &known) : JournalText(known), path_(std::move(path)) {}
	Result<void> flush() override;

private:
	Result<void> write();
	Result<void> rewrite();

	std::string path_;
	std::size_t lines_ = 0;       // in the file
	std::uint64_t size_anew_ = 0; // bytes, when it was written anew
	std::optional<AppendFile> file_;
};

} // namespace sk8::core

#endif
