// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/table.h"

#include <algorithm>
#include <map>

#include "test/kubesim/times.h"

namespace kubesim {

std::string human_duration(std::int64_t seconds)
{
	auto pair = [](std::int64_t big, const char *unit, std::int64_t small, const char *small_unit) {
		std::string s = std::to_string(big) + unit;
		return small ? s + std::to_string(small) + small_unit : s;
	};
	const std::int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
	if (seconds < -1)
		return "<invalid>";
	if (seconds < 120)
		return std::to_string(std::max<std::int64_t>(seconds, 0)) + "s";
	if (minutes < 10)
		return pair(minutes, "m", seconds % 60, "s");
	if (minutes < 180)
		return pair(minutes, "m", 0, "");
	if (hours < 8)
		return pair(hours, "h", minutes % 60, "m");
	if (hours < 48)
		return pair(hours, "h", 0, "");
	if (days < 8)
		return pair(days, "d", hours % 24, "h");
	return days < 730 ? pair(days, "d", 0, "") : pair(days / 365, "y", days < 2920 ? days % 365 : 0, "d");
}

namespace {

std::string since(const J &timestamp)
{
	std::int64_t t = parse_rfc3339(timestamp.str());
	return t ? human_duration(now_s() - t) : "<unknown>";
}

std::string age(const J &object)
{
	return since(object.path("metadata.creationTimestamp"));
}

std::string or_else(const std::string &s, const char *otherwise)
{
	return s.empty() ? otherwise : s;
}

template <class... C>
J row(C &&...cells)
{
	J a = J::array();
	(a.append(std::forward<C>(cells)), ...);
	return a;
}

J name(const J &o)
{
	return o.path("metadata.name");
}

bool condition_is(const J &object, const char *type, const char *status)
{
	bool is = false;
	object.path("status.conditions").each_item([&](const J &c) {
		is |= c["type"].str() == type && c["status"].str() == status;
	});
	return is;
}

std::string termination_text(const J &t)
{
	if (std::string reason = t["reason"].str(); !reason.empty())
		return reason;
	if (t["signal"].num())
		return "Signal:" + std::to_string(t["signal"].num());
	return "ExitCode:" + std::to_string(t["exitCode"].num());
}

std::string pod_status(const J &pod, std::int64_t &ready)
{
	std::string reason = or_else(pod.path("status.reason").str(), pod.path("status.phase").str().c_str());
	pod.path("status.conditions").each_item([&](const J &c) {
		if (c["type"].str() == "PodScheduled" && c["reason"].str() == "SchedulingGated")
			reason = "SchedulingGated";
	});
	bool running = false;
	std::string error;
	const J statuses = pod.path("status.containerStatuses");
	for (std::size_t i = statuses.size(); i-- > 0;) {
		const J c = statuses.item(i), terminated = c.path("state.terminated");
		if (std::string why = c.path("state.waiting.reason").str(); !why.empty()) {
			reason = why;
		} else if (terminated) {
			reason = termination_text(terminated);
			if (terminated["exitCode"].num())
				error = reason;
		} else if (c["ready"].truth() && c.path("state.running")) {
			running = true;
			ready++;
		}
	}
	if (reason == "Completed" && running)
		reason = condition_is(pod, "Ready", "True") ? "Running" : !error.empty() ? error : "NotReady";
	else if (reason == "Completed" && !error.empty())
		reason = error;
	const std::string phase = pod.path("status.phase").str();
	if (pod.path("metadata.deletionTimestamp") && phase != "Succeeded" && phase != "Failed")
		reason = "Terminating";
	return reason;
}

J pod_cells(const J &pod)
{
	std::int64_t ready = 0, restarts = 0, last_restart = 0;
	const std::string status = pod_status(pod, ready);
	pod.path("status.containerStatuses").each_item([&](const J &c) {
		restarts += c["restartCount"].num();
		last_restart = std::max(last_restart,
					parse_rfc3339(c.path("lastState.terminated.finishedAt").str()));
	});
	std::string restart_text = std::to_string(restarts);
	if (restarts && last_restart)
		restart_text += " (" + human_duration(now_s() - last_restart) + " ago)";
	std::string ip = pod.path("status.podIPs").item(0)["ip"].str();
	return row(name(pod), std::to_string(ready) + "/" + std::to_string(pod.path("spec.containers").size()),
		   status, restart_text, age(pod), or_else(ip, "<none>"),
		   or_else(pod.path("spec.nodeName").str(), "<none>"),
		   or_else(pod.path("status.nominatedNodeName").str(), "<none>"), "<none>");
}

std::string node_roles(const J &node)
{
	std::string roles;
	node.path("metadata.labels").each_member([&](const std::string &key, const J &value) {
		const std::string prefix = "node-role.kubernetes.io/";
		std::string role = key.rfind(prefix, 0) == 0 ? key.substr(prefix.size())
				   : key == "kubernetes.io/role" ? value.str()
								 : "";
		if (!role.empty())
			roles += (roles.empty() ? "" : ",") + role;
	});
	return or_else(roles, "<none>");
}

J node_cells(const J &node)
{
	std::string status = condition_is(node, "Ready", "True") ? "Ready" : "Unknown";
	if (condition_is(node, "Ready", "False") || condition_is(node, "Ready", "Unknown"))
		status = "NotReady";
	if (node.path("spec.unschedulable").truth())
		status += ",SchedulingDisabled";
	std::map<std::string, std::string> address;
	node.path("status.addresses").each_item([&](const J &a) {
		address.emplace(a["type"].str(), a["address"].str());
	});
	const J info = node.path("status.nodeInfo");
	return row(name(node), status, node_roles(node), age(node), info["kubeletVersion"].str(),
		   or_else(address["InternalIP"], "<none>"), or_else(address["ExternalIP"], "<none>"),
		   or_else(info["osImage"].str(), "<unknown>"), or_else(info["kernelVersion"].str(), "<unknown>"),
		   or_else(info["containerRuntimeVersion"].str(), "<unknown>"));
}

J event_cells(const J &e)
{
	std::string first = since(e["firstTimestamp"]);
	if (e["firstTimestamp"].str().empty())
		first = since(e["eventTime"]);
	std::string last = e["lastTimestamp"].str().empty() ? first : since(e["lastTimestamp"]);
	std::int64_t count = std::max<std::int64_t>(e["count"].num(), 1);
	if (J series = e["series"]) {
		last = since(series["lastObservedTime"]);
		count = series["count"].num();
	}
	std::string target = e.path("involvedObject.kind").str();
	std::transform(target.begin(), target.end(), target.begin(), ::tolower);
	if (std::string n = e.path("involvedObject.name").str(); !n.empty())
		target += "/" + n;
	std::string source = or_else(e.path("source.component").str(), e["reportingComponent"].str().c_str());
	std::string host = or_else(e.path("source.host").str(), e["reportingInstance"].str().c_str());
	if (!host.empty())
		source += ", " + host;
	return row(last, e["type"].str(), e["reason"].str(), target, e.path("involvedObject.fieldPath").str(),
		   source, e["message"].str(), first, count, name(e));
}

J namespace_cells(const J &o)
{
	return row(name(o), o.path("status.phase").str(), age(o));
}

J configmap_cells(const J &o)
{
	return row(name(o), static_cast<std::int64_t>(o["data"].size() + o["binaryData"].size()), age(o));
}

J secret_cells(const J &o)
{
	return row(name(o), o["type"].str(), static_cast<std::int64_t>(o["data"].size()), age(o));
}

J lease_cells(const J &o)
{
	return row(name(o), o.path("spec.holderIdentity").str(), age(o));
}

std::string access_modes(const J &modes)
{
	static const std::map<std::string, std::string> short_names = {{"ReadWriteOnce", "RWO"},
								       {"ReadOnlyMany", "ROX"},
								       {"ReadWriteMany", "RWX"},
								       {"ReadWriteOncePod", "RWOP"}};
	std::string out;
	for (const auto &m : modes.strings()) {
		auto it = short_names.find(m);
		out += (out.empty() ? "" : ",") + (it == short_names.end() ? m : it->second);
	}
	return out;
}

J pvc_cells(const J &o)
{
	std::string phase = o.path("metadata.deletionTimestamp") ? "Terminating" : o.path("status.phase").str();
	return row(name(o), phase, o.path("spec.volumeName").str(), o.path("status.capacity.storage").str(),
		   access_modes(o.path("status.accessModes")), o.path("spec.storageClassName").str(),
		   or_else(o.path("spec.volumeAttributesClassName").str(), "<unset>"), age(o),
		   o.path("spec.volumeMode").str("<unset>"));
}

J pv_cells(const J &o)
{
	std::string claim;
	if (J ref = o.path("spec.claimRef"))
		claim = ref["namespace"].str() + "/" + ref["name"].str();
	return row(name(o), o.path("spec.capacity.storage").str(), access_modes(o.path("spec.accessModes")),
		   o.path("spec.persistentVolumeReclaimPolicy").str(),
		   o.path("metadata.deletionTimestamp") ? "Terminating" : o.path("status.phase").str(), claim,
		   o.path("spec.storageClassName").str(),
		   or_else(o.path("spec.volumeAttributesClassName").str(), "<unset>"), o.path("status.reason").str(),
		   age(o), o.path("spec.volumeMode").str("<unset>"));
}

J storageclass_cells(const J &o)
{
	std::string shown = o.path("metadata.name").str();
	if (o["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"].str() == "true")
		shown += " (default)";
	return row(shown, o["provisioner"].str(), o["reclaimPolicy"].str(), o["volumeBindingMode"].str(),
		   o["allowVolumeExpansion"].truth(), age(o));
}

J created_cells(const J &o)
{
	return row(name(o), o.path("metadata.creationTimestamp"));
}

J binding_cells(const J &o)
{
	std::string role = o.path("roleRef.kind").str() + "/" + o.path("roleRef.name").str();
	std::map<std::string, std::string> who;
	o["subjects"].each_item([&](const J &s) {
		std::string &list = who[s["kind"].str()];
		std::string shown = s["kind"].str() == "ServiceAccount" ? s["namespace"].str() + "/" + s["name"].str()
									: s["name"].str();
		list += (list.empty() ? "" : ", ") + shown;
	});
	return row(name(o), role, age(o), who["User"], who["Group"], who["ServiceAccount"]);
}

J priorityclass_cells(const J &o)
{
	return row(name(o), o["value"].num(), o["globalDefault"].truth(), age(o),
		   o["preemptionPolicy"].str("PreemptLowerPriority"));
}

J plain_cells(const J &o)
{
	return row(name(o), age(o));
}

constexpr Column name_column{"Name", "string", "name", 0, "Name of the object."};
constexpr Column age_column{"Age", "string", "", 0, "Time since the object was created."};

constexpr Column text(const char *name, int priority = 0, const char *type = "string")
{
	return {name, type, "", priority, name};
}

} // namespace

J TableFormat::columns() const
{
	J out = J::array();
	for (const auto &c : column_list)
		out.append(J::make("name", c.name, "type", c.type, "format", c.format, "description", c.description,
				   "priority", c.priority));
	return out;
}

const TableFormat &table_format(const Kind &kind)
{
	const std::vector<Column> binding = {name_column,       text("Role"),      age_column,
					     text("Users", 1), text("Groups", 1), text("ServiceAccounts", 1)};
	const std::vector<Column> role = {name_column, text("Created At", 0, "date")};
	static const auto &formats = *new std::map<std::string, TableFormat>{
		{"pods",
		 {{name_column, text("Ready"), text("Status"), text("Restarts"), age_column, text("IP", 1),
		   text("Node", 1), text("Nominated Node", 1), text("Readiness Gates", 1)},
		  pod_cells}},
		{"nodes",
		 {{name_column, text("Status"), text("Roles"), age_column, text("Version"), text("Internal-IP", 1),
		   text("External-IP", 1), text("OS-Image", 1), text("Kernel-Version", 1),
		   text("Container-Runtime", 1)},
		  node_cells}},
		{"events",
		 {{text("Last Seen"), text("Type"), text("Reason"), text("Object"), text("Subobject", 1),
		   text("Source", 1), text("Message"), text("First Seen", 1), text("Count", 1),
		   {"Name", "string", "name", 1, "Name of the object."}},
		  event_cells}},
		{"namespaces", {{name_column, text("Status"), age_column}, namespace_cells}},
		{"configmaps", {{name_column, text("Data"), age_column}, configmap_cells}},
		{"secrets", {{name_column, text("Type"), text("Data"), age_column}, secret_cells}},
		{"leases", {{name_column, text("Holder"), age_column}, lease_cells}},
		{"persistentvolumeclaims",
		 {{name_column, text("Status"), text("Volume"), text("Capacity"), text("Access Modes"),
		   text("StorageClass"), text("VolumeAttributesClass"), age_column, text("VolumeMode", 1)},
		  pvc_cells}},
		{"persistentvolumes",
		 {{name_column, text("Capacity"), text("Access Modes"), text("Reclaim Policy"), text("Status"),
		   text("Claim"), text("StorageClass"), text("VolumeAttributesClass"), text("Reason"), age_column,
		   text("VolumeMode", 1)},
		  pv_cells}},
		{"storageclasses",
		 {{name_column, text("Provisioner"), text("ReclaimPolicy"), text("VolumeBindingMode"),
		   text("AllowVolumeExpansion"), age_column},
		  storageclass_cells}},
		{"clusterroles", {role, created_cells}},
		{"roles", {role, created_cells}},
		{"clusterrolebindings", {binding, binding_cells}},
		{"rolebindings", {binding, binding_cells}},
		{"priorityclasses",
		 {{name_column, text("Value"), text("Global-Default"), age_column, text("PreemptionPolicy")},
		  priorityclass_cells}},
	};
	static const auto &other = *new TableFormat{{name_column, age_column}, plain_cells};
	auto it = formats.find(kind.resource);
	return it == formats.end() ? other : it->second;
}

} // namespace kubesim
