// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/hang.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sys/socket.h>
#include <unistd.h>

namespace kubesim {

int accept_and_hang(const Options &o)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_port = htons(static_cast<std::uint16_t>(o.port));
	inet_pton(AF_INET, o.address.c_str(), &address.sin_addr);
	socklen_t size = sizeof address;
	if (bind(fd, reinterpret_cast<sockaddr *>(&address), size) || listen(fd, 1000)) {
		std::fprintf(stderr, "kubesim: cannot listen on %s:%d: %s\n", o.address.c_str(), o.port,
			     strerror(errno));
		return 1;
	}
	getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size);
	std::printf("kubesim: accepting on %s:%d and never answering\n", o.address.c_str(),
		    ntohs(address.sin_port));
	std::fflush(stdout);
	if (!o.port_file.empty())
		std::ofstream(o.port_file) << ntohs(address.sin_port) << "\n";
	// Connections stay open until the process ends.
	for (;;)
		if (accept(fd, nullptr, nullptr) < 0 && errno != EINTR && errno != EMFILE)
			return 1;
		else if (errno == EMFILE)
			sleep(1);
}

} // namespace kubesim
