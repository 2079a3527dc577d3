// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The shim: starts the container's main process, waits for it, sees to it that
// nothing of it is left, and writes down how it ended.
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/kubesim/container.h"
#include "test/kubesim/times.h"

namespace kubesim {
namespace {

volatile sig_atomic_t main_pid = 0;

void on_term(int)
{
	if (main_pid > 0)
		kill(main_pid, SIGKILL);
}

void write_file(const std::string &path, const std::string &text)
{
	const std::string fresh = path + ".new";
	std::ofstream(fresh) << text;
	rename(fresh.c_str(), path.c_str());
}

std::vector<char *> pointers(std::vector<std::string> &strings)
{
	std::vector<char *> out;
	for (auto &s : strings)
		out.push_back(s.data());
	out.push_back(nullptr);
	return out;
}

// In the child. Returns only if it failed; then errno says why.
void become(const J &config)
{
	auto argv = config["argv"].strings(), env = config["env"].strings();
	setsid();
	signal(SIGPIPE, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, nullptr);
	const std::string cwd = config["cwd"].str("/");
	if (chdir(cwd.empty() ? "/" : cwd.c_str()))
		return;
	auto a = pointers(argv), e = pointers(env);
	environ = e.data();
	execvp(a[0], a.data());
}

// As in a container the main process is number 1 of its own PID namespace, if we
// may make one: then it gets SIGTERM only if it handles it, and nothing survives it.
void isolate()
{
	if (unshare(CLONE_NEWPID) == 0)
		return;
	// Not root: a subreaper and the process group have to do.
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void kill_orphans(pid_t main)
{
	kill(-main, SIGKILL);
	for (;;) {
		std::ifstream in("/proc/self/task/" + std::to_string(getpid()) + "/children");
		std::vector<pid_t> left{std::istream_iterator<pid_t>(in), {}};
		for (pid_t p : left)
			kill(p, SIGKILL);
		if (waitpid(-1, nullptr, 0) < 0 && errno == ECHILD)
			return;
	}
}

J wait_for_end(pid_t main)
{
	int status = 0;
	while (waitpid(main, &status, 0) < 0 && errno == EINTR)
		;
	const std::int64_t finished = now_us();
	kill_orphans(main);
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return J::make("code", code, "reason", code ? "Error" : "Completed", "finished", finished, "gone", now_us());
}

J start_error(const std::string &message)
{
	return J::make("code", 128, "reason", "StartError", "message", message, "finished", now_us(), "gone",
		       now_us());
}

// In the child: what it is told by is closed, or its shim is gone.
bool wait_for_go(int go)
{
	char byte;
	ssize_t got;
	while ((got = read(go, &byte, 1)) < 0 && errno == EINTR)
		;
	return got == 1;
}

J run(const J &config)
{
	int report[2], go[2];
	if (pipe2(report, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return start_error(strerror(errno));
	isolate();
	write_file("started", std::to_string(now_us()));
	pid_t child = fork();
	if (child == 0) {
		close(go[1]);
		if (!wait_for_go(go[0]))
			_exit(127);
		become(config);
		int error = errno;
		if (write(report[1], &error, sizeof error) < 0)
			_exit(127);
		_exit(127);
	}
	close(report[1]);
	main_pid = child;
	// Main runs only once its number can be read: whoever has seen it run can signal it.
	if (child > 0)
		write_file("main.pid", std::to_string(child));
	int error = 0;
	if (child < 0 || write(go[1], "", 1) != 1 || read(report[0], &error, sizeof error) == sizeof error) {
		unlink("main.pid");
		if (child > 0)
			waitpid(child, nullptr, 0);
		return start_error("exec: \"" + config["argv"].item(0).str() +
				   "\": " + strerror(child < 0 ? errno : error));
	}
	return wait_for_end(child);
}

} // namespace

int run_container_shim(int argc, char **argv)
{
	if (argc != 3 || chdir(argv[2]))
		return 2;
	std::ifstream in("config.json");
	J config = J::parse(std::string(std::istreambuf_iterator<char>(in), {}));
	write_file("shim.pid", std::to_string(getpid()));
	struct sigaction action{};
	action.sa_handler = on_term;
	sigaction(SIGTERM, &action, nullptr);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, nullptr);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dup2(null, 0);
	dup2(log, 1);
	dup2(log, 2);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	write_file("exit.json", run(config).dump());
	return 0;
}

} // namespace kubesim
