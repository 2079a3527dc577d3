// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Deletion with grace periods, preconditions and finalizers. Follows Store.Delete
// and rest.BeforeDelete of k8s.io/apiserver, and podStrategy.CheckGracefulDelete.
#include <algorithm>

#include "test/kubesim/api.h"
#include "test/kubesim/times.h"

namespace kubesim {

// DeleteOptions from the body or the query.
Outcome<J> Api::delete_options(const Request &r)
{
	J options = J::object();
	if (!r.body.empty()) {
		std::string problem;
		options = J::parse(r.body, &problem);
		if (!options.is_object())
			return bad_request("couldn't get version/kind; json parse error: " + problem);
	}
	if (std::string grace = r.arg("gracePeriodSeconds"); !grace.empty())
		options.set_default("gracePeriodSeconds", static_cast<std::int64_t>(std::atoll(grace.c_str())));
	if (r.flag("dryRun"))
		options.set_default("dryRun", J::list({"All"}));
	return options;
}

static Refusal check_preconditions(const Kind &kind, const Object &object, const J &options)
{
	const J p = options["preconditions"];
	const std::string rv = std::to_string(object.rv);
	if (J uid = p["uid"]; uid.is_string() && uid.str() != object.uid)
		return conflict(kind.group, kind.kind, object.name,
				"the UID in the precondition (" + uid.str() +
					") does not match the UID in record (" + object.uid +
					"). The object might have been deleted and then recreated");
	if (J want = p["resourceVersion"]; want.is_string() && want.str() != rv)
		return conflict(kind.group, kind.kind, object.name,
				"the ResourceVersion in the precondition (" + want.str() +
					") does not match the ResourceVersion in record (" + rv +
					"). The object might have been modified");
	return {};
}

static std::int64_t pod_grace(const J &pod, const J &options)
{
	std::int64_t grace = pod.path("spec.terminationGracePeriodSeconds").num();
	if (J asked = options["gracePeriodSeconds"]; asked.is_integer())
		grace = asked.num();
	const std::string phase = pod.path("status.phase").str();
	if (pod.path("spec.nodeName").str().empty() || phase == "Failed" || phase == "Succeeded")
		grace = 0;
	return grace < 0 ? 1 : grace;
}

namespace {
enum class Step { nothing, mark, now };
}

// Decides what a delete request means and writes the marks into object.
static Step before_delete(const Kind &kind, J object, J options)
{
	J meta = object["metadata"];
	if (options["gracePeriodSeconds"].num() < 0)
		options.set("gracePeriodSeconds", 1);
	const bool is_pod = std::string_view(kind.resource) == "pods";
	const J asked = options["gracePeriodSeconds"];
	if (meta["deletionTimestamp"]) {
		// Only a shorter grace may follow.
		const std::int64_t current = meta["deletionGracePeriodSeconds"].num();
		if (current == 0)
			return Step::now;
		if (!asked.is_integer() || asked.num() >= current)
			return Step::nothing;
		std::int64_t at = parse_rfc3339(meta["deletionTimestamp"].str()) - current + asked.num();
		std::int64_t grace = asked.num();
		if (const std::int64_t now = now_s(); at < now) { // never into the past; who ends the pod still sees a grace
			at = now;
			grace = std::min<std::int64_t>(grace, 1);
		}
		meta.set("deletionTimestamp", rfc3339(at));
		meta.set("deletionGracePeriodSeconds", grace);
		return Step::mark;
	}
	if (!is_pod)
		return Step::now;
	const std::int64_t grace = pod_grace(object, options);
	options.set("gracePeriodSeconds", grace);
	meta.set("deletionTimestamp", rfc3339(now_s() + grace));
	meta.set("deletionGracePeriodSeconds", grace);
	if (std::int64_t generation = meta["generation"].num())
		meta.set("generation", generation + 1);
	return Step::mark;
}

Outcome<std::pair<ObjectPtr, bool>> Api::remove_object(const Kind &kind, const ObjectPtr &object, J options,
						       bool dry_run)
{
	if (auto f = check_preconditions(kind, *object, options))
		return *f;
	using Result = std::pair<ObjectPtr, bool>;
	J json = object->json(), meta = json["metadata"];
	const bool finalizers = meta["finalizers"].size() > 0;
	Step step = before_delete(kind, json, options);
	if (step == Step::nothing)
		return Result{object, false};
	if (step == Step::now && finalizers) {
		if (!meta["deletionTimestamp"]) {
			meta.set("deletionTimestamp", rfc3339(now_s()));
			if (std::int64_t generation = meta["generation"].num())
				meta.set("generation", generation + 1);
		}
		meta.set("deletionGracePeriodSeconds", 0);
	}
	if (dry_run)
		return Result{object, !finalizers};
	ObjectPtr marked = object;
	// An object that is marked again in the same way is not written again.
	if ((step == Step::mark || finalizers) && !(json == object->json()))
		marked = store_.put(kind.storage, json);
	if (finalizers || (step == Step::mark && meta["deletionGracePeriodSeconds"].num() > 0))
		return Result{marked, false};
	return Result{store_.erase(kind.storage, object->key()), true};
}

static std::string success(const Kind &kind, const Object &o)
{
	J details = J::make("name", o.name);
	if (*kind.group)
		details.set("group", kind.group);
	details.set("kind", kind.resource).set("uid", o.uid);
	return J::make("kind", "Status", "apiVersion", "v1", "metadata", J::object(), "status", "Success", "details",
		       details)
		.dump();
}

Reply Api::remove(Request &r)
{
	const Kind &kind = *r.kind;
	ObjectPtr object = store_.find(kind.storage, kind.namespaced ? r.ns : "", r.name);
	if (!object)
		return Reply::refuse(not_found(kind, r.name));
	r.object_uid = object->uid;
	auto options = delete_options(r);
	if (!options)
		return Reply::refuse(options.failure());
	if (r.resource == "namespaces")
		return remove_namespace(r, object);
	const bool dry_run = (*options)["dryRun"].size() > 0;
	auto done = remove_object(kind, object, *options, dry_run);
	if (!done)
		return Reply::refuse(done.failure());
	auto [left, gone] = *done;
	if (gone && !kind.returns_deleted)
		return Reply::json(200, success(kind, *left));
	return Reply::json(200, View(r).object(*left));
}

Reply Api::remove_collection(Request &r)
{
	const Kind &kind = *r.kind;
	auto options = delete_options(r);
	if (!options)
		return Reply::refuse(options.failure());
	auto labels = parse_label_selector(r.arg("labelSelector"));
	auto fields = parse_field_selector(kind, r.arg("fieldSelector"));
	if (!labels || !fields)
		return Reply::refuse(labels ? fields.failure() : labels.failure());
	Selector selector{r.ns, *labels, *fields};
	std::vector<ObjectPtr> left;
	auto all = store_.list(kind.storage, r.ns, "", 0);
	for (const auto &o : *all)
		if (selector.matches(*o))
			if (auto done = remove_object(kind, o, (*options).copy(), (*options)["dryRun"].size() > 0))
				left.push_back(done->first);
	return Reply::json(200, View(r).list(left, J::make("resourceVersion", std::to_string(store_.rv()))));
}

Reply Api::remove_namespace(Request &r, const ObjectPtr &object)
{
	static const std::vector<std::string> kept = {"default", "kube-system", "kube-public"};
	if (std::find(kept.begin(), kept.end(), r.name) != kept.end())
		return Reply::refuse({403, "Forbidden",
				      "namespaces \"" + r.name + "\" is forbidden: this namespace may not be deleted",
				      J::make("name", r.name, "kind", "namespaces")});
	J ns = object->json();
	if (ns.path("metadata.deletionTimestamp"))
		return Reply::refuse(conflict("", "namespaces", r.name,
					      "The system is ensuring all content is removed from this namespace.  "
					      "Upon completion, this namespace will automatically be purged by the "
					      "system."));
	ns["metadata"].set("deletionTimestamp", rfc3339(now_s()));
	ns.child("status").set("phase", "Terminating");
	namespaces_terminating_ = true;
	return Reply::json(200, View(r).object(*store_.put(r.kind->storage, ns)));
}

// The namespace controller's work: empties namespaces that are being deleted.
void Api::drain_namespaces()
{
	if (!namespaces_terminating_)
		return;
	namespaces_terminating_ = false;
	const std::size_t storage = kind_of("namespaces").storage;
	std::vector<ObjectPtr> all;
	for (const auto &[key, ns] : store_.all(storage))
		all.push_back(ns);
	for (const auto &ns : all) {
		J json = ns->json();
		if (json.path("status.phase").str() != "Terminating")
			continue;
		bool empty = true;
		for (std::size_t s = 0; s < storage_count(); s++) {
			const Kind &kind = stored_kind(s);
			if (!kind.namespaced)
				continue;
			auto content = store_.list(s, ns->name, "", 0);
			for (const auto &o : *content) {
				bool marked = static_cast<bool>(o->json().path("metadata.deletionTimestamp"));
				auto done = remove_object(kind, o, J::object(), marked && kind.has_status);
				empty &= done && done->second && !marked;
			}
		}
		if (empty && json.path("metadata.finalizers").size() == 0)
			store_.erase(storage, ns->name);
		else
			namespaces_terminating_ = true;
	}
}

} // namespace kubesim
