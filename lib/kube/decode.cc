// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/kube/decode.h"

#include <algorithm>
#include <limits>

#include "lib/base/text.h"

namespace sk8::kube {

static constexpr std::size_t max_text = 1024; // of what is only shown to people

void complain(std::string &problem, const std::string &sentence)
{
	if (problem.empty())
		problem = sentence;
}

std::string shown(const Json &value)
{
	std::string_view text = value.str();
	if (text.size() <= max_text)
		return std::string(text);
	std::size_t end = max_text - 3;
	while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
		--end;
	return std::string(text.substr(0, end)) + "...";
}

std::string word(const Json &value, std::size_t most, const char *what, std::string &problem)
{
	std::string_view text = value.str();
	if (text.size() > most) {
		complain(problem, std::string(what) + " is longer than " + std::to_string(most) +
					  " bytes");
		return {};
	}
	return std::string(text);
}

bool countable(const Json &list, std::size_t most, const char *what, std::string &problem)
{
	if (list.size() <= most)
		return true;
	complain(problem, "the object has more than " + std::to_string(most) + " " + what);
	return false;
}

std::int64_t seconds(const Json &value)
{
	return parse_rfc3339(value.str()).value_or(0);
}

std::int32_t small(const Json &value)
{
	std::int64_t n = value.integer_or(0);
	return n < std::numeric_limits<std::int32_t>::min() ||
			       n > std::numeric_limits<std::int32_t>::max()
		       ? 0
		       : static_cast<std::int32_t>(n);
}

bool is_name(std::string_view text)
{
	auto fits = [](char c) {
		return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		       c == '-' || c == '.' || c == '_' || c == ':';
	};
	return !text.empty() && text.size() <= max_name && text != "." && text != ".." &&
	       std::all_of(text.begin(), text.end(), fits);
}

std::map<std::string, std::string> decode_labels(const Json &labels, std::string &problem)
{
	std::map<std::string, std::string> out;
	if (!countable(labels, max_labels, "labels", problem))
		return out;
	labels.each_member([&](std::string_view key, const Json &value) {
		if (key.size() > max_key || value.str().size() > max_label_value)
			return complain(problem, "a label is longer than Kubernetes allows");
		out.emplace(key, value.str());
	});
	return out;
}

static std::map<std::string, std::string> decode_annotations(const Json &list, std::string &problem)
{
	std::map<std::string, std::string> out;
	std::size_t bytes = 0;
	list.each_member([&](std::string_view key, const Json &value) {
		bytes += key.size() + value.str().size();
		if (key.size() > max_key || bytes > max_annotation_bytes)
			return complain(problem, "the annotations are longer than Kubernetes allows");
		out.emplace(key, value.str());
	});
	return out;
}

Result<Meta> decode_meta(const Json &object, const char *kind, std::string &problem)
{
	if (!object.is_object() || !object["metadata"].is_object())
		return Error{std::string("what the API server sent is not a ") + kind};
	if (Json k = object["kind"]; k.is_string() && k.str() != kind)
		return Error{std::string("what the API server sent is not a ") + kind +
			     " but another kind of object"};
	Json from = object["metadata"];
	Meta out;
	out.name = from["name"].str();
	out.uid = from["uid"].str();
	out.ns = from["namespace"].str();
	if (!is_name(out.name) || !is_name(out.uid) || !(out.ns.empty() || is_name(out.ns)))
		return Error{std::string("a ") + kind + " has no usable name, namespace or uid"};
	out.resource_version = word(from["resourceVersion"], max_name, "its resourceVersion", problem);
	out.labels = decode_labels(from["labels"], problem);
	out.annotations = decode_annotations(from["annotations"], problem);
	if (countable(from["finalizers"], max_listed, "finalizers", problem))
		from["finalizers"].each_item([&](const Json &f) {
			out.finalizers.push_back(word(f, max_key, "a finalizer", problem));
		});
	out.deleting = from["deletionTimestamp"].is_string();
	out.deletion_time = seconds(from["deletionTimestamp"]);
	out.deletion_grace_seconds = std::clamp<std::int64_t>(
		from["deletionGracePeriodSeconds"].integer_or(0), 0, max_seconds);
	out.creation_time = seconds(from["creationTimestamp"]);
	if (countable(from["ownerReferences"], max_listed, "owners", problem))
		from["ownerReferences"].each_item([&](const Json &o) {
			if (!o["controller"].boolean_or(false))
				return;
			out.controller_kind = word(o["kind"], max_name, "an owner's kind", problem);
			out.controller_name = word(o["name"], max_name, "an owner's name", problem);
		});
	return out;
}

} // namespace sk8::kube
