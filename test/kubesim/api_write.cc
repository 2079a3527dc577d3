// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <algorithm>

#include "test/kubesim/api.h"
#include "test/kubesim/claim.h"
#include "test/kubesim/meta.h"
#include "test/kubesim/patch.h"
#include "test/kubesim/pod.h"
#include "test/kubesim/times.h"
#include "test/kubesim/yaml.h"

namespace kubesim {
namespace {

bool is(const Kind &kind, const char *resource)
{
	return std::string_view(kind.resource) == resource;
}

Failure unreadable_quantity(const Kind &kind)
{
	return bad_request(std::string(kind.kind) + " in version \"" + kind.version + "\" cannot be handled as a " +
			   kind.kind +
			   ": quantities must match the regular expression "
			   "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}

bool apply_defaults(const Kind &kind, const J &object)
{
	if (is(kind, "resourceclaims"))
		default_claim(object);
	return is(kind, "pods") ? default_pod(object) : default_object(kind, object);
}

std::vector<FieldError> validate_event(const J &e)
{
	std::vector<FieldError> errors;
	const std::string ns = e.path("metadata.namespace").str();
	const std::string about = e.path("involvedObject.namespace").str();
	if (about.empty() ? ns != "default" && ns != "kube-system" : about != ns)
		errors.push_back(field_invalid("involvedObject.namespace", "\"" + about + "\"",
					       "does not match event.namespace"));
	return errors;
}

std::vector<FieldError> validate_lease(const J &lease)
{
	std::vector<FieldError> errors;
	const J spec = lease["spec"];
	if (J d = spec["leaseDurationSeconds"]; d && d.num() <= 0)
		errors.push_back(field_invalid("spec.leaseDurationSeconds", d.dump(), "must be greater than 0"));
	if (J t = spec["leaseTransitions"]; t && t.num() < 0)
		errors.push_back(field_invalid("spec.leaseTransitions", t.dump(),
					       "must be greater than or equal to 0"));
	return errors;
}

std::vector<FieldError> validate(const Kind &kind, const J &object)
{
	std::vector<FieldError> errors = validate_meta(kind, object), more;
	if (is(kind, "pods"))
		more = validate_pod(object);
	else if (is(kind, "events"))
		more = validate_event(object);
	else if (is(kind, "leases"))
		more = validate_lease(object);
	errors.insert(errors.end(), more.begin(), more.end());
	return errors;
}

// The Priority admission plugin.
Refusal set_priority(const Store &store, const J &pod)
{
	J spec = pod["spec"];
	const std::string name = spec["priorityClassName"].str();
	const std::size_t storage = kind_of("priorityclasses").storage;
	J found;
	if (name == "system-node-critical" || name == "system-cluster-critical") {
		found = J::make("value", name == "system-node-critical" ? 2000001000 : 2000000000);
	} else if (!name.empty()) {
		ObjectPtr o = store.find(storage, "", name);
		if (!o) {
			const std::string pod_name = pod.path("metadata.name").str();
			return Failure{403, "Forbidden",
				       "pods \"" + pod_name + "\" is forbidden: no PriorityClass with name " + name +
					       " was found",
				       J::make("name", pod_name, "kind", "pods")};
		}
		found = o->json();
	} else {
		for (const auto &[key, o] : store.all(storage))
			if (J c = o->json(); c["globalDefault"].truth()) {
				found = c;
				spec.set("priorityClassName", key);
			}
	}
	if (found) {
		spec.set("priority", found["value"].num());
		spec.set_default("preemptionPolicy", found["preemptionPolicy"].str("PreemptLowerPriority"));
	}
	return {};
}

// New nodes wait for the node controller to say that they are ready.
void taint_not_ready(const J &node)
{
	J taints = node["spec"].children("taints");
	bool present = false;
	taints.each_item([&](const J &t) { present |= t["key"].str() == "node.kubernetes.io/not-ready"; });
	if (!present)
		taints.append(J::make("key", "node.kubernetes.io/not-ready", "effect", "NoSchedule"));
}

} // namespace

Refusal Api::check_namespace(const Request &r, const std::string &name)
{
	if (!r.kind->namespaced)
		return {};
	const Kind &namespaces = kind_of("namespaces");
	ObjectPtr ns = store_.find(namespaces.storage, "", r.ns);
	if (!ns)
		return not_found(namespaces, r.ns);
	if (ns->json().path("status.phase").str() != "Terminating")
		return {};
	const std::string what = r.group.empty() ? r.resource : r.resource + "." + r.group;
	J causes = J::array();
	causes.append(J::make("reason", "NamespaceTerminating", "message",
			      "namespace " + r.ns + " is being terminated", "field", "metadata.namespace"));
	J details = J::object();
	if (!name.empty())
		details.set("name", name);
	if (!r.group.empty())
		details.set("group", r.group);
	details.set("kind", r.resource).set("causes", causes);
	return Failure{403, "Forbidden",
		       what + " \"" + name + "\" is forbidden: unable to create new content in namespace " + r.ns +
			       " because it is being terminated",
		       details};
}

// The body as an object of the request's kind, without kind and apiVersion.
Outcome<J> Api::decode(Request &r)
{
	const Kind &kind = *r.kind;
	if (r.content_type.find("protobuf") != std::string::npos)
		return unsupported_media_type();
	std::string problem;
	J object = r.content_type.find("yaml") != std::string::npos ? parse_yaml(r.body, &problem)
								    : J::parse(r.body, &problem);
	if (!object.is_object())
		return bad_request("couldn't get version/kind; json parse error: " + problem);
	const std::string version = object["apiVersion"].str(kind.api_version());
	const std::string name = object["kind"].str(kind.kind);
	if (version != kind.api_version())
		return bad_request("the API version in the data (" + version +
				   ") does not match the expected API version (" + kind.api_version() + ")");
	if (name != kind.kind)
		return bad_request(name + " in version \"" + kind.version + "\" cannot be handled as a " + kind.kind +
				   ": converting (" + kind.version + "." + name + ") to (" +
				   (*kind.group ? kind.group : "core") + "." + kind.kind + "): unknown conversion");
	if (std::string wrong = malformed(kind, object); !wrong.empty())
		return bad_request(wrong);
	if (std::string_view(kind.group) == "events.k8s.io")
		object = event_to_core(object);
	prune_nulls(object);
	object.child("metadata").del("managedFields");
	object["metadata"].del("selfLink");
	return object;
}

Reply Api::create(Request &r)
{
	auto decoded = decode(r);
	if (!decoded)
		return Reply::refuse(decoded.failure());
	J meta = (*decoded)["metadata"];
	if (r.kind->namespaced) {
		if (meta["namespace"].str(r.ns) != r.ns)
			return Reply::refuse(bad_request("the namespace of the provided object does not match the "
							 "namespace sent on the request"));
		meta.set("namespace", r.ns);
	}
	return create_object(r, *decoded);
}

Reply Api::create_object(Request &r, J object)
{
	const Kind &kind = *r.kind;
	J meta = object["metadata"];
	if (!meta["resourceVersion"].str().empty())
		return Reply::refuse({500, "", "resourceVersion should not be set on objects to be created", {}});
	if (meta["name"].str().empty() && !meta["generateName"].str().empty())
		meta.set("name", meta["generateName"].str() + random_suffix());
	const std::string name = meta["name"].str();
	r.object_name = name;
	if (auto f = check_namespace(r, name))
		return Reply::refuse(*f);
	meta.set("uid", new_uid());
	meta.set("creationTimestamp", rfc3339(now_s()));
	for (const char *field : {"deletionTimestamp", "deletionGracePeriodSeconds", "generation"})
		meta.del(field);
	if (is(kind, "namespaces")) {
		object.set("status", J::make("phase", "Active"));
		object.child("spec").set("finalizers", J::list({"kubernetes"}));
	} else if (is(kind, "pods")) {
		if (auto f = set_priority(store_, object))
			return Reply::refuse(*f);
	} else if (is(kind, "persistentvolumeclaims") || is(kind, "persistentvolumes") || is(kind, "resourceclaims")) {
		object.del("status");
	}
	if (!apply_defaults(kind, object))
		return Reply::refuse(unreadable_quantity(kind));
	if (is(kind, "nodes"))
		taint_not_ready(object);
	if (kind.has_generation)
		meta.set("generation", 1);
	if (auto errors = validate(kind, object); !errors.empty())
		return Reply::refuse(invalid(kind.group, kind.kind, name, errors));
	if (is(kind, "pods"))
		object.set("status", initial_pod_status(object));
	if (store_.find(kind.storage, meta["namespace"].str(), name))
		return Reply::refuse(already_exists(kind, name));
	r.object_uid = meta["uid"].str();
	if (r.flag("dryRun")) {
		Object dry;
		dry.body = object.dump();
		return Reply::json(201, View(r).object(dry));
	}
	return Reply::json(201, View(r).object(*store_.put(kind.storage, object)));
}

Reply Api::update(Request &r)
{
	auto decoded = decode(r);
	if (!decoded)
		return Reply::refuse(decoded.failure());
	J object = *decoded, meta = object["metadata"];
	if (meta["name"].str() != r.name)
		return Reply::refuse(bad_request(
			meta["name"].str().empty()
				? "resource name may not be empty"
				: "the name of the object (" + meta["name"].str() +
					  ") does not match the name on the URL (" + r.name + ")"));
	const std::string ns = r.kind->namespaced ? r.ns : "";
	if (r.kind->namespaced) {
		if (meta["namespace"].str(ns) != ns)
			return Reply::refuse(bad_request("the namespace of the provided object does not match the "
							 "namespace sent on the request"));
		meta.set("namespace", ns);
	}
	ObjectPtr old = store_.find(r.kind->storage, ns, r.name);
	const bool upserts = is(*r.kind, "leases") || is(*r.kind, "events") ||
			     std::string_view(r.kind->group) == "rbac.authorization.k8s.io";
	if (!old && upserts && r.subresource.empty())
		return create_object(r, object);
	if (!old)
		return Reply::refuse(not_found(*r.kind, r.name));
	const std::string uid = meta["uid"].str();
	if (!uid.empty() && uid != old->uid)
		return Reply::refuse(conflict(r.kind->group, r.kind->resource, r.name,
					      "Precondition failed: UID in precondition: " + uid +
						      ", UID in object meta: " + old->uid));
	auto done = replace(r, old, object, !is(*r.kind, "leases"));
	return done ? Reply::json(200, View(r).object(**done)) : Reply::refuse(done.failure());
}

// What an update may not change, taken over from the old object.
static void keep_system_fields(const Kind &kind, J &now, const J &before, bool status_only)
{
	if (status_only) {
		J merged = before.copy(), meta = merged["metadata"];
		for (const char *field : {"labels", "annotations", "finalizers"}) {
			if (J value = now["metadata"][field])
				meta.set(field, value);
			else
				meta.del(field);
		}
		meta.set("resourceVersion", now["metadata"]["resourceVersion"]);
		meta.set("uid", now["metadata"]["uid"]);
		if (J status = now["status"])
			merged.set("status", status);
		else
			merged.set("status", J::object());
		if (!merged["status"]["qosClass"] && before["status"]["qosClass"])
			merged["status"].set("qosClass", before["status"]["qosClass"]);
		now = merged;
		return;
	}
	if (kind.has_status) {
		if (J status = before["status"])
			now.set("status", status);
		else
			now.del("status");
	}
	J meta = now["metadata"], old = before["metadata"];
	for (const char *field : {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
				  "generation", "namespace"}) {
		if (J value = old[field])
			meta.set(field, value);
		else
			meta.del(field);
	}
}

static bool through_resize(const Request &r)
{
	return r.subresource == "resize";
}

static std::vector<FieldError> validate_finalizers(const J &now, const J &before)
{
	if (!before.path("metadata.deletionTimestamp"))
		return {};
	auto old = before.path("metadata.finalizers").strings();
	std::string added;
	for (const auto &f : now.path("metadata.finalizers").strings())
		if (std::find(old.begin(), old.end(), f) == old.end())
			added += (added.empty() ? "\"" : ", \"") + f + "\"";
	if (added.empty())
		return {};
	return {field_forbidden("metadata.finalizers",
				"no new finalizers can be added if the object is being deleted, found new finalizers "
				"[]string{" +
					added + "}")};
}

static ObjectPtr unstored(const J &object)
{
	auto o = std::make_shared<Object>();
	o->ns = object.path("metadata.namespace").str();
	o->name = object.path("metadata.name").str();
	o->uid = object.path("metadata.uid").str();
	J copy = object.copy();
	copy.del("kind");
	copy.del("apiVersion");
	o->body = copy.dump();
	return o;
}

Outcome<ObjectPtr> Api::replace(Request &r, const ObjectPtr &old, J now, bool unconditional_allowed)
{
	const Kind &kind = *r.kind;
	const bool status_only = r.subresource == "status";
	const J before = old->json();
	J meta = now.child("metadata");
	r.object_uid = old->uid;
	std::vector<FieldError> errors;
	if (std::string uid = meta["uid"].str(); !uid.empty() && uid != old->uid)
		// The real server validates metadata twice and says so twice.
		errors.insert(errors.end(), 2,
			      field_invalid("metadata.uid", "\"" + uid + "\"", "field is immutable"));
	const std::string version = meta["resourceVersion"].str();
	if (version.empty() && !unconditional_allowed)
		errors.push_back(field_invalid("metadata.resourceVersion", "0", "must be specified for an update"));
	else if (!version.empty() && version != std::to_string(old->rv))
		return modified(kind, old->name);
	if (!errors.empty())
		return invalid(kind.group, kind.kind, old->name, errors);
	meta.set("uid", old->uid);
	meta.set("resourceVersion", std::to_string(old->rv));

	if (through_resize(r))
		keep_all_but_resources(now, before);
	else
		keep_system_fields(kind, now, before, status_only);
	if (!apply_defaults(kind, now))
		return unreadable_quantity(kind);
	errors = validate_finalizers(now, before);
	const auto change = through_resize(r)  ? validate_pod_resize(now, before)
			    : is(kind, "pods") ? validate_pod_update(now, before)
			    : is(kind, "resourceclaims") ? validate_claim_update(now, before)
							 : std::vector<FieldError>{};
	for (auto &more : {validate(kind, now), change})
		errors.insert(errors.end(), more.begin(), more.end());
	if (!errors.empty())
		return invalid(kind.group, kind.kind, old->name, errors);
	meta = now["metadata"];
	for (const char *field : {"labels", "annotations", "finalizers", "ownerReferences"})
		if (meta[field] && meta[field].size() == 0)
			meta.del(field);
	if (kind.has_generation && !(now["spec"] == before["spec"]))
		meta.set("generation", before.path("metadata.generation").num() + 1);
	now.del("kind");
	now.del("apiVersion");
	if (r.flag("dryRun"))
		return unstored(now);
	const J old_meta = before["metadata"];
	if (old_meta["deletionTimestamp"] && old_meta["deletionGracePeriodSeconds"].num() == 0 &&
	    meta["finalizers"].size() == 0 && !is(kind, "namespaces")) {
		store_.erase(kind.storage, old->key());
		return unstored(now);
	}
	if (now == before)
		return old; // nothing changed: no new resourceVersion, no event
	return store_.put(kind.storage, now);
}

static Outcome<J> apply_patch(const std::string &type, const J &target, const J &patch)
{
	if (type == "application/json-patch+json")
		return json_patch(target, patch);
	if (type == "application/merge-patch+json") {
		if (!patch.is_object())
			return bad_request("error decoding patch: json: cannot unmarshal into Go value of type "
					   "map[string]interface {}");
		return merge_patch(target, patch);
	}
	return strategic_merge(target, patch);
}

// Server-side apply, without the ownership of fields: creates or merges.
Reply Api::create_from_patch(Request &r, const std::string &type)
{
	if (type != "application/apply-patch+yaml")
		return Reply::refuse(not_found(*r.kind, r.name));
	r.content_type = "application/yaml";
	auto decoded = decode(r);
	if (!decoded)
		return Reply::refuse(decoded.failure());
	(*decoded)["metadata"].set("name", r.name);
	if (r.kind->namespaced)
		(*decoded)["metadata"].set("namespace", r.ns);
	return create_object(r, *decoded);
}

Reply Api::patch(Request &r)
{
	const std::string type = r.content_type.substr(0, r.content_type.find(';'));
	static const std::vector<std::string> types = {
		"application/json-patch+json", "application/merge-patch+json",
		"application/strategic-merge-patch+json", "application/apply-patch+yaml"};
	if (std::find(types.begin(), types.end(), type) == types.end())
		return Reply::refuse(unsupported_media_type());
	const Kind &kind = *r.kind;
	ObjectPtr old = store_.find(kind.storage, kind.namespaced ? r.ns : "", r.name);
	if (!old)
		return create_from_patch(r, type);
	std::string problem;
	J patch = type == types[3] ? parse_yaml(r.body, &problem) : J::parse(r.body, &problem);
	if (!patch)
		return Reply::refuse(bad_request("error decoding patch: " + problem));
	const bool modern = std::string_view(kind.group) == "events.k8s.io";
	J target = modern ? event_from_core(old->json()) : old->json();
	auto patched = apply_patch(type, target, patch);
	if (!patched)
		return Reply::refuse(patched.failure());
	J now = modern ? event_to_core(*patched) : *patched;
	if (std::string wrong = now.is_object() ? malformed(kind, now) : "patch is no object"; !wrong.empty())
		return Reply::refuse(invalid("", "", "", {field_invalid("patch", "\"\"", wrong)}));
	prune_nulls(now);
	J meta = now.child("metadata");
	meta.del("managedFields");
	if (meta["name"].str() != r.name)
		return Reply::refuse(bad_request("the name of the object (" + meta["name"].str() +
						 ") does not match the name on the URL (" + r.name + ")"));
	auto done = replace(r, old, now, true);
	return done ? Reply::json(200, View(r).object(**done)) : Reply::refuse(done.failure());
}

} // namespace kubesim
