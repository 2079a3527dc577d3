// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "tools/run.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace sk8::tools {

static constexpr std::size_t max_output = 64u << 20, max_errors = 64u << 10;

namespace {

struct Pipe {
	Fd read, write;

	Pipe()
	{
		int fds[2];
		if (::pipe2(fds, O_CLOEXEC) == 0) {
			read = Fd(fds[0]);
			write = Fd(fds[1]);
		}
	}
};

// In the child: only calls that are safe after fork().
[[noreturn]] void become(char *const *argv, char *const *env, const char *file, int out, int err)
{
	const int null = ::open("/dev/null", O_RDONLY);
	::dup2(null, STDIN_FILENO);
	::dup2(out, STDOUT_FILENO);
	::dup2(err, STDERR_FILENO);
	::execve(file, argv, env);
	::_exit(127);
}

// Reads what there is; false at the end of the pipe. Too much is thrown away.
bool drain(Fd &fd, std::string &to, std::size_t limit)
{
	char buffer[16384];
	const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	to.append(buffer, std::min(static_cast<std::size_t>(n), limit - std::min(limit, to.size())));
	return true;
}

std::string find_program(const std::string &name)
{
	const char *path = std::getenv("PATH");
	const std::string all = std::string(path ? path : "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin";
	for (auto folder : split(all, ':')) {
		const std::string file = std::string(folder) + "/" + name;
		if (!folder.empty() && ::access(file.c_str(), X_OK) == 0)
			return file;
	}
	return "";
}

std::string last_line(const std::string &text)
{
	std::string last;
	for (auto line : split(text, '\n'))
		if (!trim(line).empty())
			last = one_line(trim(line), 300);
	return last;
}

} // namespace

static Result<std::string> collect(pid_t pid, const std::string &name, Pipe &out, Pipe &err, Millis timeout)
{
	const SystemClock clock;
	const Millis until = clock.monotonic() + timeout;
	std::string text, errors;
	bool late = false;
	while (out.read || err.read) {
		const Millis left = until - clock.monotonic();
		pollfd fds[] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}};
		if (left <= Millis(0) || (::poll(fds, 2, static_cast<int>(left.count())) < 0 && errno != EINTR)) {
			late = true;
			::kill(pid, SIGKILL);
			break;
		}
		if (fds[0].revents && !drain(out.read, text, max_output))
			out.read.reset();
		if (fds[1].revents && !drain(err.read, errors, max_errors))
			err.read.reset();
	}
	int status = 0;
	while (::waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (late)
		return Error{name + " gave no answer within " + std::to_string(timeout.count() / 1000) + " s"};
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return Error{name + ": " + (last_line(errors + text).empty() ? "failed" : last_line(errors + text))};
	return text;
}

Result<std::string> run_program(const std::vector<std::string> &argv, Millis timeout)
{
	const std::string file = find_program(argv.at(0));
	if (file.empty())
		return Error{"there is no command " + argv[0] + " here; install Slurm's commands"};
	std::vector<char *> words, env;
	for (const auto &word : argv)
		words.push_back(const_cast<char *>(word.c_str()));
	words.push_back(nullptr);
	std::string plain = "LC_ALL=C";
	for (char **e = ::environ; *e; e++)
		if (std::strncmp(*e, "LC_ALL=", 7))
			env.push_back(*e);
	env.push_back(plain.data());
	env.push_back(nullptr);
	Pipe out, err;
	if (!out.write || !err.write)
		return Error{strprintf("cannot start %s: %m", file.c_str())};
	const pid_t pid = ::fork();
	if (pid == 0)
		become(words.data(), env.data(), file.c_str(), out.write.get(), err.write.get());
	if (pid < 0)
		return Error{strprintf("cannot start %s: %m", file.c_str())};
	out.write.reset();
	err.write.reset();
	return collect(pid, argv[0], out, err, timeout);
}

} // namespace sk8::tools
