// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/meta.h"

#include <algorithm>
#include <random>

#include "test/kubesim/quantity.h"

namespace kubesim {

static std::mt19937_64 &generator()
{
	static auto &g = *new std::mt19937_64(std::random_device{}());
	return g;
}

std::string new_uid()
{
	std::string uid = "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx";
	for (char &c : uid)
		if (c == 'x')
			c = "0123456789abcdef"[generator()() % 16];
	return uid;
}

std::string random_suffix()
{
	static const std::string letters = "bcdfghjklmnpqrstvwxz2456789";
	std::string s;
	while (s.size() < 5)
		s += letters[generator()() % letters.size()];
	return s;
}

void prune_nulls(J value)
{
	static const std::vector<std::string> kept = {"lastProbeTime", "eventTime", "firstTimestamp",
						      "lastTimestamp", "lastTransitionTime",
						      "lastHeartbeatTime"};
	std::vector<std::string> drop;
	value.each_member([&](const std::string &key, const J &v) {
		if (v.is_null() && std::find(kept.begin(), kept.end(), key) == kept.end())
			drop.push_back(key);
		else
			prune_nulls(v);
	});
	for (const auto &key : drop)
		value.del(key);
	value.each_item([](const J &i) { prune_nulls(i); });
}

static bool is_label(const std::string &s)
{
	return !s.empty() && s.size() <= 63 && s.front() != '-' && s.back() != '-' &&
	       s.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == s.npos;
}

static bool is_subdomain(const std::string &s)
{
	if (s.empty() || s.size() > 253)
		return false;
	for (std::size_t from = 0; from <= s.size();) {
		std::size_t to = std::min(s.find('.', from), s.size());
		std::string part = s.substr(from, to - from);
		if (part.empty() || part.front() == '-' || part.back() == '-' ||
		    part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != part.npos)
			return false;
		from = to + 1;
	}
	return true;
}

static std::string name_problem(NameRule rule, const std::string &name)
{
	if (rule == NameRule::subdomain && !is_subdomain(name))
		return name.size() > 253
			       ? "must be no more than 253 bytes"
			       : "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
				 "characters, '-' or '.', and must start and end with an alphanumeric character "
				 "(e.g. 'example.com', regex used for validation is "
				 "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
	if (rule == NameRule::label && !is_label(name))
		return name.size() > 63
			       ? "must be no more than 63 bytes"
			       : "a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
				 "or '-', and must start and end with an alphanumeric character (e.g. 'my-name', "
				 " or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
	if (rule == NameRule::path_segment && (name == "." || name == ".." || name.find_first_of("/%") != name.npos))
		return "may not contain '/' or '%' or be '.' or '..'";
	return {};
}

static constexpr std::size_t max_annotations = 256 * 1024; // bytes of all keys and values

std::vector<FieldError> validate_meta(const Kind &kind, const J &object)
{
	std::vector<FieldError> errors;
	const std::string name = object.path("metadata.name").str();
	if (name.empty())
		errors.push_back(field_required("metadata.name", "name or generateName is required"));
	else if (std::string why = name_problem(kind.name_rule, name); !why.empty())
		errors.push_back(field_invalid("metadata.name", "\"" + name + "\"", why));
	std::size_t size = 0;
	object.path("metadata.annotations").each_member([&](const std::string &key, const J &value) {
		size += key.size() + value.str().size();
	});
	if (size > max_annotations)
		errors.push_back(field_too_long("metadata.annotations", max_annotations));
	return errors;
}

static bool string_map(const J &value)
{
	if (!value || value.is_null())
		return true;
	bool good = value.is_object();
	value.each_member([&](const std::string &, const J &v) { good &= v.is_string() || v.is_null(); });
	return good;
}

std::string malformed(const Kind &kind, const J &object)
{
	auto wrong = [&](const char *what) {
		return std::string(kind.kind) + " in version \"" + kind.version +
		       "\" cannot be handled as a " + kind.kind + ": json: cannot unmarshal " + what +
		       " into Go struct field " + kind.kind;
	};
	const J meta = object["metadata"];
	if (meta && !meta.is_object())
		return wrong("value") + ".metadata of type v1.ObjectMeta";
	for (const char *field : {"labels", "annotations"})
		if (!string_map(meta[field]))
			return wrong("value") + ".metadata." + field + " of type string";
	for (const char *field : {"name", "namespace", "uid", "resourceVersion", "generateName"})
		if (J v = meta[field]; v && !v.is_string() && !v.is_null())
			return wrong("value") + ".metadata." + field + " of type string";
	for (const char *field : {"spec", "status"})
		if (J v = object[field]; v && !v.is_object() && !v.is_null())
			return wrong("value") + "." + field + " of type " + kind.kind + field;
	if (J v = meta["finalizers"]; v && !v.is_array() && !v.is_null())
		return wrong("value") + ".metadata.finalizers of type []string";
	return {};
}

bool default_object(const Kind &kind, J object)
{
	const std::string_view resource = kind.resource;
	if (resource == "nodes") {
		J status = object.child("status");
		J endpoints = status.child("daemonEndpoints").child("kubeletEndpoint");
		endpoints.set_default("Port", 0);
		J info = status.child("nodeInfo");
		for (const char *key : {"architecture", "bootID", "containerRuntimeVersion", "kernelVersion",
					"kubeProxyVersion", "kubeletVersion", "machineID", "operatingSystem",
					"osImage", "systemUUID"})
			info.set_default(key, "");
		object.child("spec");
		status["conditions"].each_item([](J c) {
			c.set_default("lastHeartbeatTime", J::null());
			c.set_default("lastTransitionTime", J::null());
		});
		if (!status["allocatable"] && status["capacity"])
			status.set("allocatable", status["capacity"].copy());
		return canonicalize(status["capacity"]) && canonicalize(status["allocatable"]);
	}
	if (resource == "namespaces") {
		object.child("metadata").child("labels").set("kubernetes.io/metadata.name",
							     object.path("metadata.name"));
	} else if (resource == "events") {
		for (const char *key : {"firstTimestamp", "lastTimestamp", "eventTime"})
			if (!object[key])
				object.set(key, J::null());
		object.child("source");
		object.child("involvedObject");
		for (const char *key : {"reportingComponent", "reportingInstance"})
			object.set_default(key, "");
	} else if (resource == "persistentvolumeclaims") {
		object.child("spec").set_default("volumeMode", "Filesystem");
		object.child("status").set_default("phase", "Pending");
		return canonicalize(object.path("spec.resources.requests")) &&
		       canonicalize(object.path("spec.resources.limits"));
	} else if (resource == "persistentvolumes") {
		object.child("spec").set_default("volumeMode", "Filesystem");
		object.child("spec").set_default("persistentVolumeReclaimPolicy", "Retain");
		object.child("status").set_default("phase", "Pending");
		return canonicalize(object.path("spec.capacity"));
	} else if (resource == "storageclasses") {
		object.set_default("reclaimPolicy", "Delete");
		object.set_default("volumeBindingMode", "Immediate");
	} else if (resource == "secrets") {
		object.set_default("type", "Opaque");
	} else if (resource == "leases") {
		object.child("spec");
	}
	return true;
}

} // namespace kubesim
