// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/annotations.h"

#include <algorithm>
#include <charconv>

#include "lib/base/quantity.h"
#include "lib/base/text.h"
#include "lib/core/names.h"

namespace sk8::core {

namespace {

constexpr std::string_view own = "slurm-k8s.io/";
constexpr std::string_view bridge = "slurmjob.slinky.slurm.net/";
constexpr std::string_view sunk = "sunk.coreweave.com/";

constexpr std::size_t max_value = 1000; // Slurm takes less than 1024

using Setter = Result<void> (*)(Wishes &, const std::string &value);

template <auto Member>
Result<void> text(Wishes &w, const std::string &value)
{
	w.*Member = value;
	return {};
}

// A text that squeue, scontrol and sacct print as it is: it must not look like a
// further field ("x UserId=root(0)") or a further column of sacct -P there.
template <auto Member>
Result<void> job_text(Wishes &w, const std::string &value)
{
	if (value.find('|') != value.npos)
		return Error{"leave out the character |, it separates columns of sacct"};
	if (const std::size_t blank = value.find(' '); value.find('=', blank) != value.npos)
		return Error{"write no = behind a blank, it would look like another field of scontrol show job"};
	w.*Member = value;
	return {};
}

Result<std::uint32_t> number(const std::string &value)
{
	std::uint32_t n = 0;
	auto [end, err] = std::from_chars(value.data(), value.data() + value.size(), n);
	if (err != std::errc() || end != value.data() + value.size() || n == 0)
		return Error{"\"" + one_line(value, 64) + "\" is not a positive number"};
	return n;
}

Result<void> minutes(Wishes &w, const std::string &value)
{
	auto n = number(value);
	if (!n)
		return Error{n.error().message + " of minutes"};
	w.time_limit_minutes = *n;
	return {};
}

Result<void> seconds(Wishes &w, const std::string &value)
{
	auto n = number(value);
	if (!n)
		return Error{n.error().message + " of seconds"};
	w.time_limit_minutes = *n / 60 + (*n % 60 != 0);
	return {};
}

Result<void> cpus(Wishes &w, const std::string &value)
{
	auto q = parse_milli(value);
	if (!q)
		return q.error();
	w.milli_cpu = *q;
	return {};
}

Result<void> memory(Wishes &w, const std::string &value)
{
	auto q = parse_whole(value);
	if (!q)
		return q.error();
	w.memory_bytes = *q;
	return {};
}

// slurm-bridge: only "false" shares a node. SUNK: "ok" shares it. Whole nodes
// are not given to pods: saying so beats giving less than was asked for.
Result<void> bridge_exclusive(Wishes &, const std::string &value)
{
	std::string v = value;
	std::transform(v.begin(), v.end(), v.begin(), [](unsigned char c) { return std::tolower(c); });
	if (v == "false")
		return {};
	return Error{"pods share nodes here; set it to \"false\" or ask for all CPUs of a node"};
}

Result<void> sunk_exclusive(Wishes &, const std::string &value)
{
	if (value == "ok")
		return {};
	return Error{"pods share nodes here; set it to \"ok\" or ask for all CPUs of a node"};
}

Result<void> one_node(Wishes &, const std::string &value)
{
	if (value == "1")
		return {};
	return Error{"a pod is one node"};
}

Result<void> requeue(Wishes &w, const std::string &value)
{
	if (value != "true" && value != "false")
		return Error{"set it to \"true\" or \"false\""};
	w.requeue = value == "true";
	return {};
}

Result<void> unsupported(Wishes &, const std::string &)
{
	return Error{"not supported"};
}

struct Row {
	std::string_view prefix, key;
	Setter set;
};

// In order of precedence, the weakest first.
constexpr Row rows[] = {
	{sunk, "account", text<&Wishes::account>},
	{sunk, "partition", text<&Wishes::partition>},
	{sunk, "qos", text<&Wishes::qos>},
	{sunk, "reservation", text<&Wishes::reservation>},
	{sunk, "user-id", text<&Wishes::user_id>},
	{sunk, "group-id", text<&Wishes::group_id>},
	{sunk, "comment", job_text<&Wishes::comment>},
	{sunk, "timeout", seconds},
	{sunk, "exclusive", sunk_exclusive},

	{bridge, "account", text<&Wishes::account>},
	{bridge, "partition", text<&Wishes::partition>},
	{bridge, "qos", text<&Wishes::qos>},
	{bridge, "reservation", text<&Wishes::reservation>},
	{bridge, "licenses", text<&Wishes::licenses>},
	{bridge, "user-id", text<&Wishes::user_id>},
	{bridge, "group-id", text<&Wishes::group_id>},
	{bridge, "job-name", job_text<&Wishes::job_name>},
	{bridge, "wckey", job_text<&Wishes::wckey>},
	{bridge, "constraints", text<&Wishes::features>},
	{bridge, "timelimit", minutes},
	{bridge, "cpu-per-task", cpus},
	{bridge, "mem-per-node", memory},
	{bridge, "exclusive", bridge_exclusive},
	{bridge, "min-nodes", one_node},
	{bridge, "max-nodes", one_node},
	{bridge, "priority", unsupported},
	{bridge, "gres", unsupported},

	{own, "account", text<&Wishes::account>},
	{own, "partition", text<&Wishes::partition>},
	{own, "qos", text<&Wishes::qos>},
	{own, "reservation", text<&Wishes::reservation>},
	{own, "licenses", text<&Wishes::licenses>},
	{own, "user-id", text<&Wishes::user_id>},
	{own, "group-id", text<&Wishes::group_id>},
	{own, "job-name", job_text<&Wishes::job_name>},
	{own, "comment", job_text<&Wishes::comment>},
	{own, "wckey", job_text<&Wishes::wckey>},
	{own, "constraints", text<&Wishes::features>},
	{own, "time-limit", minutes},
	{own, "cpus", cpus},
	{own, "memory", memory},
	{own, "requeue", requeue},
	{own, "priority", unsupported},
	{own, "gres", unsupported},
};

} // namespace

Result<Wishes> read_wishes(const kube::Pod &pod)
{
	Wishes out;
	for (const Row &row : rows) {
		const std::string key = std::string(row.prefix) + std::string(row.key);
		auto it = pod.meta.annotations.find(key);
		if (it == pod.meta.annotations.end())
			continue;
		if (it->second.size() > max_value)
			return Error{"annotation " + key + ": longer than 1000 bytes"};
		if (!is_printable(it->second))
			return Error{"annotation " + key + ": it has line ends, control or invisible characters: \"" +
				     one_line(it->second, 64) + "\""};
		if (auto r = row.set(out, it->second); !r)
			return Error{"annotation " + key + ": " + r.error().message};
	}
	return out;
}

std::map<std::string, std::string> job_annotations(const Job &job)
{
	std::map<std::string, std::string> out = {
		{std::string(names::job_id), std::to_string(job.ref.id)},
		{std::string(names::job_submit_time), std::to_string(job.ref.submit_time)},
		{std::string(names::job_node), job.node},
		{std::string(names::job_cores), index_list(job.cores)},
	};
	if (!job.gres.empty())
		out.emplace(names::job_gres, gres_text(job.gres));
	return out;
}

} // namespace sk8::core
