// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/exclusive_cpus.h"

#include <algorithm>

#include "lib/base/doubling.h"
#include "lib/base/log.h"

namespace sk8::agent {

static constexpr Millis first_pause{1'000}, longest_pause{60'000};

void ExclusiveCpus::ask_later(Job &job)
{
	job.ask_at = clock_.monotonic() + doubled(first_pause, longest_pause, job.failures++);
}

void ExclusiveCpus::ask(std::uint32_t id, Job &job)
{
	const auto found = jobs_.find(id);
	if (!found) {
		log_verbose("job %u: not known yet whether it is exclusive: %s", id, found.error().message.c_str());
		return ask_later(job);
	}
	if (*found && !(*found)->running && (*found)->exclusive) // it is suspended, or comes or goes
		return ask_later(job);
	job.known = true;
	if (!*found || !(*found)->exclusive)
		return;
	if (const auto cpus = topology_.cpus_of((*found)->cores))
		job.cpus = *cpus;
	else
		log_error("job %u: no pod is kept off its cores: %s", id, cpus.error().message.c_str());
}

CpuSet ExclusiveCpus::look()
{
	const std::set<std::uint32_t> here = jobs_.here();
	std::erase_if(here_, [&](const auto &known) { return !here.contains(known.first); });
	CpuSet out;
	for (const std::uint32_t id : here) {
		Job &job = here_[id];
		if (!job.known && clock_.monotonic() >= job.ask_at)
			ask(id, job);
		out = united(out, job.cpus);
	}
	return out;
}

} // namespace sk8::agent
