// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/node_features.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/kube/objects.h"

namespace sk8::core {

// ---- a label ----

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Source: Kubernetes, apimachinery validation.IsQualifiedName(), IsValidLabelValue(): letters and digits, and
// between them also '-', '_' and '.'.
static bool is_word(std::string_view text)
{
	return !text.empty() && text.size() <= kube::max_label_value && is_alphanumeric(text.front()) &&
	       is_alphanumeric(text.back()) && std::ranges::all_of(text, [](char c) {
		       return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
	       });
}

// A DNS subdomain: no two dots side by side.
static bool is_key_prefix(std::string_view text)
{
	return !text.empty() && text.size() <= kube::max_name && is_alphanumeric(text.front()) &&
	       is_alphanumeric(text.back()) && text.find("..") == text.npos &&
	       std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '-' || c == '.'; });
}

static bool is_key(std::string_view key)
{
	const std::size_t slash = key.find('/');
	return slash == key.npos ? is_word(key) : is_key_prefix(key.substr(0, slash)) && is_word(key.substr(slash + 1));
}

static bool is_label(std::string_view key, std::string_view value)
{
	return is_key(key) && (value.empty() || is_word(value));
}

std::optional<std::string> feature_of(std::string_view key, std::string_view value)
{
	if (!is_label(key, value))
		return std::nullopt;
	std::string out(feature_prefix);
	for (char c : key)
		out.append(c == '.' ? 2 : 1, c);
	out.append(".").append(value);
	return out.size() > max_feature_length ? std::nullopt : std::optional(std::move(out));
}

std::optional<std::pair<std::string, std::string>> label_of(std::string_view feature)
{
	if (!feature.starts_with(feature_prefix))
		return std::nullopt;
	std::string key;
	for (std::size_t i = feature_prefix.size(); i < feature.size(); i++) {
		if (feature[i] != '.') {
			key += feature[i];
		} else if (i + 1 < feature.size() && feature[i + 1] == '.') {
			key += feature[i++];
		} else {
			const auto value = feature.substr(i + 1);
			if (feature_of(key, value) != feature) // what it should have been is another one
				return std::nullopt;
			return std::pair(std::move(key), std::string(value));
		}
	}
	return std::nullopt;
}

// ---- a node ----

static bool is_wanted(const std::string &key, const std::vector<std::string> &keys)
{
	return std::ranges::any_of(keys, [&](const std::string &pattern) { return glob_match(pattern, key); });
}

LabelFeatures features_of(const std::map<std::string, std::string> &labels, const std::vector<std::string> &keys)
{
	LabelFeatures out;
	for (const auto &[key, value] : labels) {
		if (!is_wanted(key, keys))
			continue;
		if (auto feature = feature_of(key, value))
			out.features.push_back(std::move(*feature));
		else if (!out.left_out++)
			out.first_left_out = one_line(key, 128) + (is_label(key, value) ? " makes a feature of more than " + std::to_string(max_feature_length) + " characters"
										       : " is no label of Kubernetes");
	}
	std::ranges::sort(out.features);
	if (out.features.size() > max_features) {
		if (!out.left_out)
			out.first_left_out = label_of(out.features[max_features]).value_or(std::pair<std::string, std::string>()).first + " comes after " +
					     std::to_string(max_features) + " others, and a node has no more";
		out.left_out += out.features.size() - max_features;
		out.features.resize(max_features);
	}
	return out;
}

void add_pool_features(std::vector<std::string> &features)
{
	features.emplace_back(names::exclusive_feature);
	features.emplace_back(names::shared_feature);
	std::ranges::sort(features);
}

static bool is_ours(std::string_view feature, const std::vector<std::string> &keys, bool pools)
{
	if (pools && (feature == names::exclusive_feature || feature == names::shared_feature))
		return true;
	const auto label = label_of(feature);
	return label && is_wanted(label->first, keys);
}

// now with the wanted ones in the place of ours; as it is, in whatever order, if it has just these.
static std::string replaced(const std::string &now, const std::vector<std::string> &wanted,
			    const std::vector<std::string> &keys, bool pools)
{
	std::string kept;
	std::vector<std::string> ours;
	auto add = [&kept](std::string_view feature) { kept.append(kept.empty() ? "" : ",").append(feature); };
	for (auto feature : split(now, ',')) {
		if (is_ours(feature, keys, pools))
			ours.emplace_back(feature);
		else if (!feature.empty())
			add(feature);
	}
	std::ranges::sort(ours);
	if (ours == wanted)
		return now;
	for (const auto &feature : wanted)
		add(feature);
	return kept;
}

std::optional<FeatureChange> feature_change(const SlurmNode &node, const std::vector<std::string> &wanted,
					    const std::vector<std::string> &keys, bool pools)
{
	FeatureChange change{node.name, node.features, node.active_features, replaced(node.features, wanted, keys, pools),
			     replaced(node.active_features, wanted, keys, pools)};
	if (change.features == node.features && change.active == node.active_features)
		return std::nullopt;
	return change;
}

std::optional<FeatureChange> restored_features(const SlurmNode &node, const std::vector<std::string> &saved,
					       const std::vector<std::string> &keys, bool pools)
{
	std::vector<std::string> wanted;
	std::ranges::copy_if(saved, std::back_inserter(wanted), [&](const auto &feature) { return is_ours(feature, keys, pools); });
	return feature_change(node, wanted, keys, pools);
}

} // namespace sk8::core
