// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/text.h"

namespace sk8 {

namespace {

// "cannot <doing> <path>: <errno as text>"
Error failed(const char *doing, const std::string &path)
{
	return Error{strprintf("cannot %s %s: %m", doing, path.c_str())};
}

// Bytes written before an error (errno) or all.
std::size_t write_all(int fd, std::string_view bytes)
{
	std::size_t done = 0;
	while (done < bytes.size()) {
		const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += static_cast<std::size_t>(n);
	}
	return done;
}

std::string folder_of(const std::string &path)
{
	const std::size_t slash = path.rfind('/');
	return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// The one door to a file: what is not regular, or not to be trusted, is not opened.
// O_NONBLOCK: opening a FIFO must not wait for the other end.
Result<Fd> open_regular(const std::string &path, int flags, Trust trust, uid_t owner,
			struct stat &status)
{
	const int links = trust == Trust::state ? O_NOFOLLOW : 0;
	Fd fd(::open(path.c_str(), flags | links | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
	if (!fd && errno == ELOOP && links)
		return Error{path + " is a symbolic link, it must be the file itself"};
	if (!fd)
		return failed("open", path);
	if (::fstat(fd.get(), &status) != 0)
		return failed("stat", path);
	if (!S_ISREG(status.st_mode))
		return Error{path + " is not a regular file"};
	if (Result<void> trusted = check_trust(status, path, trust, owner); !trusted)
		return trusted.error();
	if (trust != Trust::any)
		if (Result<void> folders = check_folders(path); !folders)
			return folders.error();
	return fd;
}

// folder and all above it: "/a/b" -> "/a/b", "/a", "/".
Result<void> check_folders_above(std::string folder)
{
	for (;; folder = folder_of(folder)) {
		struct stat status;
		if (::stat(folder.c_str(), &status) == 0 && (status.st_mode & 0002) &&
		    !(status.st_mode & S_ISVTX))
			return Error{strprintf("the folder %s lets everybody replace what is in it "
					       "(mode %04o), run: chmod o-w %s",
					       folder.c_str(), static_cast<unsigned>(status.st_mode & 07777),
					       folder.c_str())};
		if (folder == "/" || folder == ".")
			return {};
	}
}

Result<void> sync_folder_of(const std::string &path)
{
	const std::string folder = folder_of(path);
	const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	// EINVAL: a file system that cannot sync folders; nothing more can be done.
	if (!fd || (::fsync(fd.get()) != 0 && errno != EINVAL))
		return failed("sync", folder);
	return {};
}

} // namespace

void Fd::reset(int fd)
{
	const int old = std::exchange(fd_, fd);
	if (old < 0)
		return;
	const int saved_errno = errno;
	::close(old);
	errno = saved_errno;
}

Result<void> check_trust(const struct stat &status, const std::string &path, Trust trust,
			 uid_t owner)
{
	if (trust == Trust::any)
		return {};
	const auto mode = static_cast<unsigned>(status.st_mode & 07777);
	if (status.st_uid != 0 && status.st_uid != owner) {
		std::string who = "root";
		if (owner != 0)
			who += strprintf(" or uid %u", static_cast<unsigned>(owner));
		return Error{strprintf("%s belongs to uid %u and could be changed by that user, "
				       "it must belong to %s",
				       path.c_str(), static_cast<unsigned>(status.st_uid),
				       who.c_str())};
	}
	if (mode & 022)
		return Error{strprintf("%s can be changed by others (mode %04o), run: chmod go-w %s",
				       path.c_str(), mode, path.c_str())};
	if (trust == Trust::state && (mode & 077))
		return Error{strprintf("%s is for its owner only and can be opened by others (mode %04o), "
				       "run: chmod 600 %s",
				       path.c_str(), mode, path.c_str())};
	if (trust == Trust::secret && (mode & 004))
		return Error{strprintf("%s holds a secret and can be read by everybody (mode %04o), "
				       "run: chmod o-rwx %s",
				       path.c_str(), mode, path.c_str())};
	return {};
}

Result<void> check_folders(const std::string &path)
{
	if (Result<void> named = check_folders_above(folder_of(path)); !named)
		return named;
	// where the file really is, if links lead there
	const std::unique_ptr<char, void (*)(void *)> real(::realpath(path.c_str(), nullptr), std::free);
	return real ? check_folders_above(folder_of(real.get())) : Result<void>();
}

// At most max_bytes. The size may be 0 (procfs) or change while we read: read until the end.
static Result<std::string> read_some(const Fd &fd, const std::string &path, std::size_t max_bytes)
{
	std::string content;
	for (;;) {
		char buffer[16384];
		const std::size_t want = std::min(sizeof(buffer), max_bytes - content.size());
		const ssize_t n = ::read(fd.get(), buffer, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed("read", path);
		if (n == 0) // the end, or no more is wanted
			return content;
		content.append(buffer, static_cast<std::size_t>(n));
	}
}

Result<std::string> read_file(const std::string &path, std::size_t max_bytes, Trust trust,
			      uid_t owner)
{
	struct stat status;
	const Result<Fd> opened = open_regular(path, O_RDONLY, trust, owner, status);
	if (!opened)
		return opened.error();
	Result<std::string> content = read_some(*opened, path, max_bytes + 1);
	if (content && content->size() > max_bytes)
		return Error{strprintf("%s is larger than %zu bytes", path.c_str(), max_bytes)};
	return content;
}

Result<std::string> read_beginning(const std::string &path, std::size_t max_bytes)
{
	struct stat status;
	const Result<Fd> opened = open_regular(path, O_RDONLY, Trust::any, 0, status);
	if (!opened)
		return opened.error();
	return read_some(*opened, path, max_bytes);
}

Result<void> write_file_atomic(const std::string &path, std::string_view content, mode_t mode)
{
	std::string temporary = path + ".XXXXXX";
	Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
	if (!fd)
		return failed("create a file beside", path);
	const auto give_up = [&](const char *doing) {
		Error error = failed(doing, path);
		::unlink(temporary.c_str());
		return error;
	};
	if (::fchmod(fd.get(), mode) != 0)
		return give_up("set the mode of");
	if (write_all(fd.get(), content) != content.size())
		return give_up("write");
	if (::fsync(fd.get()) != 0)
		return give_up("sync");
	// Some network file systems report a failed write only here.
	if (::close(fd.release()) != 0)
		return give_up("close");
	if (::rename(temporary.c_str(), path.c_str()) != 0)
		return give_up("replace");
	return sync_folder_of(path);
}

Result<AppendFile> AppendFile::open(const std::string &path)
{
	struct stat status;
	Result<Fd> opened =
		open_regular(path, O_WRONLY | O_APPEND | O_CREAT, Trust::state, ::geteuid(), status);
	if (!opened)
		return opened.error();
	// It may be new: its name must survive too.
	if (Result<void> synced = sync_folder_of(path); !synced)
		return synced.error();
	return AppendFile(std::move(*opened), path, static_cast<std::uint64_t>(status.st_size));
}

Result<void> AppendFile::append(std::string_view bytes)
{
	if (write_all(fd_.get(), bytes) == bytes.size()) {
		size_ += bytes.size();
		return {};
	}
	const Error error = failed("append to", path_);
	if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0)
		return Error{strprintf("%s, nor cut off its torn end: %m", error.message.c_str())};
	return error;
}

Result<void> AppendFile::sync()
{
	if (::fdatasync(fd_.get()) != 0)
		return failed("sync", path_);
	return {};
}

Result<void> AppendFile::truncate(std::uint64_t size)
{
	if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0)
		return failed("shorten", path_);
	size_ = size;
	return {};
}

// By what the name leads to: a file that was replaced may have other names left. Whoever cannot look it up may still append.
bool AppendFile::replaced() const
{
	struct stat ours, named;
	if (::fstat(fd_.get(), &ours) != 0 || ours.st_nlink == 0)
		return true;
	if (::lstat(path_.c_str(), &named) != 0)
		return errno == ENOENT;
	return named.st_dev != ours.st_dev || named.st_ino != ours.st_ino;
}

} // namespace sk8
