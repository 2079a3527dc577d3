// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/reservation.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "lib/base/text.h"
#include "lib/core/job_request.h"
#include "lib/core/names.h"

namespace sk8::core {

static constexpr std::string_view name_begin = "slurm-";
static constexpr std::int64_t grace_seconds = 1;
static constexpr std::int64_t nobody = 65534;

std::string reservation_name(JobRef job, const std::string &node)
{
	return strprintf("slurm-%u-%llx-", job.id, static_cast<unsigned long long>(job.submit_time)) + node;
}

bool is_reservation_name(std::string_view name)
{
	if (!name.starts_with(name_begin))
		return false;
	name.remove_prefix(name_begin.size());
	const auto id = name.substr(0, name.find('-'));
	if (id.empty() || id.size() == name.size() || !std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; }))
		return false;
	name.remove_prefix(id.size() + 1);
	const auto time = name.substr(0, name.find('-'));
	return !time.empty() && time.size() < name.size() &&
	       std::ranges::all_of(time, [](unsigned char c) { return std::isxdigit(c); });
}

std::string node_of_reservation(std::string_view name)
{
	if (!is_reservation_name(name))
		return "";
	const auto after_id = name.find('-', name_begin.size());
	return std::string(name.substr(name.find('-', after_id + 1) + 1));
}

std::optional<JobRef> job_of_reservation(std::string_view name, const std::string &node)
{
	if (!is_reservation_name(name))
		return std::nullopt;
	const std::string text(name.substr(name_begin.size()));
	char *end = nullptr;
	errno = 0;
	const unsigned long long id = std::strtoull(text.c_str(), &end, 10), time = std::strtoull(end + 1, nullptr, 16);
	const JobRef job{static_cast<std::uint32_t>(id), static_cast<std::int64_t>(time)};
	if (errno != 0 || id > UINT32_MAX || time > INT64_MAX || reservation_name(job, node) != name)
		return std::nullopt;
	return job;
}

std::string label_value(std::string_view text)
{
	static constexpr std::size_t longest = kube::max_label_value;
	std::string out(text.substr(0, longest));
	for (char &c : out)
		if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.')
			c = '_';
	auto no_end = [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); };
	while (!out.empty() && no_end(out.back()))
		out.pop_back();
	out.erase(0, static_cast<std::size_t>(std::ranges::find_if_not(out, no_end) - out.begin()));
	return out;
}

using Devices = std::map<std::string, std::int64_t>;

// Of the one container, or of what others of a template leave it. It requests for volumes in memory, too: nobody else does.
static Json resources_of(const NativeShare &share, const Devices &devices, const PodTemplate *more)
{
	Json requests = Json::object(), limits = Json::object();
	if (more && more->milli_cpu)
		requests.set("cpu", std::to_string(std::int64_t{1000} * share.cpus - more->milli_cpu) + "m");
	else
		requests.set("cpu", std::to_string(share.cpus));
	if (share.memory_mb)
		requests.set("memory", std::to_string(share.memory_mb - (more ? whole_mib(more->memory_bytes) : 0)) + "Mi");
	for (const auto &[name, count] : devices) { // of these Kubernetes wants both
		requests.set(name, std::to_string(count));
		limits.set(name, std::to_string(count));
	}
	Json resources = Json::object();
	resources.set("requests", requests);
	if (!devices.empty())
		resources.set("limits", limits);
	return resources;
}

static Json container(const Json &resources, const ReservationSettings &settings)
{
	Json context = without_privileges(), out = Json::object();
	context.set("readOnlyRootFilesystem", Json::boolean(true));
	out.set("name", reservation_container).set("image", settings.image).set("imagePullPolicy", "IfNotPresent");
	return out.set("resources", resources).set("securityContext", context);
}

Json reservation_spec(const std::string &node, const Json &resources, const ReservationSettings &settings)
{
	Json containers = Json::array(), tolerations = Json::array();
	containers.append(container(resources, settings));
	tolerations.append(Json::object().set("operator", "Exists"));
	Json context = Json::object();
	context.set("runAsNonRoot", Json::boolean(true)).set("runAsUser", Json::integer(nobody));
	context.set("runAsGroup", Json::integer(nobody));
	context.set("seccompProfile", Json::object().set("type", "RuntimeDefault"));
	Json out = Json::object();
	// Placed by us: no scheduler is asked, the kubelet decides.
	if (node.empty())
		out.set("schedulerName", names::reservation_scheduler);
	else
		out.set("nodeName", node);
	out.set("containers", containers).set("tolerations", tolerations);
	out.set("terminationGracePeriodSeconds", Json::integer(grace_seconds)).set("securityContext", context);
	out.set("automountServiceAccountToken", Json::boolean(false)).set("enableServiceLinks", Json::boolean(false));
	if (!settings.priority_class.empty())
		out.set("priorityClassName", settings.priority_class);
	return out;
}

