// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Containers of the simulated nodes: real processes, or timers that stand for one.
//
// A process runs under a shim (this program again, --container DIR) that outlives
// kubesim, as containerd's shim outlives the kubelet: a restarted kubesim finds the
// container, or learns how and when it ended, from DIR.
#ifndef KUBESIM_CONTAINER_H
#define KUBESIM_CONTAINER_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test/kubesim/jv.h"
#include "test/kubesim/loop.h"

namespace kubesim {

struct ContainerEnd {
	int code = 0;          // exit status, or 128 + signal
	std::string reason;    // Completed, Error, StartError
	std::string message;
	std::int64_t finished_us = 0; // the main process ended
	std::int64_t gone_us = 0;     // no process of it is left
};

class Container {
public:
	virtual ~Container() = default;
	virtual void terminate() = 0; // asks the main process to end (SIGTERM)
	virtual void kill() = 0;      // ends all of it
	std::int64_t started_us = 0;
	// Called once, from the loop, never from within another call.
	std::function<void(const ContainerEnd &)> on_end;
};

struct ProcessSpec {
	std::string dir; // new folder for this container
	std::vector<std::string> argv, env; // env: NAME=value
	std::string cwd;
	J about; // kept with it, for whom finds it later (pod uid, container name ...)
};

// Throws nothing: what fails is reported through on_end as StartError.
std::unique_ptr<Container> start_process(Loop &loop, const ProcessSpec &spec);
// The container of a folder that an earlier kubesim made.
std::unique_ptr<Container> adopt_process(Loop &loop, const std::string &dir);
J read_about(const std::string &dir);

struct FakeSpec {
	std::int64_t started_us = 0; // 0: now
	std::optional<double> run_seconds;
	int exit_code = 0;
	bool ignores_term = false;
};
std::unique_ptr<Container> start_fake(Loop &loop, const FakeSpec &spec);

// main() of the shim.
int run_container_shim(int argc, char **argv);

} // namespace kubesim

#endif
