// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/placement.h"

#include <algorithm>

#include "lib/base/text.h"
#include "lib/core/names.h"
#include "lib/core/node_state.h"

namespace sk8::core {

static bool compare(const kube::NodeRequirement &r, const std::string &value)
{
	if (r.values.size() != 1)
		return false;
	auto have = parse_integer(value), want = parse_integer(r.values[0]);
	if (!have || !want)
		return false;
	return r.op == "Gt" ? *have > *want : *have < *want;
}

static bool holds(const kube::NodeRequirement &r, const kube::Node &node)
{
	const std::string *value = nullptr;
	if (r.field) {
		if (r.key == "metadata.name")
			value = &node.meta.name;
	} else if (auto it = node.meta.labels.find(r.key); it != node.meta.labels.end()) {
		value = &it->second;
	}
	const bool in = value && std::find(r.values.begin(), r.values.end(), *value) != r.values.end();
	if (r.op == "In")
		return in;
	if (r.op == "NotIn")
		return !in;
	if (r.op == "Exists")
		return value != nullptr;
	if (r.op == "DoesNotExist")
		return value == nullptr;
	if (r.op == "Gt" || r.op == "Lt")
		return value && compare(r, *value);
	return false; // an operator that we do not know must not place a pod
}

bool matches(const kube::NodeTerm &term, const kube::Node &node)
{
	return !term.empty() && std::all_of(term.begin(), term.end(),
					    [&](const auto &r) { return holds(r, node); });
}

using kube::TaintEffect;
using kube::TolerationOperator;

bool tolerates(const std::vector<kube::Toleration> &tolerations, const kube::Taint &taint)
{
	for (const auto &t : tolerations) {
		if (t.effect == TaintEffect::other || (t.effect != TaintEffect::all && t.effect != taint.effect))
			continue;
		if (!t.key.empty() && t.key != taint.key)
			continue;
		if (t.op == TolerationOperator::exists)
			return true;
		if (!t.key.empty() && t.op == TolerationOperator::equal && t.value == taint.value)
			return true;
	}
	return false;
}

std::string_view taint_key(OurTaint which)
{
	return which == OurTaint::dedicated ? names::dedicated_taint : names::exclusive_taint;
}

std::string_view taint_value(OurTaint which)
{
	return which == OurTaint::dedicated ? names::dedicated_taint_value : names::exclusive_taint_value;
}

bool is_our_taint(const kube::Taint &taint, OurTaint which)
{
	return taint.key == taint_key(which) && taint.value == taint_value(which) && taint.effect == TaintEffect::no_schedule;
}

// Pods that go through Slurm are its jobs: it knows who may be there.
static bool is_any_of_ours(const kube::Taint &taint)
{
	return is_our_taint(taint, OurTaint::dedicated) || is_our_taint(taint, OurTaint::exclusive);
}

static bool any_matches(const std::vector<kube::NodeTerm> &terms, const kube::Node &node)
{
	return std::any_of(terms.begin(), terms.end(), [&](const auto &t) { return matches(t, node); });
}

static bool selector_holds(const kube::Pod &pod, const kube::Node &node)
{
	for (const auto &[key, value] : pod.node_selector) {
		auto it = node.meta.labels.find(key);
		if (it == node.meta.labels.end() || it->second != value)
			return false;
	}
	return true;
}

std::optional<std::int64_t> ephemeral_storage(const kube::Resources &of)
{
	const auto it = of.extended.find("ephemeral-storage");
	return it == of.extended.end() ? std::nullopt : std::optional(it->second);
}

// Slurm counts none, so pods may still come to a node that has too little left; but one that has too little altogether would
// refuse them again and again.
static bool has_storage_for(const kube::Pod &pod, const kube::Node &node)
{
	const auto wanted = ephemeral_storage(pod.request), has = ephemeral_storage(node.allocatable);
	return !wanted || !has || *wanted <= *has;
}

bool knows_resource(const kube::Node &node, const std::string &name)
{
	return node.allocatable.extended.contains(name) || node.capacity.contains(name);
}

// A kubelet refuses a pod that wants more of a resource than is left, but one whose name it does not know it takes for somebody
// else's concern (removeMissingExtendedResources() in pkg/kubelet/lifecycle/predicate.go): the pod would run without its device.
static std::string missing_resource(const kube::Pod &pod, const kube::Node &node)
{
	for (const auto &[name, count] : pod.request.extended)
		if (count > 0 && name.find('/') != name.npos && !knows_resource(node, name))
			return name;
	return "";
}

bool is_cordoned_for_slurm(const kube::Node &node)
{
	return node.unschedulable && annotation(node, names::drain_owner) == names::drain_owner_slurm;
}

static constexpr std::string_view cordon_taint = "node.kubernetes.io/unschedulable"; // Kubernetes' own, for each cordon

std::string objection(const kube::Pod &pod, const std::vector<std::vector<kube::NodeTerm>> &volumes,
		      const kube::Node &node)
{
	const bool ours = is_cordoned_for_slurm(node);
	if (!selector_holds(pod, node))
		return "nodeSelector";
	if (pod.has_required_node_affinity && !any_matches(pod.required_node_terms, node))
		return "node affinity";
	for (const auto &terms : volumes)
		if (!any_matches(terms, node))
			return "a volume is elsewhere";
	if (node.unschedulable && !ours && !tolerates(pod.tolerations, {std::string(cordon_taint), "", TaintEffect::no_schedule}))
		return "cordoned";
	for (const auto &taint : node.taints)
		if (taint.effect != TaintEffect::prefer_no_schedule && !is_any_of_ours(taint) &&
		    !(ours && taint.key == cordon_taint) && !tolerates(pod.tolerations, taint))
			return "taint " + taint.key;
	if (const std::string name = missing_resource(pod, node); !name.empty())
		return "no " + name;
	return has_storage_for(pod, node) ? "" : "ephemeral-storage";
}

// ---- label selectors ----

static Error no_selector(std::string_view text)
{
	return Error{"\"" + one_line(text, 64) +
		     "\" is no label selector; examples: a=b, a!=b, a in (b,c), a, !a"};
}

static bool label_key(std::string_view key)
{
	return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
		return isalnum(c) || c == '.' || c == '/' || c == '_' || c == '-';
	});
}

