// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/resubmit.h"

#include <algorithm>
#include <array>

#include "lib/core/annotations.h"
#include "lib/core/identity.h"
#include "lib/core/names.h"
#include "lib/core/pod_end.h"

namespace sk8::core {

static constexpr std::array<const char *, 3> steps = {"wanted", "kept", "made"};

const char *name(Resubmit::Step step)
{
	return steps[static_cast<std::size_t>(step)];
}

bool parse_step(std::string_view text, Resubmit::Step &step)
{
	const auto it = std::ranges::find(steps, text);
	if (it == steps.end())
		return false;
	step = static_cast<Resubmit::Step>(it - steps.begin());
	return true;
}

bool is_bare(const kube::Pod &pod)
{
	return pod.meta.controller_kind.empty();
}

bool may_be_resubmitted(const kube::Pod &pod, const ClusterSettings &settings)
{
	const NamespaceSettings *ns = find_namespace(settings, pod.meta.ns);
	if (!ns || ns->bare_pods != NamespaceSettings::BarePods::resubmit || !is_bare(pod))
		return false;
	const auto wishes = read_wishes(pod);
	return wishes && wishes->requeue.value_or(true);
}

// ---- the manifest ----

using Names = std::initializer_list<std::string_view>;

static Json without(const Json &object, Names left_out)
{
	Json out = Json::object();
	object.each_member([&](std::string_view key, const Json &value) {
		if (std::ranges::find(left_out, key) == left_out.end())
			out.set(key, value);
	});
	return out;
}

// What the Binding has set is of the old job.
static Json annotations(const Json &object, const PodKey &old)
{
	Json out = without(object, names::of_binding);
	return out.set(names::resubmitted_from, old.uid);
}

static Json metadata(const Json &object, const PodKey &old)
{
	// Owners stay: without a controller among them they only say with whom it goes.
	Json out = without(object, {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
				    "deletionGracePeriodSeconds", "managedFields", "selfLink", "finalizers", "annotations"});
	return out.set("annotations", annotations(object["annotations"], old));
}

// priority, preemptionPolicy and overhead are the admission's to say, from the names of classes; it
// refuses others than it would give now. Ephemeral containers are of a pod that is there.
static Json spec(const Json &object)
{
	return without(object, {"nodeName", "priority", "preemptionPolicy", "overhead", "ephemeralContainers"});
}

Result<std::string> resubmitted_manifest(const Json &object, const PodKey &old)
{
	if (object["metadata"]["uid"].str() != old.uid || !object["spec"].is_object())
		return Error{"its object is another one by now"};
	Json out = Json::object();
	out.set("apiVersion", "v1").set("kind", "Pod").set("metadata", metadata(object["metadata"], old));
	std::string text = out.set("spec", spec(object["spec"])).dump();
	if (text.size() > Resubmit::max_manifest)
		return Error{"its object has more than " + std::to_string(Resubmit::max_manifest / 1024) + " KiB"};
	return text;
}

bool deleted_by_others_first(const Resubmit &r, const kube::Pod &pod)
{
	return r.unsure_since && deletion_asked_at(pod) < r.unsure_since;
}

std::string resubmitted_from(const kube::Pod &pod)
{
	const auto it = pod.meta.annotations.find(std::string(names::resubmitted_from));
	return it == pod.meta.annotations.end() ? "" : it->second;
}

} // namespace sk8::core
