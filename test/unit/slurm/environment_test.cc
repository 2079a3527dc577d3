// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What of a container's variables tasks get. The process may be its user's own, and may say anything.
#include <cstring>
#include <fcntl.h>
#include <map>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include "plugins/spank/environment.h"
}
#include "test/unit/catch.h"

namespace {

std::map<std::string, std::string> taken;

// Of a process that began with these.
std::map<std::string, std::string> take(std::vector<std::string> variables, void (*what)(spank_t, long) = sk8_take_environment)
{
	std::string program = "/bin/cat";
	std::vector<char *> envp;
	for (std::string &v : variables)
		envp.push_back(v.data());
	envp.push_back(nullptr);
	char *argv[] = {program.data(), nullptr};
	int in[2], out[2];
	REQUIRE((pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0));
	posix_spawn_file_actions_t files;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	pid_t pid = 0;
	REQUIRE(posix_spawn(&pid, program.c_str(), &files, nullptr, argv, envp.data()) == 0);
	posix_spawn_file_actions_destroy(&files);
	char byte = 'x'; // what it says back it says after its exec
	REQUIRE((write(in[1], &byte, 1) == 1 && read(out[0], &byte, 1) == 1));
	taken.clear();
	what(nullptr, pid);
	for (const int fd : {in[0], in[1], out[0], out[1]})
		close(fd);
	waitpid(pid, nullptr, 0);
	return taken;
}

} // namespace

// As Slurm's (src/common/spank.c).
extern "C" spank_err_t spank_setenv(spank_t, const char *name, const char *value, int overwrite)
{
	if (!overwrite && taken.contains(name))
		return static_cast<spank_err_t>(ESPANK_ENV_EXISTS);
	taken[name] = value;
	return static_cast<spank_err_t>(ESPANK_SUCCESS);
}

extern "C" spank_err_t spank_getenv(spank_t, const char *name, char *value, int size)
{
	if (!taken.contains(name))
		return static_cast<spank_err_t>(ESPANK_ENV_NOEXIST);
	if (taken[name].size() >= static_cast<std::size_t>(size))
		return static_cast<spank_err_t>(ESPANK_NOSPACE);
	strcpy(value, taken[name].c_str());
	return static_cast<spank_err_t>(ESPANK_SUCCESS);
}

extern "C" spank_err_t spank_unsetenv(spank_t, const char *name)
{
	taken.erase(name);
	return static_cast<spank_err_t>(ESPANK_SUCCESS);
}

TEST_CASE("tasks get the variables of a container, but none of Slurm's, Kubernetes', or of who they are")
{
	CHECK(take({"FOO=bar", "PATH=/opt/bin:/bin", "EMPTY=", "MANY=a=b\nc", "_X1=y"}) ==
	      std::map<std::string, std::string>{{"FOO", "bar"}, {"PATH", "/opt/bin:/bin"}, {"EMPTY", ""}, {"MANY", "a=b\nc"}, {"_X1", "y"}});
	for (const char *name : {"HOME", "USER", "PWD", "TERM", "SLURM_JOB_ID", "SLURMD_NODENAME", "SPANK_X", "PMI_RANK", "KUBERNETES_PORT", "_"})
		CHECK(take({std::string(name) + "=x", "HOMES=y"}) == std::map<std::string, std::string>{{"HOMES", "y"}});
}

TEST_CASE("tasks with a ServiceAccount get where the API server is, and nothing else")
{
	CHECK(take({"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443", "KUBERNETES_PORT=x", "KUBERNETES_SERVICE_HOSTS=x", "PATH=x",
		    "KUBECONFIG=x"}, sk8_take_api_server) ==
	      std::map<std::string, std::string>{{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}});
}

TEST_CASE("what is no variable is left out")
{
	CHECK(take({"no variable", "=x", "1A=x", "A-B=x", "A B=x", "\x01=x", "A\n=x", "\xc3\xa4=x", "GOOD=y"}) ==
	      std::map<std::string, std::string>{{"GOOD", "y"}});
	CHECK(take({}).empty());
}

TEST_CASE("of too many variables the first 512 count, and one that is cut off does not")
{
	std::vector<std::string> many;
	for (int i = 0; i < 600; i++)
		many.push_back("V" + std::to_string(i) + "=x");
	CHECK(take(many).size() == 512);
	CHECK(take({"FIRST=x", "LONG=" + std::string(70'000, 'y'), "LAST=z"}) == std::map<std::string, std::string>{{"FIRST", "x"}});
}

TEST_CASE("a process that is gone has no variables")
{
	taken.clear();
	sk8_take_environment(nullptr, 0);
	CHECK(taken.empty());
}

// ---- of devices ----

static void give(std::string text)
{
	for (char &c : text)
		c = c == '|' ? '\0' : c;
	sk8_give_variables(nullptr, text.data(), text.size());
}

static const std::string names = "SLURM_K8S_DEVICE_VARIABLES";

TEST_CASE("tasks get the variables of devices, but for those that are their user's, Slurm's or no variables")
{
	taken = {{"MINE", "1"}, {"SLURM_K8S_DEVICES", "/dev/other"}};
	give("SLURM_K8S_DEVICES=/dev/a|A=b=c|MINE=2|EMPTY=||SLURM_JOB_ID=7|HOME=/x|1X=y|no variable|LAST=cut off");
	CHECK(taken == std::map<std::string, std::string>{
			       {"MINE", "1"}, {"SLURM_K8S_DEVICES", "/dev/a"}, {"A", "b=c"}, {"EMPTY", ""}, {names, "SLURM_K8S_DEVICES,A,EMPTY"}});
	taken.clear();
	give("");
	give("A=b");
	CHECK(taken.empty());
}

TEST_CASE("variables of devices that came with the environment are taken back, and nothing else")
{
	taken = {{"A", "1"}, {"B", "2"}, {"HOME", "/x"}, {"SLURM_JOB_ID", "7"}, {"SLURM_K8S_DEVICES", "/dev/a"},
		 {names, "A,,HOME,SLURM_JOB_ID,SLURM_K8S_DEVICES,NONE"}};
	sk8_take_variables_back(nullptr);
	CHECK(taken == std::map<std::string, std::string>{{"B", "2"}, {"HOME", "/x"}, {"SLURM_JOB_ID", "7"}});
	taken = {{"A", "1"}, {names, std::string(9000, 'A')}};
	sk8_take_variables_back(nullptr);
	CHECK(taken.contains("A"));
}

TEST_CASE("no list of variables of devices is longer than what is read back")
{
	std::string many;
	for (int i = 0; i < 200; i++)
		many += std::string(100, 'V') + std::to_string(i) + "=x|";
	taken.clear();
	give(many);
	CHECK(taken.at(names).size() < 8192);
	CHECK(taken.size() > 70);
	sk8_take_variables_back(nullptr);
	CHECK(taken.empty());
}
