// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/requests.h"

#include <algorithm>
#include <map>
#include <string>

#include "lib/base/quantity.h"
#include "lib/base/text.h"

namespace sk8::kube {

namespace {

constexpr std::size_t max_resources = 64; // kinds in one list
constexpr std::size_t max_resource_name = 64 + max_name;
// Far above any machine; a sum, of however many, ends where adding one more does not overflow.
constexpr std::int64_t max_amount = std::int64_t(1) << 50;
constexpr std::int64_t max_sum = std::int64_t(1) << 60;

// Everything is counted by name; cpu in thousandths, the rest in units.
using Amounts = std::map<std::string, std::int64_t, std::less<>>;

void complain(std::string &problem, const std::string &sentence)
{
	if (problem.empty())
		problem = sentence;
}

Amounts read_list(const Json &list, std::string &problem)
{
	Amounts out;
	// They are counted all the same: a pod that is on its node has them, whoever put it there. The object's size bounds them.
	if (list.size() > max_resources)
		complain(problem, "a list of resources has more than " +
					  std::to_string(max_resources) + " entries");
	list.each_member([&](std::string_view name, const Json &value) {
		if (name.empty() || name.size() > max_resource_name)
			return complain(problem, "a resource has an impossible name");
		bool cpu = name == "cpu";
		std::string number =
			value.is_integer() ? std::to_string(value.integer_or(0)) : "";
		std::string_view text = value.is_integer() ? number : value.str();
		Result<std::int64_t> amount = cpu ? parse_milli(text) : parse_whole(text);
		if (!amount.ok())
			return complain(problem, "the amount of " + one_line(name, 128) +
							 " is not a quantity: " + amount.error().message);
		std::int64_t most = cpu ? max_milli_cpu : max_amount;
		if (*amount < 0 || *amount > most) {
			complain(problem, "the amount of " + one_line(name, 128) +
						  " is more than any node has");
			*amount = std::clamp<std::int64_t>(*amount, 0, most);
		}
		out.emplace(name, *amount);
	});
	return out;
}

void add(Amounts &to, const Amounts &what)
{
	for (const auto &[name, amount] : what)
		to[name] = std::min(to[name] + amount, max_sum);
}

void raise(Amounts &to, const Amounts &what)
{
	for (const auto &[name, amount] : what) {
		std::int64_t &have = to[name];
		have = std::max(have, amount);
	}
}

Amounts requests_or_limits(const Json &resources, std::string &problem)
{
	Amounts out = read_list(resources["requests"], problem);
	out.merge(read_list(resources["limits"], problem)); // keeps what is there
	return out;
}

bool resize_infeasible(const Json &status)
{
	bool found = false;
	status["conditions"].each_item([&](const Json &c) {
		found = found || (c["type"].str() == "PodResizePending" &&
				  c["status"].str() == "True" && c["reason"].str() == "Infeasible");
	});
	return found;
}

// name -> what the kubelet says the container has, while it has it
using Actual = std::map<std::string, Amounts, std::less<>>;

Actual actual_amounts(const Json &statuses, std::string &problem)
{
	Actual out;
	if (statuses.size() > max_containers)
		return out;
	statuses.each_item([&](const Json &s) {
		Amounts have = read_list(s["allocatedResources"], problem);
		raise(have, read_list(s["resources"]["requests"], problem));
		if (!have.empty())
			out.emplace(std::string(s["name"].str().substr(0, max_name)),
				    std::move(have));
	});
	return out;
}

class PodSum {
public:
	PodSum(const Json &spec, const Json &status) : spec_(spec), status_(status) {}

	PodRequest run()
	{
		Amounts containers = regular_containers();
		init_containers(containers);
		pod_level(containers);
		PodRequest out;
		out.has_cpu = containers.contains("cpu");
		out.has_memory = containers.contains("memory");
		add(containers, read_list(spec_["overhead"], problem_));
		out.total = to_resources(containers);
		if (out.total.milli_cpu > max_milli_cpu) {
			complain(problem_, "the amount of cpu is more than any node has");
			out.total.milli_cpu = max_milli_cpu;
		}
		out.problem = std::move(problem_);
		return out;
	}

	static Resources to_resources(Amounts &amounts)
	{
		Resources out;
		for (auto &[name, amount] : amounts) {
			if (name == "cpu")
				out.milli_cpu = amount;
			else if (name == "memory")
				out.memory_bytes = amount;
			else
				out.extended.emplace(name, amount);
		}
		return out;
	}

private:
	Amounts regular_containers()
	{
		Amounts sum;
		Actual actual = actual_amounts(status_["containerStatuses"], problem_);
		each_container("containers", [&](const Json &c) { add(sum, amount_of(c, actual)); });
		return sum;
	}

	// Sidecars stay beside everything that starts after them; an ordinary init
	// container runs beside the sidecars before it and nothing else.
	void init_containers(Amounts &sum)
	{
		Amounts sidecars, peak;
		Actual actual = actual_amounts(status_["initContainerStatuses"], problem_);
		each_container("initContainers", [&](const Json &c) {
			Amounts own = amount_of(c, actual);
			if (c["restartPolicy"].str() == "Always") {
				add(sum, own);
				add(sidecars, own);
				raise(peak, sidecars);
			} else {
				add(own, sidecars);
				raise(peak, own);
			}
		});
		raise(sum, peak);
	}

	// spec.resources replaces the containers' sum for the kinds it may name; a
	// pod-level limit counts only for what no container asks for.
	void pod_level(Amounts &sum)
	{
		auto allowed = [](std::string_view name) {
			return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
		};
		for (auto &[name, amount] : read_list(spec_["resources"]["requests"], problem_))
			if (allowed(name))
				sum[name] = amount;
		for (auto &[name, amount] : read_list(spec_["resources"]["limits"], problem_))
			if (allowed(name))
				sum.emplace(name, amount);
		if (!spec_["resources"].is_object())
			return;
		Amounts now = read_list(status_["allocatedResources"], problem_);
		raise(now, read_list(status_["resources"]["requests"], problem_));
		for (auto &[name, amount] : now)
			if (allowed(name) && sum.contains(name))
				sum[name] = std::max(sum[name], amount);
	}

	Amounts amount_of(const Json &container, const Actual &actual)
	{
		auto now = actual.find(container["name"].str());
		if (now != actual.end() && infeasible_)
			return now->second;
		Amounts own = requests_or_limits(container["resources"], problem_);
		if (now != actual.end())
			raise(own, now->second);
		return own;
	}

	template <class F>
	void each_container(const char *list, F &&f)
	{
		Json all = spec_[list];
		if (all.size() > max_containers)
			complain(problem_, "the pod has more than " + std::to_string(max_containers) + " " + list);
		all.each_item(f);
	}

	const Json &spec_, &status_;
	bool infeasible_ = resize_infeasible(status_);
	std::string problem_;
};

} // namespace

PodRequest effective_request(const Json &spec, const Json &status)
{
	return PodSum(spec, status).run();
}

Resources decode_resources(const Json &list, std::string &problem)
{
	Amounts amounts = read_list(list, problem);
	return PodSum::to_resources(amounts);
}

} // namespace sk8::kube
