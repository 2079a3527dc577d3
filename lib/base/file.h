// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Files that people write (configuration, credentials) and that we write (ledger,
// journal). All block on the disk: never in a hook. All descriptors are O_CLOEXEC.
// Errors name the path, the reason and, if known, the command that helps.
#ifndef SK8_BASE_FILE_H
#define SK8_BASE_FILE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>

#include "lib/base/result.h"

struct stat;

namespace sk8 {

// Owns a file descriptor; closes it.
class Fd {
public:
	Fd() = default;
	explicit Fd(int fd) : fd_(fd) {}
	Fd(Fd &&other) noexcept : fd_(other.release()) {}
	Fd &operator=(Fd &&other) noexcept
	{
		if (this != &other)
			reset(other.release());
		return *this;
	}
	~Fd() { reset(); }

	int get() const { return fd_; } // -1: none
	explicit operator bool() const { return fd_ >= 0; }
	int release() { return std::exchange(fd_, -1); }
	void reset(int fd = -1); // keeps errno

private:
	int fd_ = -1;
};

// What a file must fulfil before its content is believed.
enum class Trust {
	any,    // a regular file, nothing else
	owned,  // belongs to root or owner, not writable by group or others
	secret, // owned, and not readable by others
	state,  // what we alone write: owned, for nobody else (0600), its name is no link
};

// The one sentence that says why the file does not deserve that trust, or nothing
// (ok). status is of the opened file, path only for the message. owner: a uid that
// is as good as root's. Pure.
Result<void> check_trust(const struct stat &status, const std::string &path, Trust trust,
			 uid_t owner);

// Refuses a path if any folder of it, as it is written or where it leads in the end,
// lets everybody replace what is in it (mode o+w without the sticky bit). What does not
// exist is not judged. Blocks on the disk.
Result<void> check_folders(const std::string &path);

// The whole content of a regular file of at most max_bytes. Follows symbolic links
// (projected tokens are links) unless trust is state; owner and mode are those of what
// was opened. Folders are judged by check_folders() unless trust is any.
Result<std::string> read_file(const std::string &path, std::size_t max_bytes,
			      Trust trust = Trust::any, uid_t owner = 0);

// The first max_bytes of a regular file, or all of a shorter one.
Result<std::string> read_beginning(const std::string &path, std::size_t max_bytes);

// After success the file holds all of content, whatever happens to the machine; after
// failure it holds what it held before. Writers of one path must take turns.
Result<void> write_file_atomic(const std::string &path, std::string_view content,
			       mode_t mode = 0600);

// A file that only grows. One writer, one thread at a time.
class AppendFile {
public:
	// Creates it, for us only, if it is absent; what is there must be worth
	// Trust::state, with our own uid as the owner.
	static Result<AppendFile> open(const std::string &path);

	// All of bytes or nothing: a partly written record is cut off again.
	Result<void> append(std::string_view bytes);
	// Returns when everything appended is on the disk.
	Result<void> sync();
	// Shortens to size bytes, for example to drop a torn last record.
	Result<void> truncate(std::uint64_t size);
	std::uint64_t size() const { return size_; } // bytes
	// True: its name belongs to another file by now, or to none. What is appended would not
	// be found.
	bool replaced() const;

private:
	AppendFile(Fd fd, std::string path, std::uint64_t size)
		: fd_(std::move(fd)), path_(std::move(path)), size_(size)
	{
	}
	Fd fd_;
	std::string path_;
	std::uint64_t size_ = 0;
};

} // namespace sk8

#endif
