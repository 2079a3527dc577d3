// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/container.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/kubesim/times.h"

namespace kubesim {
namespace {

std::string read_text(const std::string &path)
{
	std::ifstream in(path);
	return std::string(std::istreambuf_iterator<char>(in), {});
}

bool is_shim(pid_t pid, const std::string &dir)
{
	const std::string line = read_text("/proc/" + std::to_string(pid) + "/cmdline");
	return line.find("--container") != line.npos && line.find(dir) != line.npos;
}

class Process final : public Container {
public:
	Process(Loop &loop, std::string dir) : loop_(loop), dir_(std::move(dir)) {}

	~Process() override
	{
		forget_shim();
	}

	void start()
	{
		started_us = now_us();
		pid_t pid = fork();
		if (pid == 0) {
			setsid();
			execl("/proc/self/exe", "kubesim", "--container", dir_.c_str(), nullptr);
			_exit(127);
		}
		child_ = pid > 0;
		if (pid < 0)
			end_soon();
		else
			follow(pid);
	}

	void adopt()
	{
		started_us = std::atoll(read_text(dir_ + "/started").c_str());
		pid_t pid = std::atoi(read_text(dir_ + "/shim.pid").c_str());
		if (access((dir_ + "/exit.json").c_str(), F_OK) == 0 || pid <= 0 || !is_shim(pid, dir_))
			end_soon();
		else
			follow(pid);
	}

	void terminate() override
	{
		signal_main(SIGTERM);
	}

	void kill() override
	{
		if (!signal_main(SIGKILL) && shim_ > 0)
			::kill(shim_, SIGTERM); // which makes it kill all
	}

private:
	bool signal_main(int number)
	{
		pid_t pid = std::atoi(read_text(dir_ + "/main.pid").c_str());
		// While the shim lives it has not waited for main: the number is still main's.
		return fd_ >= 0 && pid > 0 && ::kill(pid, number) == 0;
	}

	void follow(pid_t pid)
	{
		shim_ = pid;
		fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
		if (fd_ < 0)
			end_soon();
		else
			loop_.add_fd(fd_, EPOLLIN, [this] { ended(); });
	}

	void forget_shim()
	{
		if (timer_)
			loop_.cancel(*timer_);
		if (fd_ < 0)
			return;
		loop_.remove_fd(fd_);
		close(fd_);
		fd_ = -1;
	}

	void end_soon()
	{
		timer_ = loop_.after_us(0, [this] { ended(); });
	}

	void ended()
	{
		forget_shim();
		if (child_)
			waitpid(shim_, nullptr, 0);
		J text = J::parse(read_text(dir_ + "/exit.json"));
		ContainerEnd end;
		end.code = static_cast<int>(text["code"].num(137));
		end.reason = text["reason"].str("ContainerStatusUnknown");
		end.message = text["message"].str();
		end.finished_us = text["finished"].num(now_us());
		end.gone_us = text["gone"].num(now_us());
		auto tell = on_end; // it may destroy us
		if (tell)
			tell(end);
	}

	Loop &loop_;
	std::string dir_;
	pid_t shim_ = -1;
	int fd_ = -1;
	bool child_ = false;
	std::optional<Loop::Timer> timer_;
};

class Fake final : public Container {
public:
	Fake(Loop &loop, const FakeSpec &spec) : loop_(loop), spec_(spec)
	{
		started_us = spec.started_us ? spec.started_us : now_us();
		if (!spec.run_seconds)
			return;
		std::int64_t end = started_us + static_cast<std::int64_t>(*spec.run_seconds * 1e6);
		end_after(std::max<std::int64_t>(end - now_us(), 0), spec.exit_code);
	}
	~Fake() override
	{
		if (timer_)
			loop_.cancel(*timer_);
	}
	void terminate() override
	{
		if (!spec_.ignores_term)
			end_after(0, 143);
	}
	void kill() override { end_after(0, 137); }

private:
	void end_after(std::int64_t us, int code)
	{
		if (timer_)
			loop_.cancel(*timer_);
		timer_ = loop_.after_us(us, [this, code] {
			timer_.reset();
			std::int64_t now = now_us();
			auto tell = on_end;
			if (tell)
				tell({code, code ? "Error" : "Completed", "", now, now});
		});
	}
	Loop &loop_;
	FakeSpec spec_;
	std::optional<Loop::Timer> timer_;
};

} // namespace

std::unique_ptr<Container> start_process(Loop &loop, const ProcessSpec &spec)
{
	mkdir(spec.dir.c_str(), 0700);
	J config = J::make("argv", J::list(spec.argv), "env", J::list(spec.env), "cwd", spec.cwd, "about", spec.about);
	std::ofstream(spec.dir + "/config.json") << config.dump();
	auto process = std::make_unique<Process>(loop, spec.dir);
	process->start();
	return process;
}

std::unique_ptr<Container> adopt_process(Loop &loop, const std::string &dir)
{
	auto process = std::make_unique<Process>(loop, dir);
	process->adopt();
	return process;
}

J read_about(const std::string &dir)
{
	return J::parse(read_text(dir + "/config.json"))["about"];
}

std::unique_ptr<Container> start_fake(Loop &loop, const FakeSpec &spec)
{
	return std::make_unique<Fake>(loop, spec);
}

} // namespace kubesim
