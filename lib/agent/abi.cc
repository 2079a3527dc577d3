// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The C border in slurmd: converts, calls, and lets no exception out.
#include "lib/sk8_abi.h"

#include <cerrno>
#include <memory>
#include <mutex>
#include <sys/stat.h>

#include "lib/agent/agent.h"
#include "lib/base/guard.h"
#include "lib/base/log.h"

namespace sk8::agent {
namespace {

std::mutex mutex; // guards running
std::shared_ptr<Agent> *running = nullptr; // no static destructor

const sk8_agent_host *host = nullptr;

void log_to_host(LogLevel level, const char *text)
{
	host->log(static_cast<sk8_log_level>(level), text);
}

LogLevel level_of_host()
{
	return static_cast<LogLevel>(host->log_level());
}

class HostJobs final : public SlurmJobs {
public:
	Result<std::optional<SlurmJob>> find(std::uint32_t id) override
	{
		std::optional<SlurmJob> found;
		const auto take = [](void *arg, const sk8_agent_job *j) {
			guard("job of a pod", [&] {
				auto cores = parse_cpu_list(j->cores);
				*static_cast<std::optional<SlurmJob> *>(arg) = SlurmJob{
					j->mark ? j->mark : "", j->running, cores ? std::move(*cores) : CpuSet(), j->exclusive, j->submit_time};
			});
		};
		if (const char *problem = host->find_job(id, take, &found))
			return Error{problem};
		return found;
	}
	std::set<std::uint32_t> here() override
	{
		std::set<std::uint32_t> found;
		host->steps_here(
			[](void *arg, std::uint32_t id) {
				guard("steps of this node", [&] { static_cast<std::set<std::uint32_t> *>(arg)->insert(id); });
			},
			&found);
		return found;
	}
};

void start_agent()
{
	struct stat status;
	if (stat(host->config_path, &status) != 0 && errno == ENOENT) {
		log_info("no agent on this node: there is no %s", host->config_path);
		return;
	}
	auto settings = load_agent_settings(host->config_path, host->uid);
	if (!settings) {
		log_error("%s", settings.error().message.c_str());
		log_error("%s is not used: no pod of this node is pinned", host->config_path);
		return;
	}
	static auto *const jobs = new HostJobs; // its threads may outlive it
	auto fresh = std::make_shared<Agent>(std::move(*settings), host->node, *jobs);
	if (auto r = fresh->start(); !r)
		return log_error("no agent on this node: %s", r.error().message.c_str());
	running = new std::shared_ptr<Agent>(std::move(fresh));
}

} // namespace
} // namespace sk8::agent

using namespace sk8;
using namespace sk8::agent;

extern "C" {

void sk8_agent_start(const sk8_agent_host *given)
{
	guard("sk8_agent_start", [&] {
		const std::lock_guard lock(sk8::agent::mutex);
		if (running)
			return;
		host = given;
		set_log_sink(log_to_host, level_of_host);
		kube::http_global_init();
		start_agent();
	});
}

bool sk8_agent_stop(void)
{
	return guard("sk8_agent_stop", false, [] {
		const std::lock_guard lock(sk8::agent::mutex);
		const std::unique_ptr<std::shared_ptr<Agent>> last(std::exchange(running, nullptr));
		if (last)
			(*last)->stop();
		return last != nullptr;
	});
}

} // extern "C"