const std::string &image_of(const NativeJob &job, const PodTemplate *more)
{
	return more && job.image.empty() ? more->image : job.image;
}

std::string does_not_fit(const PodTemplate &more, const NativeShare &share)
{
	const auto mib = [](std::int64_t bytes) { return static_cast<unsigned long long>(whole_mib(bytes)); };
	const auto too_much = [&share](unsigned long long wanted) { return share.memory_mb && wanted > share.memory_mb; };
	const std::int64_t stays = more.memory_bytes + more.volume_bytes;
	const unsigned long long all = mib(stays), first = mib(stays + more.first_memory_bytes);
	if (more.milli_cpu > std::int64_t{1000} * share.cpus || too_much(all))
		return strprintf("its containers besides job%s may use %lld mCPU and %llu MiB together, and the job has "
				 "%u CPUs and %llu MiB on node %s",
				 more.volume_bytes ? ", and volumes in memory," : "", static_cast<long long>(more.milli_cpu), all, share.cpus,
				 static_cast<unsigned long long>(share.memory_mb), share.node.c_str());
	if (too_much(first))
		return strprintf("its init containers may use %llu MiB, with those that stay, and the job has %llu MiB on node %s", first,
				 static_cast<unsigned long long>(share.memory_mb), share.node.c_str());
	return "";
}

static Json object_of(const NativeJob &job, const std::string &node, const std::string &user, const ReservationSettings &settings, const Json &spec)
{
	Json labels = Json::object(), notes = Json::object(), meta = Json::object();
	labels.set(names::reservation_job, std::to_string(job.ref.id));
	labels.set(names::reservation_user, label_value(user));
	labels.set(names::reservation_account, label_value(job.account));
	notes.set(names::job_submit_time, std::to_string(job.ref.submit_time));
	meta.set("name", reservation_name(job.ref, node)).set("namespace", settings.ns);
	meta.set("labels", labels).set("annotations", notes);
	Json out = Json::object();
	out.set("apiVersion", "v1").set("kind", "Pod").set("metadata", meta);
	return out.set("spec", spec);
}

Json reservation_object(const NativeJob &job, const NativeShare &share, const std::string &user,
			const ReservationSettings &settings, const Devices &devices, const PodTemplate *more, const JobGroups &groups)
{
	const Json resources = resources_of(share, devices, more);
	Json spec = reservation_spec(more && claims_devices(*more) ? "" : share.node, resources, settings);
	if (!image_of(job, more).empty())
		add_job_container(spec, {.image = image_of(job, more), .pause = settings.pause_path, .uid = job.user_id, .gid = job.group_id,
					 .more = more, .service_account = job.service_account, .groups = groups, .counts_memory = share.memory_mb != 0}, resources);
	return object_of(job, share.node, user, settings, spec);
}

// A kubelet that is short of memory first ends what uses more than it has requested: so it requests what pause needs.
Json device_reservation_object(const NativeJob &job, const NativeShare &share, const std::string &user,
			       const ReservationSettings &settings, const Devices &devices)
{
	static constexpr std::uint64_t memory_of_pause = 16; // MiB
	const NativeShare own{share.node, 0, std::min(share.memory_mb, memory_of_pause), {}, {}};
	return object_of(job, share.node, user, settings, reservation_spec(share.node, resources_of(own, devices, nullptr), settings));
}

void add_step_devices(Json &object, const std::string &resources)
{
	if (!resources.empty())
		object["metadata"]["annotations"].set(names::step_devices, resources);
}

bool fits_share(const ForeignPod &pod, const NativeShare &share, const std::vector<ResourceSettings> &resources)
{
	return pod.node_name == share.node && pod.milli_cpu <= static_cast<std::int64_t>(share.cpus) * 1000 &&
	       whole_mib(pod.memory_bytes) <= share.memory_mb && pod.host_ports.empty() &&
	       is_part_of(gres_of(pod.extended, resources), share.gres);
}

ReservationStep next_step(const ReservationFacts &f)
{
	if (f.busy)
		return ReservationStep::none;
	if (f.exists && f.doubtful)
		return ReservationStep::look;
	if (f.exists && (!f.wanted || f.over))
		return f.deleting ? ReservationStep::none : ReservationStep::remove;
	if (f.exists)
		return f.unbound && !f.deleting ? ReservationStep::place : ReservationStep::none;
	return f.wanted ? ReservationStep::create : ReservationStep::none;
}

} // namespace sk8::core
