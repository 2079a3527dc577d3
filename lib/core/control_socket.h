// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The Unix socket in StateSaveLocation on which slurm-k8s(1) asks the engine: its
// file, who may have it, and how one connects to it. All calls do I/O on that
// folder: never in a hook.
//
// Of several slurmctlds (a takeover, a crash, a mistake) one has it: it is taken
// only if nobody answers there, and given back only by the one whose it is.
#ifndef SK8_CORE_CONTROL_SOCKET_H
#define SK8_CORE_CONTROL_SOCKET_H

#include <string>
#include <sys/types.h>

#include "lib/base/file.h"
#include "lib/base/result.h"

namespace sk8::core {

// "<state_dir>/slurm-k8s.socket"
std::string control_path(const std::string &state_dir);

class ControlSocket {
public:
	// Listens, mode 0600, owned by owner. Error: somebody else answers there, or the
	// folder cannot be written.
	static Result<ControlSocket> claim(const std::string &state_dir, uid_t owner);

	ControlSocket(ControlSocket &&) = default;
	ControlSocket &operator=(ControlSocket &&) = delete;
	~ControlSocket(); // removes the file if it is still this one

	int fd() const { return fd_.get(); } // non-blocking, listening
	bool mine() const;                   // the file is still this socket
	// The next client, or none. Non-blocking.
	Fd accept() const;

private:
	ControlSocket(Fd fd, std::string path, dev_t dev, ino_t inode)
		: fd_(std::move(fd)), path_(std::move(path)), dev_(dev), inode_(inode)
	{
	}
	Fd fd_;
	std::string path_;
	dev_t dev_;
	ino_t inode_;
};

// For slurm-k8s(1): a connected socket, non-blocking. The error says what to look at.
Result<Fd> connect_control(const std::string &state_dir);

// Who is at the other end. Error: nobody can tell.
Result<uid_t> peer_uid(int fd);

} // namespace sk8::core

#endif
