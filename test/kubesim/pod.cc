// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/pod.h"

#include <algorithm>

#include "test/kubesim/quantity.h"
#include "test/kubesim/times.h"

namespace kubesim {
namespace {

bool default_container(J c)
{
	const std::string image = c["image"].str();
	std::size_t slash = image.rfind('/');
	std::string last = slash == image.npos ? image : image.substr(slash + 1);
	bool latest = image.find('@') == image.npos &&
		      (last.find(':') == last.npos || last.substr(last.find(':')) == ":latest");
	c.set_default("imagePullPolicy", latest ? "Always" : "IfNotPresent");
	c.set_default("terminationMessagePath", "/dev/termination-log");
	c.set_default("terminationMessagePolicy", "File");
	J resources = c.child("resources");
	bool good = canonicalize(resources["limits"]) && canonicalize(resources["requests"]);
	if (resources["limits"].size()) {
		J requests = resources.child("requests");
		resources["limits"].each_member([&](const std::string &key, const J &value) {
			requests.set_default(key.c_str(), value);
		});
	}
	c["ports"].each_item([](J p) { p.set_default("protocol", "TCP"); });
	c["env"].each_item([](J e) {
		if (J ref = e.path("valueFrom.fieldRef"))
			ref.set_default("apiVersion", "v1");
	});
	return good;
}

void add_default_tolerations(J spec)
{
	for (const char *key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
		J list = spec.children("tolerations");
		bool present = false;
		list.each_item([&](const J &t) {
			std::string effect = t["effect"].str(), k = t["key"].str();
			present |= (effect == "NoExecute" || effect.empty()) &&
				   (k == key || (k.empty() && t["operator"].str() == "Exists"));
		});
		if (!present)
			list.append(J::make("key", key, "operator", "Exists", "effect", "NoExecute",
					    "tolerationSeconds", 300));
	}
}

template <class F>
void each_container(const J &pod, F &&f) // f(path, container)
{
	for (const char *list : {"initContainers", "containers"}) {
		std::size_t n = 0;
		pod["spec"][list].each_item([&](const J &c) {
			f("spec." + std::string(list) + "[" + std::to_string(n++) + "]", c);
		});
	}
}

const char dns_label_rule[] =
	"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
	"start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
	"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

bool is_dns_label(const std::string &s)
{
	if (s.empty() || s.size() > 63 || s.front() == '-' || s.back() == '-')
		return false;
	return s.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == s.npos;
}

void validate_resources(const std::string &path, const J &c, std::vector<FieldError> &errors)
{
	const J limits = c.path("resources.limits"), requests = c.path("resources.requests");
	for (const char *list : {"limits", "requests"})
		c["resources"][list].each_member([&](const std::string &name, const J &value) {
			auto q = parse_quantity(value);
			if (q && q->nano < 0)
				errors.push_back(field_invalid(
					path + ".resources." + list + "[" + name + "]",
					"\"" + value.str() + "\"", "must be greater than or equal to 0"));
		});
	requests.each_member([&](const std::string &name, const J &value) {
		auto request = parse_quantity(value), limit = parse_quantity(limits[name]);
		if (request && limit && request->nano > limit->nano)
			errors.push_back(field_invalid(path + ".resources.requests", "\"" + value.str() + "\"",
						       "must be less than or equal to " + name + " limit of " +
							       limits[name].str()));
	});
}

void validate_containers(const J &pod, std::vector<FieldError> &errors)
{
	if (pod["spec"]["containers"].size() == 0)
		errors.push_back(field_required("spec.containers"));
	std::vector<std::string> names;
	each_container(pod, [&](const std::string &path, const J &c) {
		const std::string name = c["name"].str();
		if (name.empty())
			errors.push_back(field_required(path + ".name"));
		else if (!is_dns_label(name))
			errors.push_back(field_invalid(path + ".name", "\"" + name + "\"", dns_label_rule));
		if (c["image"].str().empty())
			errors.push_back(field_required(path + ".image"));
		validate_resources(path, c, errors);
		if (!name.empty() && std::find(names.begin(), names.end(), name) != names.end())
			errors.push_back(field_duplicate(path + ".name", "\"" + name + "\""));
		names.push_back(name);
	});
}

void add_up(std::map<std::string, std::int64_t> &sum, const J &requests, bool maximum)
{
	requests.each_member([&](const std::string &name, const J &value) {
		auto q = parse_quantity(value);
		if (!q)
			return;
		std::int64_t n = name == "cpu" ? q->milli() : q->whole();
		std::int64_t &slot = sum[name];
		slot = maximum ? std::max(slot, n) : slot + n;
	});
}

} // namespace

std::string qos_class(const J &pod)
{
	bool any = false, guaranteed = true;
	each_container(pod, [&](const std::string &, const J &c) {
		const J requests = c.path("resources.requests"), limits = c.path("resources.limits");
		for (const char *name : {"cpu", "memory"}) {
			auto request = parse_quantity(requests[name]), limit = parse_quantity(limits[name]);
			any |= (request && request->nano > 0) || (limit && limit->nano > 0);
			guaranteed &= limit && limit->nano > 0 && request && request->nano == limit->nano;
		}
	});
	return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

bool default_pod(J pod)
{
	J spec = pod.child("spec");
	bool good = true;
	for (const char *list : {"initContainers", "containers"})
		spec[list].each_item([&](const J &c) { good &= default_container(c); });
	good &= canonicalize(spec["overhead"]) && canonicalize(spec.path("resources.requests")) &&
		canonicalize(spec.path("resources.limits"));
	spec.set_default("restartPolicy", "Always");
	spec.set_default("terminationGracePeriodSeconds", 30);
	spec.set_default("dnsPolicy", "ClusterFirst");
	if (J account = spec["serviceAccountName"])
		spec.set_default("serviceAccount", account);
	spec.set_default("securityContext", J::object());
	if (spec["schedulerName"].str().empty())
		spec.set("schedulerName", "default-scheduler");
	add_default_tolerations(spec);
	spec.set_default("priority", 0);
	spec.set_default("enableServiceLinks", true);
	spec.set_default("preemptionPolicy", "PreemptLowerPriority");
	pod.path("status.conditions").each_item([](J c) {
		c.set_default("lastProbeTime", J::null());
		c.set_default("lastTransitionTime", J::null());
	});
	return good;
}

J initial_pod_status(const J &pod)
{
	J status = J::make("phase", "Pending");
	if (pod.path("spec.schedulingGates").size())
		set_condition(status, "PodScheduled", "False", "SchedulingGated",
			      "Scheduling is blocked due to non-empty scheduling gates");
	status.set("qosClass", qos_class(pod));
	return status;
}

std::vector<FieldError> validate_pod(const J &pod)
{
	std::vector<FieldError> errors;
	validate_containers(pod, errors);
	const J spec = pod["spec"];
	const std::string policy = spec["restartPolicy"].str();
	if (policy != "Always" && policy != "OnFailure" && policy != "Never")
		errors.push_back(field_unsupported("spec.restartPolicy", policy,
						   {"Always", "OnFailure", "Never"}));
	if (J deadline = spec["activeDeadlineSeconds"]; deadline && deadline.num() < 1)
		errors.push_back(field_invalid("spec.activeDeadlineSeconds", deadline.dump(),
					       "must be between 1 and 2147483647, inclusive"));
	return errors;
}

// Copies into `like` the fields that an update may change, so that what still
// differs is forbidden.
static void allow(J like, const J &now, const J &before)
{
	J spec = like["spec"], old = before["spec"];
	for (const char *list : {"initContainers", "containers"})
		for (std::size_t i = 0; i < spec[list].size() && i < old[list].size(); i++)
			spec[list].item(i).set("image", old[list].item(i)["image"]);
	auto restore = [&](const char *field) {
		if (J value = old[field])
			spec.set(field, value);
		else
			spec.del(field);
	};
	J deadline = now.path("spec.activeDeadlineSeconds"), was = old["activeDeadlineSeconds"];
	if (deadline && (!was || deadline.num() <= was.num()))
		restore("activeDeadlineSeconds");
	bool all_kept = true;
	old["tolerations"].each_item([&](const J &t) {
		bool kept = false;
		now.path("spec.tolerations").each_item([&](const J &n) { kept |= n == t; });
		all_kept &= kept;
	});
	if (all_kept)
		restore("tolerations");
	bool only_removed = true;
	now.path("spec.schedulingGates").each_item([&](const J &gate) {
		bool known = false;
		old["schedulingGates"].each_item([&](const J &g) { known |= g == gate; });
		only_removed &= known;
	});
	if (only_removed)
		restore("schedulingGates");
	if (old["schedulingGates"].size()) {
		restore("nodeSelector");
		restore("affinity");
	}
}

std::vector<FieldError> validate_pod_update(const J &now, const J &before)
{
	J like = now.copy();
	allow(like, now, before);
	if (like["spec"] == before["spec"])
		return {};
	return {field_forbidden(
		"spec", "pod updates may not change fields other than "
			"`spec.containers[*].image`,`spec.initContainers[*].image`,"
			"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
			"tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
			"previously negative)")};
}

void set_condition(J status, const std::string &type, const std::string &value, const std::string &reason,
		   const std::string &message)
{
	J list = status.children("conditions");
	J condition;
	list.each_item([&](const J &c) {
		if (c["type"].str() == type)
			condition = c;
	});
	if (!condition) {
		condition = J::make("type", type, "status", "", "lastProbeTime", J::null());
		list.append(condition);
	}
	if (condition["status"].str() != value)
		condition.set("lastTransitionTime", rfc3339(now_s()));
	condition.set("status", value);
	for (auto [key, text] : {std::pair("reason", &reason), std::pair("message", &message)})
		if (text->empty())
			condition.del(key);
		else
			condition.set(key, *text);
}

std::map<std::string, std::int64_t> pod_requests(const J &pod)
{
	std::map<std::string, std::int64_t> sum;
	pod.path("spec.containers").each_item([&](const J &c) {
		add_up(sum, c.path("resources.requests"), false);
	});
	pod.path("spec.initContainers").each_item([&](const J &c) {
		add_up(sum, c.path("resources.requests"), c["restartPolicy"].str() != "Always");
	});
	add_up(sum, pod.path("spec.overhead"), false);
	return sum;
}

} // namespace kubesim
