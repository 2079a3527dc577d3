// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/control_socket.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/text.h"

namespace sk8::core {

static constexpr int backlog = 16;

std::string control_path(const std::string &state_dir)
{
	return state_dir + "/slurm-k8s.socket";
}

namespace {

// A socket's name has at most 107 bytes; a longer path is reached through its folder.
struct Address {
	Fd folder;
	sockaddr_un name{};

	explicit Address(const std::string &path)
	{
		name.sun_family = AF_UNIX;
		std::string text = path;
		if (const auto slash = path.rfind('/'); text.size() >= sizeof(name.sun_path) && slash != path.npos) {
			folder = Fd(::open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
			text = "/proc/self/fd/" + std::to_string(folder.get()) + path.substr(slash);
		}
		std::snprintf(name.sun_path, sizeof(name.sun_path), "%s", text.c_str());
	}
	const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&name); }
};

Fd new_socket()
{
	return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// 0, or why it failed. EAGAIN: somebody is there and has much to do.
int connect_error(const Fd &fd, const std::string &path)
{
	const Address address(path);
	return ::connect(fd.get(), address.get(), sizeof(address.name)) == 0 ? 0 : errno;
}

} // namespace

Result<ControlSocket> ControlSocket::claim(const std::string &state_dir, uid_t owner)
{
	const std::string path = control_path(state_dir);
	if (const int e = connect_error(new_socket(), path); e == 0 || e == EAGAIN)
		return Error{"another slurmctld answers at " + path};
	else if (e != ENOENT && e != ECONNREFUSED)
		return Error{strprintf("cannot look at %s: %s", path.c_str(), std::strerror(e))};

	// Under another name first: the path is never without a socket, and never one
	// that others may use.
	const std::string fresh = path + "." + std::to_string(::getpid());
	::unlink(fresh.c_str());
	Fd fd = new_socket();
	const Address address(fresh);
	struct stat status;
	// Linux: what bind() makes has the mode of the socket itself.
	if (!fd || ::fchmod(fd.get(), 0600) != 0 ||
	    ::bind(fd.get(), address.get(), sizeof(address.name)) != 0)
		return Error{strprintf("cannot make %s: %m", fresh.c_str())};
	if ((::geteuid() == 0 && owner != 0 && ::lchown(fresh.c_str(), owner, static_cast<gid_t>(-1)) != 0) ||
	    ::listen(fd.get(), backlog) != 0 || ::lstat(fresh.c_str(), &status) != 0 ||
	    ::rename(fresh.c_str(), path.c_str()) != 0) {
		Error e{strprintf("cannot make %s: %m", path.c_str())};
		::unlink(fresh.c_str());
		return e;
	}
	return ControlSocket(std::move(fd), path, status.st_dev, status.st_ino);
}

bool ControlSocket::mine() const
{
	struct stat status;
	return ::lstat(path_.c_str(), &status) == 0 && status.st_dev == dev_ && status.st_ino == inode_;
}

ControlSocket::~ControlSocket()
{
	if (fd_ && mine())
		::unlink(path_.c_str());
}

Fd ControlSocket::accept() const
{
	return Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Result<Fd> connect_control(const std::string &state_dir)
{
	const std::string path = control_path(state_dir);
	Fd fd = new_socket();
	switch (const int e = connect_error(fd, path)) {
	case 0:
		return fd;
	case ENOENT:
		return Error{path + " does not exist: slurmctld is not running, is not in charge, or has not loaded "
				    "slurm-k8s (look for slurm-k8s in its log)"};
	case ECONNREFUSED:
		return Error{"nobody answers at " + path +
			     ": slurmctld has crashed, or it runs on another host; ask there"};
	case EAGAIN:
		return Error{"too many ask at " + path + " at once; try again"};
	case EACCES:
		return Error{"only root and SlurmUser may use " + path};
	default:
		return Error{strprintf("cannot connect to %s: %s", path.c_str(), std::strerror(e))};
	}
}

Result<uid_t> peer_uid(int fd)
{
	ucred who{};
	socklen_t size = sizeof(who);
	if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
		return Error{strprintf("cannot tell who asks: %m")};
	return who.uid;
}

} // namespace sk8::core
