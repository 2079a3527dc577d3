// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/ledger_file.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/core/metrics.h"

namespace sk8::core {

static constexpr std::size_t max_file = 256u << 20;
static constexpr std::size_t min_lines_for_rewrite = 1000;
static constexpr std::uint64_t min_bytes_for_rewrite = 16 << 20;

static constexpr std::string_view before_cluster = "slurm-k8s.", after_cluster = ".ledger";

std::string ledger_path(const std::string &state_dir, const std::string &cluster)
{
	return (state_dir + "/").append(before_cluster).append(cluster).append(after_cluster);
}

Result<void> add_saved_clusters(const std::string &state_dir, std::set<std::string> &out)
{
	const auto failed = [&] { return Error{strprintf("cannot list %s: %m", state_dir.c_str())}; };
	DIR *dir = ::opendir(state_dir.c_str());
	if (!dir)
		return errno == ENOENT ? Result<void>() : failed();
	errno = 0;
	while (const dirent *entry = ::readdir(dir)) {
		const std::string_view name = entry->d_name;
		const std::size_t around = before_cluster.size() + after_cluster.size();
		if (name.starts_with(before_cluster) && name.ends_with(after_cluster) && name.size() > around)
			out.emplace(name.substr(before_cluster.size(), name.size() - around));
		errno = 0;
	}
	const Result<void> all = errno == 0 ? Result<void>() : failed();
	::closedir(dir);
	return all;
}

Result<SavedLedger> load_ledger(const std::string &path, std::uint32_t slurm_uid)
{
	// Only this proves that there is none: a link that leads nowhere, or a folder that
	// cannot be looked into, hides what pods hold.
	struct stat status;
	if (lstat(path.c_str(), &status) != 0 && errno == ENOENT)
		return SavedLedger{};
	auto text = read_file(path, max_file, Trust::state, slurm_uid);
	if (!text)
		return text.error();
	// Ours is put in its place as a whole and only grows: it has its first line.
	if (text->find('\n') == text->npos)
		return Error{path + ": is empty or cut short in its first line"};
	auto ledger = parse_journal(*text);
	if (!ledger)
		return Error{path + ": " + ledger.error().message};
	return SavedLedger{true, std::move(*ledger)};
}

std::string refused_path(const std::string &path)
{
	return path + ".refused";
}

// The mode of a file that was open to others stays: made private it would be believed by the next start. So that one is copied.
Result<void> keep_refused(const std::string &path, std::uint32_t slurm_uid)
{
	const std::string copy = refused_path(path);
	struct stat status, kept;
	if (lstat(path.c_str(), &status) != 0)
		return Error{strprintf("cannot look at %s: %m", path.c_str())};
	if (!S_ISREG(status.st_mode))
		return Error{path + " is not a regular file"};
	if (lstat(copy.c_str(), &kept) == 0) {
		if (kept.st_dev == status.st_dev && kept.st_ino == status.st_ino)
			return {}; // by a start before this one
		return Error{copy + " is there already"};
	}
	if (check_trust(status, path, Trust::state, slurm_uid)) {
		if (linkat(AT_FDCWD, path.c_str(), AT_FDCWD, copy.c_str(), 0) == 0)
			return {};
		return Error{strprintf("cannot link %s to %s: %m", copy.c_str(), path.c_str())};
	}
	const auto text = read_file(path, max_file);
	return text ? write_file_atomic(copy, *text) : text.error();
}

// Also the way out of every trouble: the memory is right, the file is made anew.
Result<void> LedgerFile::rewrite()
{
	file_.reset();
	pending_.clear(); // it is all in whole()
	if (auto r = write_file_atomic(path_, whole()); !r)
		return r;
	auto file = AppendFile::open(path_);
	if (!file)
		return file.error();
	file_.emplace(std::move(*file));
	written_anew();
	lines_ = live() + 1;
	size_anew_ = file_->size();
	return {};
}

Result<void> LedgerFile::flush()
{
	// Replaced: by another process, or by an engine that was left to itself. Lines may be
	// long: a pod that is made again has its manifest in one.
	const bool old = !file_ || file_->replaced() || begins_anew() ||
			 (lines_ > min_lines_for_rewrite && lines_ > 2 * live()) ||
			 file_->size() > 2 * size_anew_ + min_bytes_for_rewrite;
	if (!old && pending_.empty())
		return {};
	auto r = old ? rewrite() : write();
	(r ? metrics().ledger_writes : metrics().ledger_write_errors).add();
	return r;
}

Result<void> LedgerFile::write()
{
	for (char c : pending_)
		lines_ += c == '\n';
	const std::uint64_t before = file_->size();
	auto r = file_->append(pending_);
	if (r)
		r = file_->sync();
	if (r) {
		pending_.clear();
		return r;
	}
	// What nobody has been told that it is held is not to be found there after a restart: append() cuts its own off again.
	if (file_->size() != before)
		(void)file_->truncate(before);
	file_.reset(); // if that failed too, half a line stands there: write it anew
	return r;
}

} // namespace sk8::core
