// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/job_devices.h"

#include <unistd.h>

#include "lib/agent/run_folder.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/log_limit.h"
#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/reservation.h"
#include "lib/sk8_container.h"

namespace sk8::agent {

// Of several resources the first one that has a variable says what it is.
static DeviceAnswer answer_for(const std::string &uid, std::string_view resources, const DeviceManager &manager)
{
	DeviceAnswer out;
	const auto pod = manager.answers.find(uid);
	if (pod == manager.answers.end())
		return out;
	for (const auto resource : split(resources, ','))
		if (const auto answer = pod->second.find(std::string(resource)); answer != pod->second.end()) {
			out.variables.insert(answer->second.variables.begin(), answer->second.variables.end());
			out.nodes.insert(answer->second.nodes.begin(), answer->second.nodes.end());
		}
	return out;
}

static std::string text_of(const DeviceAnswer &answer)
{
	std::string out, nodes;
	for (const auto &node : answer.nodes)
		nodes += (nodes.empty() ? "" : ",") + node;
	if (!nodes.empty())
		out += SK8_DEVICES_VARIABLE "=" + nodes + '\0';
	for (const auto &[name, value] : answer.variables)
		if (out.size() + name.size() + value.size() + 2 <= SK8_LONGEST_DEVICES)
			out += name + "=" + value + '\0';
	return out;
}

DevicesByJob job_devices(const std::unordered_map<std::string, kube::PodPtr> &pods, const DeviceManager &manager, const std::string &ns,
			 const std::string &node)
{
	std::map<std::uint32_t, std::int64_t> latest; // by job: when its run was submitted
	DevicesByJob out;
	for (const auto &[uid, pod] : pods) {
		const auto resources = pod->meta.annotations.find(std::string(core::names::step_devices));
		const auto job = pod->meta.ns == ns ? core::job_of_reservation(pod->meta.name, node) : std::nullopt;
		if (!job || !pod->admitted || resources == pod->meta.annotations.end() ||
		    (latest.contains(job->id) && latest[job->id] > job->submit_time))
			continue;
		latest[job->id] = job->submit_time;
		out[job->id] = text_of(answer_for(uid, resources->second, manager));
	}
	return out;
}

JobDevices::JobDevices(std::string folder) : folder_(made_empty(std::move(folder))) {}

void JobDevices::set(const DevicesByJob &jobs)
{
	for (auto at = told_.begin(); at != told_.end();)
		if (jobs.contains(at->first)) {
			++at;
		} else {
			(void) unlink(file_of(at->first).c_str());
			at = told_.erase(at);
		}
	for (const auto &[job, text] : jobs) {
		const auto known = told_.find(job);
		if (known != told_.end() && known->second == text && is_still_there(file_of(job)))
			continue;
		if (const auto written = write_file_atomic(file_of(job), text); written)
			told_[job] = text;
		else
			log_limited(LogLevel::error, folder_, "job %u: its steps are not told of its devices: %s", job, written.error().message.c_str());
	}
}

} // namespace sk8::agent
