// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/annotations.h"

#include <algorithm>
#include <charconv>

#include "lib/base/quantity.h"

namespace sk8::core {

namespace {

constexpr std::string_view own = "slurm-k8s.io/";
constexpr std::string_view bridge = "slurmjob.slinky.slurm.net/";
constexpr std::string_view sunk = "sunk.coreweave.com/";

constexpr std::size_t max_value = 1024;

using Setter = Result<void> (*)(Wishes &, const std::string &value);

template <auto Member>
Result<void> text(Wishes &w, const std::string &value)
{
	w.*Member = value;
	return {};
}

Result<std::uint32_t> number(const std::string &value)
{
	std::uint32_t n = 0;
	auto [end, err] = std::from_chars(value.data(), value.data() + value.size(), n);
	if (err != std::errc() || end != value.data() + value.size() || n == 0)
		return Error{"\"" + value + "\" is not a positive number"};
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
	{sunk, "comment", text<&Wishes::comment>},
	{sunk, "timeout", seconds},
	{sunk, "exclusive", sunk_exclusive},

	{bridge, "account", text<&Wishes::account>},
	{bridge, "partition", text<&Wishes::partition>},
	{bridge, "qos", text<&Wishes::qos>},
	{bridge, "reservation", text<&Wishes::reservation>},
	{bridge, "licenses", text<&Wishes::licenses>},
	{bridge, "user-id", text<&Wishes::user_id>},
	{bridge, "group-id", text<&Wishes::group_id>},
	{bridge, "job-name", text<&Wishes::job_name>},
	{bridge, "wckey", text<&Wishes::wckey>},
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
	{own, "job-name", text<&Wishes::job_name>},
	{own, "comment", text<&Wishes::comment>},
	{own, "wckey", text<&Wishes::wckey>},
	{own, "constraints", text<&Wishes::features>},
	{own, "time-limit", minutes},
	{own, "cpus", cpus},
	{own, "memory", memory},
	{own, "priority", unsupported},
	{own, "gres", unsupported},
};

bool printable(const std::string &s)
{
	return std::all_of(s.begin(), s.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

} // namespace

Result<Wishes> read_wishes(const kube::Pod &pod)
{
	Wishes out;
	for (const Row &row : rows) {
		const std::string key = std::string(row.prefix) + std::string(row.key);
		auto it = pod.meta.annotations.find(key);
		if (it == pod.meta.annotations.end())
			continue;
		if (it->second.size() > max_value || !printable(it->second))
			return Error{"annotation " + key + ": longer than 1024 bytes or not printable"};
		if (auto r = row.set(out, it->second); !r)
			return Error{"annotation " + key + ": " + r.error().message};
	}
	return out;
}

} // namespace sk8::core
