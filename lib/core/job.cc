// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/job.h"

#include "lib/base/node_list.h"

namespace sk8::core {

static std::string text(const char *s)
{
	return s ? s : "";
}

Job job_from_abi(const sk8_job &j)
{
	Job out;
	out.ref = {j.job_id, j.submit_time};
	out.state = j.state;
	out.held = j.held;
	out.reason = text(j.reason);
	out.partition = text(j.partition);
	out.excluded_nodes = text(j.excluded_nodes);
	out.priority = j.priority;
	out.start_time = j.start_time;
	out.end_time = j.end_time;
	out.preempt_end = j.preempt_end;
	out.age = {j.accrue_time, j.given_priority};
	out.exit_code = j.exit_code;
	out.ended_by = j.ended_by;
	out.ended_by_us = j.ended_by_us;
	out.node = text(j.node);
	if (j.cores)
		out.cores.assign(j.cores, j.cores + j.core_count);
	out.memory_mb = j.memory_mb;
	out.gres = merged(gres_from_abi(j.gres, j.gres_count));
	return out;
}

std::string our_excluded_nodes(const std::set<std::string> &nodes)
{
	if (nodes.empty())
		return "";
	const std::string list = compress_nodes(nodes);
	return list + "," + first_node(list);
}

bool are_our_excluded_nodes(std::string_view list)
{
	if (list.empty())
		return true;
	const std::size_t last = list.rfind(',');
	const std::string first = first_node(list);
	return last != list.npos && !first.empty() && list.substr(last + 1) == first;
}

const char *job_state_name(sk8_job_state state)
{
	static const char *const names[] = {
		"PENDING", "RUNNING", "SUSPENDED", "COMPLETED",     "CANCELLED",  "FAILED",
		"TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "ended",
	};
	return state <= SK8_JOB_OTHER_END ? names[state] : "unknown";
}

} // namespace sk8::core
