// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/shared_reservation.h"

#include <algorithm>

#include "lib/core/names.h"
#include "lib/core/reservation.h"

namespace sk8::core {

static constexpr std::string_view name_begin = "slurm-shared-";
static constexpr std::size_t longest_job_list = 4096;

Amount &Amount::operator+=(const Amount &more)
{
	milli_cpu += more.milli_cpu;
	memory_bytes += more.memory_bytes;
	return *this;
}

Amount amount_of(const NativeShare &share)
{
	return {static_cast<std::int64_t>(share.cpus) * 1000, static_cast<std::int64_t>(share.memory_mb) << 20};
}

Amount request_for(Amount jobs)
{
	jobs.memory_bytes = std::max<std::int64_t>(jobs.memory_bytes, 1);
	return jobs;
}

Json requests_of(const Amount &amount)
{
	const bool whole = amount.memory_bytes % (1 << 20) == 0;
	Json out = Json::object();
	out.set("cpu", amount.milli_cpu % 1000 ? std::to_string(amount.milli_cpu) + "m" : std::to_string(amount.milli_cpu / 1000));
	out.set("memory", whole ? std::to_string(amount.memory_bytes >> 20) + "Mi" : std::to_string(amount.memory_bytes));
	return out;
}

std::string shared_reservation_name(const std::string &node)
{
	return std::string(name_begin) + node;
}

std::string node_of_shared_reservation(std::string_view name)
{
	return name.starts_with(name_begin) ? std::string(name.substr(name_begin.size())) : "";
}

bool may_share(const NativeShare &share, const ReservationSettings &settings)
{
	return share.cpus <= settings.shared.max_cpus && share.gres.empty();
}

std::string job_list(const std::vector<std::uint32_t> &ids)
{
	std::vector<std::uint32_t> sorted = ids;
	std::ranges::sort(sorted);
	std::string out;
	for (std::size_t i = 0; i < sorted.size(); i++) {
		if (out.size() > longest_job_list)
			return out + " and " + std::to_string(sorted.size() - i) + " more";
		out += (out.empty() ? "" : ",") + std::to_string(sorted[i]);
	}
	return out;
}

Json shared_reservation_object(const std::string &node, const Amount &jobs, const std::string &job_list,
			       const ReservationSettings &settings)
{
	Json labels = Json::object(), notes = Json::object(), meta = Json::object();
	labels.set(names::shared_reservation, label_value(node)).set(names::reservation_job, names::reservation_job_shared);
	notes.set(names::reservation_jobs, job_list);
	meta.set("name", shared_reservation_name(node)).set("namespace", settings.ns);
	meta.set("labels", labels).set("annotations", notes);
	Json resources = Json::object(), out = Json::object();
	resources.set("requests", requests_of(request_for(jobs)));
	out.set("apiVersion", "v1").set("kind", "Pod").set("metadata", meta);
	return out.set("spec", reservation_spec(node, resources, settings));
}

SharedStep next_step(const SharedFacts &f)
{
	if (!f.exists)
		return f.wanted ? SharedStep::create : SharedStep::none;
	if (!f.ours || f.deleting)
		return SharedStep::none;
	if (f.over || f.removing || (!f.used && !f.lingers))
		return SharedStep::remove;
	if (!f.fits && f.resizes)
		return SharedStep::resize;
	return f.listed ? SharedStep::none : SharedStep::annotate;
}

} // namespace sk8::core
