// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The subresource pods/resize, as ValidatePodResize() and podResizeStrategy of Kubernetes 1.35.
#include "test/kubesim/pod.h"

namespace kubesim {

static bool same_containers(const J &now, const J &before)
{
	bool same = now.size() == before.size();
	for (std::size_t i = 0; same && i < now.size(); i++)
		same = now.item(i)["name"] == before.item(i)["name"];
	return same;
}

void keep_all_but_resources(J &now, const J &before)
{
	const J wanted = now.path("spec.containers");
	J merged = before.copy();
	for (const char *field : {"resourceVersion", "uid"})
		merged["metadata"].set(field, now["metadata"][field]);
	if (!same_containers(wanted, before.path("spec.containers"))) { // refused by validation
		merged.set("spec", now["spec"]);
	} else {
		for (std::size_t i = 0; i < wanted.size(); i++)
			for (const char *field : {"resources", "resizePolicy"}) {
				if (J value = wanted.item(i)[field])
					merged.path("spec.containers").item(i).set(field, value);
				else
					merged.path("spec.containers").item(i).del(field);
			}
	}
	now = merged;
}

// A running container whose status has no resources: its kubelet cannot resize.
static bool kubelet_resizes(const J &pod)
{
	bool resizes = true, found = false;
	pod.path("status.containerStatuses").each_item([&](const J &s) {
		if (!s.path("state.running") || found)
			return;
		found = true;
		resizes = static_cast<bool>(s["resources"]);
	});
	return resizes;
}

static bool removed(const J &now, const J &before)
{
	bool gone = now.size() < before.size();
	before.each_member([&](const std::string &name, const J &) { gone |= !now[name]; });
	return gone;
}

std::vector<FieldError> validate_pod_resize(const J &now, const J &before)
{
	std::vector<FieldError> errors;
	if (before.path("metadata.annotations")["kubernetes.io/config.mirror"])
		return {field_forbidden("", "static pods cannot be resized")};
	const std::string qos = qos_class(before);
	if (qos_class(now) != qos)
		errors.push_back(field_invalid("spec", "\"" + qos + "\"", "Pod QOS Class may not change as a result of resizing"));
	if (!kubelet_resizes(before))
		errors.push_back(field_forbidden("spec", "Pod running on node without support for resize"));
	const J list = now.path("spec.containers"), old = before.path("spec.containers");
	if (list.size() != old.size())
		errors.push_back(field_forbidden("spec.containers", "containers may not be added or removed on resize"));
	else if (!same_containers(list, old))
		errors.push_back(field_forbidden("spec.containers[0].name", "containers may not be renamed or reordered on resize"));
	if (!same_containers(list, old))
		return errors;
	J like = list.copy();
	for (std::size_t i = 0; i < list.size(); i++)
		for (const char *what : {"requests", "limits"}) {
			const J is = list.item(i)["resources"][what], was = old.item(i)["resources"][what];
			if (removed(is, was))
				errors.push_back(field_forbidden("spec.containers[" + std::to_string(i) + "].resources." + what,
								 std::string("resource ") + what + " cannot be removed"));
			for (const char *name : {"cpu", "memory"}) {
				if (!is[name])
					continue;
				if (was[name])
					like.item(i)["resources"][what].set(name, was[name]);
				else
					like.item(i)["resources"][what].del(name);
			}
			if (J empty = like.item(i)["resources"][what]; empty && !empty.size() && !was)
				like.item(i)["resources"].del(what);
		}
	if (errors.empty() && !(like == old))
		errors.push_back(field_forbidden("spec", "only cpu and memory resources are mutable"));
	return errors;
}

} // namespace kubesim