static Result<kube::NodeRequirement> read_requirement(std::string_view text)
{
	kube::NodeRequirement r;
	text = trim(text);
	if (text.empty())
		return no_selector(text);
	if (text[0] == '!') {
		r.key = trim(text.substr(1));
		r.op = "DoesNotExist";
		return r;
	}
	if (auto open = text.find('('); open != text.npos) {
		if (text.back() != ')')
			return no_selector(text);
		std::string_view head = trim(text.substr(0, open));
		const bool not_in = head.ends_with(" notin");
		if (!not_in && !head.ends_with(" in"))
			return no_selector(text);
		r.op = not_in ? "NotIn" : "In";
		r.key = trim(head.substr(0, head.size() - (not_in ? 6 : 3)));
		for (auto v : split(text.substr(open + 1, text.size() - open - 2), ','))
			r.values.emplace_back(trim(v));
		return r;
	}
	const auto eq = text.find('=');
	if (eq == text.npos) {
		r.key = text;
		r.op = "Exists";
		return r;
	}
	const bool negative = eq > 0 && text[eq - 1] == '!';
	r.op = negative ? "NotIn" : "In";
	r.key = trim(text.substr(0, eq - (negative ? 1 : 0)));
	const bool twice = eq + 1 < text.size() && text[eq + 1] == '=';
	r.values.emplace_back(trim(text.substr(eq + (twice ? 2 : 1))));
	return r;
}

static Result<kube::NodeRequirement> parse_requirement(std::string_view text)
{
	auto r = read_requirement(text);
	if (r && !label_key(r->key))
		return no_selector(text);
	return r;
}

Result<kube::NodeTerm> parse_selector(const std::string &text)
{
	kube::NodeTerm out;
	std::size_t from = 0;
	int depth = 0;
	for (std::size_t i = 0; i <= text.size() && !text.empty(); i++) {
		const char c = i < text.size() ? text[i] : ',';
		depth += c == '(' ? 1 : c == ')' ? -1 : 0;
		if (c != ',' || (depth > 0 && i < text.size()))
			continue;
		auto r = parse_requirement(std::string_view(text).substr(from, i - from));
		if (!r)
			return r.error();
		out.push_back(std::move(*r));
		from = i + 1;
	}
	return out;
}

} // namespace sk8::core
