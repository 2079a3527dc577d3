// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/resize.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/kube/requests.h"

namespace sk8::kube {

static constexpr std::size_t max_message = 512;

static void add(Resources &to, const Resources &what)
{
	to.milli_cpu = std::min(max_milli_cpu, to.milli_cpu + what.milli_cpu);
	to.memory_bytes += what.memory_bytes; // max_containers of them fit
}

// Of all containers, or nothing.
static std::optional<Resources> allocated_of(const Json &containers, const Json &statuses)
{
	Resources sum;
	std::size_t found = 0;
	std::string problem;
	if (statuses.size() > max_containers)
		return {};
	statuses.each_item([&](const Json &s) {
		if (!s["allocatedResources"].is_object())
			return;
		found++;
		add(sum, decode_resources(s["allocatedResources"], problem));
	});
	if (found != containers.size() || !problem.empty())
		return {};
	return sum;
}

static void decode_pending(const Json &conditions, Resize &out)
{
	if (conditions.size() > max_conditions)
		return;
	conditions.each_item([&](const Json &c) {
		if (c["type"].str() != "PodResizePending" || c["status"].str() != "True" ||
		    c["observedGeneration"].integer_or(0) < out.generation)
			return;
		out.pending = c["reason"].str() == "Infeasible" ? Resize::Pending::infeasible : Resize::Pending::deferred;
		out.message = one_line(c["message"].str(), max_message);
	});
}

static bool is_put_off(const Json &conditions)
{
	bool found = false;
	conditions.each_item([&](const Json &c) { found |= c["type"].str() == "PodResizePending" && c["status"].str() == "True"; });
	return found;
}

static bool all_run(const Json &statuses)
{
	bool all = statuses.size() > 0;
	statuses.each_item([&](const Json &s) { all &= s["state"]["running"].is_object(); });
	return all;
}

bool is_resize_unheard(const Json &object)
{
	const Json status = object["status"];
	const std::int64_t seen = status["observedGeneration"].integer_or(0);
	if (seen <= 0)
		return false;
	return seen < object["metadata"]["generation"].integer_or(0) ||
	       (is_put_off(status["conditions"]) && !all_run(status["containerStatuses"]));
}

Resize decode_resize(const Json &object)
{
	Resize out;
	const Json containers = object["spec"]["containers"], status = object["status"];
	const std::int64_t seen = status["observedGeneration"].integer_or(0);
	std::string problem;
	if (containers.size() > max_containers)
		return out;
	out.generation = object["metadata"]["generation"].integer_or(0);
	out.observed = seen > 0;
	containers.each_item([&](const Json &c) { add(out.asked, decode_resources(c["resources"]["requests"], problem)); });
	decode_pending(status["conditions"], out);
	if (!out.observed || seen < out.generation || !is_admitted(status) || !problem.empty())
		return out;
	out.allocated = allocated_of(containers, status["containerStatuses"]);
	// Of containers that its runtime does not have yet (their image is being pulled) a kubelet tells no
	// allocation: there it is what it has seen and does not put off.
	if (!out.allocated && out.pending == Resize::Pending::no)
		out.allocated = out.asked;
	return out;
}

} // namespace sk8::kube
