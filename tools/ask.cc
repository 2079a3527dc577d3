// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/ask.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

#include "lib/base/text.h"
#include "lib/core/control_socket.h"

namespace sk8::tools {

static constexpr std::size_t max_answer = 32u << 20;

// False: the time is over.
static bool wait_for(int fd, short events, Millis until)
{
	const SystemClock clock;
	for (;;) {
		const Millis left = until - clock.monotonic();
		if (left <= Millis(0))
			return false;
		pollfd p{fd, events, 0};
		const int n = ::poll(&p, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
}

static Result<std::string> talk(int fd, std::string_view out, Millis until)
{
	const Error late{"slurmctld does not answer in time; is it stopped (SIGSTOP), or the host overloaded?"};
	while (!out.empty()) {
		const ssize_t n = ::send(fd, out.data(), out.size(), MSG_NOSIGNAL);
		if (n > 0)
			out.remove_prefix(static_cast<std::size_t>(n));
		else if (errno == EAGAIN && !wait_for(fd, POLLOUT, until))
			return late;
		else if (errno != EAGAIN && errno != EINTR)
			break; // what it said before it hung up is worth more than this error
	}
	std::string in;
	for (;;) {
		char buffer[16384];
		const ssize_t n = ::recv(fd, buffer, sizeof(buffer), 0);
		if (n > 0)
			in.append(buffer, static_cast<std::size_t>(n));
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return in;
		if (in.size() > max_answer)
			return Error{"slurmctld's answer is too long"};
		if (n < 0 && errno == EAGAIN && !wait_for(fd, POLLIN, until))
			return late;
	}
}

Result<Json> ask(const std::string &state_dir, const Json &request, Millis timeout)
{
	const SystemClock clock;
	auto fd = core::connect_control(state_dir);
	if (!fd)
		return fd.error();
	auto text = talk(fd->get(), request.dump() + '\n', clock.monotonic() + timeout);
	if (!text)
		return text.error();
	if (text->empty())
		return Error{"slurmctld hung up without an answer; did it just end?"};
	auto answer = Json::parse(*text);
	if (!answer)
		return Error{"slurmctld's answer is " + answer.error().message};
	if (!(*answer)["ok"].boolean_or(false))
		return Error{std::string((*answer)["error"].str("slurmctld refused and did not say why"))};
	return answer;
}

} // namespace sk8::tools
