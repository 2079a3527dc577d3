// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/job_request.h"

#include <algorithm>
#include <limits>

#include "lib/base/text.h"
#include "lib/core/resubmit.h"

namespace sk8::core {

static constexpr std::int64_t mib = 1024 * 1024;

// The kubelet decides which devices a pod gets, and does not tell. Whether Slurm's jobs have
// some of the same node only the administrator knows: he says so by naming the resource.
static std::string not_named(const std::string &name, const std::vector<ResourceSettings> &resources)
{
	if (std::ranges::find(resources, name, &ResourceSettings::kubernetes) != resources.end())
		return "";
	const std::string asks = "it asks for " + one_line(name, 128) + ": ";
	if (find_resource(resources, name))
		return asks + "which of them it gets the kubelet decides, without Slurm; the administrator allows it by "
			      "clusters[].resources in slurm-k8s.yaml, see slurm-k8s(7), GPUS AND OTHER GRES";
	return asks + "resources other than cpu, memory, ephemeral-storage and those of clusters[].resources in "
		      "slurm-k8s.yaml are not supported";
}

// What this version cannot honour. Placing such a pod all the same would be a
// promise broken later, on the node.
static std::string unsupported(const kube::Pod &pod, const std::vector<ResourceSettings> &resources)
{
	struct Row {
		bool present;
		const char *text;
	};
	const Row rows[] = {
		{!pod.problem.empty(), pod.problem.c_str()},
		{!pod.resource_claims.empty() && !has_device_class(resources), "it has resource claims, and clusters[].resources in slurm-k8s.yaml names no deviceClass"},
		{pod.in_pod_group, "pod groups (gangs) are not supported yet"},
		{pod.has_required_pod_affinity, "required pod affinity and anti-affinity are not supported yet"},
		{pod.has_topology_spread, "topologySpreadConstraints with DoNotSchedule are not supported yet"},
	};
	for (const Row &row : rows)
		if (row.present)
			return row.text;
	for (const auto &[name, count] : pod.request.extended) {
		if (name == "ephemeral-storage")
			continue; // the kubelet's to judge, Slurm has none
		if (std::string why = not_named(name, resources); count > 0 && !why.empty())
			return why;
		if (count > max_gres_count)
			return "it asks for more of " + one_line(name, 128) + " than any node has";
	}
	return "";
}

static std::uint32_t round_up(std::int64_t value, std::int64_t unit)
{
	const std::int64_t n = value / unit + (value % unit != 0);
	return n > std::numeric_limits<std::uint32_t>::max() ? std::numeric_limits<std::uint32_t>::max()
							      : static_cast<std::uint32_t>(n);
}

std::uint32_t whole_cpus(std::int64_t milli)
{
	return milli <= 0 ? 0 : round_up(milli, 1000);
}

static std::uint32_t cpus_of(const kube::Pod &pod, const Wishes &wishes, const PodSettings &s)
{
	std::int64_t milli = wishes.milli_cpu.value_or(pod.request.milli_cpu);
	if (milli <= 0)
		milli = s.default_milli_cpu;
	return std::max<std::uint32_t>(1, whole_cpus(milli));
}

std::uint64_t whole_mib(std::int64_t bytes)
{
	return bytes <= 0 ? 0 : static_cast<std::uint64_t>(bytes / mib + (bytes % mib != 0));
}

static std::uint64_t memory_of(const kube::Pod &pod, const Wishes &wishes, const PodSettings &s)
{
	std::int64_t bytes = wishes.memory_bytes.value_or(pod.request.memory_bytes);
	if (bytes <= 0)
		bytes = s.default_memory_bytes;
	return whole_mib(bytes);
}

// When the deadline has passed the kubelet ends the pod, which may take its grace. A minute more, so that Slurm does not end the
// job before, as one that would not stop.
static std::uint32_t minutes_with_grace(std::int64_t deadline, std::int64_t grace)
{
	const std::int64_t more = std::clamp<std::int64_t>(grace, 0, kube::max_grace_seconds) + 60;
	return round_up(std::min(deadline, std::numeric_limits<std::int64_t>::max() - more) + more, 60);
}

// The shorter of activeDeadlineSeconds and the annotation.
static std::uint32_t time_limit_of(const kube::Pod &pod, const Wishes &wishes)
{
	std::uint32_t minutes = wishes.time_limit_minutes.value_or(0);
	if (pod.active_deadline_seconds && *pod.active_deadline_seconds > 0) {
		const std::uint32_t deadline = minutes_with_grace(*pod.active_deadline_seconds, pod.grace_seconds);
		if (minutes == 0 || deadline < minutes)
			minutes = deadline;
	}
	return minutes;
}

// Less than the pod's request would let the kubelet refuse it or two pods share
// what each was promised.
static std::string below_request(const kube::Pod &pod, const Wishes &w)
{
	if (w.milli_cpu && *w.milli_cpu < pod.request.milli_cpu)
		return "the annotation asks Slurm for fewer CPUs than the containers request";
	if (w.memory_bytes && *w.memory_bytes < pod.request.memory_bytes)
		return "the annotation asks Slurm for less memory than the containers request";
	return "";
}

Result<JobRequest> make_request(const PodKey &key, const kube::Pod &pod,
				const ClusterSettings &settings, const UserLookup &lookup)
{
	auto wishes = read_wishes(pod);
	if (!wishes)
		return wishes.error();
	if (std::string why = unsupported(pod, settings.resources); !why.empty())
		return Error{why};
	if (std::string why = below_request(pod, *wishes); !why.empty())
		return Error{why};
	auto identity = identify(pod, *wishes, settings, lookup);
	if (!identity)
		return identity.error();
	if (wishes->requeue.value_or(false) && is_bare(pod) && !may_be_resubmitted(pod, settings))
		return Error{"annotation slurm-k8s.io/requeue: pods of this namespace are not made again; the administrator allows it by "
			     "namespaces[].barePods in slurm-k8s.yaml"};

	JobRequest r;
	r.key = key;
	r.job_name = wishes->job_name.value_or(pod.meta.name);
	r.identity = std::move(*identity);
	r.wckey = wishes->wckey.value_or("");
	r.comment = wishes->comment.value_or("");
	r.features = wishes->features.value_or("");
	r.cpus = cpus_of(pod, *wishes, settings.pods);
	r.memory_mb = memory_of(pod, *wishes, settings.pods);
	r.gres = gres_of(pod.request.extended, settings.resources);
	r.time_limit_minutes = time_limit_of(pod, *wishes);
	for (const auto &c : settings.pods.priority_classes)
		if (c.name == pod.priority_class)
			r.nice = c.nice;
	return r;
}

} // namespace sk8::core
