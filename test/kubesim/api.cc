// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/kubesim/api.h"

#include <algorithm>

#include "test/kubesim/meta.h"
#include "test/kubesim/protobuf.h"
#include "test/kubesim/times.h"

namespace kubesim {

Api::Api(Store &store, Rbac &rbac) : store_(store), rbac_(rbac)
{
	store.subscribe([this](std::size_t storage, const Event &) {
		for (auto it = watches_.begin(); it != watches_.end();) {
			auto watch = it->lock();
			if (watch && watch->storage() == storage)
				watch->changed();
			it = watch ? std::next(it) : watches_.erase(it);
		}
	});
}

void Api::each_watch(const std::function<void(Watch &)> &f)
{
	for (const auto &weak : watches_)
		if (auto watch = weak.lock())
			f(*watch);
}

void Api::tick()
{
	const std::int64_t now = monotonic_us();
	each_watch([&](Watch &w) { w.tick(now, bookmark_interval_us_); });
	drain_namespaces();
}

void Api::seed_namespaces()
{
	for (const char *name : {"default", "kube-node-lease", "kube-public", "kube-system"}) {
		const Kind &kind = kind_of("namespaces");
		if (store_.find(kind.storage, "", name))
			continue;
		J ns = J::make("metadata", J::make("name", name));
		seed(J::make("kind", kind.kind, "apiVersion", "v1", "metadata", ns["metadata"], "spec",
			     J::make("finalizers", J::list({"kubernetes"})), "status",
			     J::make("phase", "Active")));
	}
}

std::string Api::seed(const J &object)
{
	if (object["kind"].str() == "List") {
		std::string problem;
		object["items"].each_item([&](const J &i) { problem = problem.empty() ? seed(i) : problem; });
		return problem;
	}
	const Kind *kind = find_kind_by_name(object["apiVersion"].str(), object["kind"].str());
	if (!kind)
		return "no such kind: " + object["apiVersion"].str() + " " + object["kind"].str();
	J o = object.copy();
	J meta = o.child("metadata");
	if (kind->namespaced)
		meta.set_default("namespace", "default");
	ObjectPtr old = store_.find(kind->storage, meta["namespace"].str(), meta["name"].str());
	meta.set("uid", old ? old->uid : new_uid());
	meta.set("creationTimestamp", rfc3339(now_s()));
	default_object(*kind, o);
	store_.put(kind->storage, o);
	return {};
}

static Action action_of(const Request &r)
{
	if (!r.is_resource)
		return {r.verb, "", "", "", "", "", r.path};
	return {r.verb, r.group, r.resource, r.subresource, r.ns, r.name, ""};
}

Reply Api::handle(Request &r)
{
	r.received_us = r.received_us ? r.received_us : now_us();
	parse_path(r);
	Action action = action_of(r);
	if (!rbac_.allowed(r.user, action))
		return Reply::refuse(Rbac::forbidden(r.user, action));
	return serve(r);
}

Reply Api::handle_trusted(Request &r)
{
	parse_path(r);
	return serve(r);
}

Reply Api::serve(Request &r)
{
	if (r.is_resource)
		return serve_resource(r);
	if (admin)
		if (Reply reply = admin(r); reply.code)
			return reply;
	static const std::vector<std::string> health = {"/healthz", "/livez", "/readyz"};
	if (std::find(health.begin(), health.end(), r.path.substr(0, r.path.find('/', 1))) != health.end())
		return Reply::text(200, "ok");
	if (Reply reply = serve_discovery(r); reply.code)
		return reply;
	return Reply::text(404, "404 page not found\n");
}

Reply Api::serve_resource(Request &r)
{
	if (r.group == "authorization.k8s.io" && r.resource == "selfsubjectaccessreviews" && r.verb == "create")
		return review_access(r);
	if (!r.group.empty() && !r.kind) {
		bool known = std::any_of(kinds().begin(), kinds().end(), [&](auto &k) {
			return r.group == k.group && r.version == k.version;
		});
		if (!known)
			return Reply::text(404, "404 page not found\n");
	}
	const Kind *kind = r.kind;
	if (!kind || (kind->namespaced && r.ns.empty() && (!r.name.empty() || r.verb == "create")) ||
	    (!kind->namespaced && !r.ns.empty() && r.resource != "namespaces"))
		return Reply::refuse(no_such_resource());
	if (r.subresource == "binding" && r.resource == "pods" && r.verb == "create")
		return bind(r);
	if (r.subresource == "eviction" && r.resource == "pods" && r.verb == "create")
		return evict(r);
	if (r.subresource == "log" && r.resource == "pods" && r.verb == "get") {
		ObjectPtr pod = store_.find(kind->storage, r.ns, r.name);
		if (!pod)
			return Reply::refuse(not_found(*kind, r.name));
		return logs ? logs(*pod, r) : Reply::refuse(no_such_resource());
	}
	const bool resize = r.subresource == "resize" && r.resource == "pods";
	if (!r.subresource.empty() && !resize && !(r.subresource == "status" && kind->has_status))
		return Reply::refuse(no_such_resource());

	const bool sub = !r.subresource.empty();
	struct Row {
		const char *verb;
		bool with_status;
		Reply (Api::*serve)(Request &);
	};
	static const Row table[] = {
		{"get", true, &Api::get},
		{"list", false, &Api::list},
		{"watch", false, &Api::watch},
		{"create", false, &Api::create},
		{"update", true, &Api::update},
		{"patch", true, &Api::patch},
		{"delete", false, &Api::remove},
		{"deletecollection", false, &Api::remove_collection},
	};
	for (const auto &row : table)
		if (r.verb == row.verb && (row.with_status || !sub) && (r.verb != "create" || r.name.empty()))
			return (this->*row.serve)(r);
	return Reply::refuse({405, "MethodNotAllowed",
			      "the server does not allow this method on the requested resource", J::object()});
}

Reply Api::review_access(Request &r)
{
	J review = r.content_type.find("protobuf") != std::string::npos ? decode_access_review(r.body)
									 : J::parse(r.body);
	const J a = review.path("spec.resourceAttributes"), n = review.path("spec.nonResourceAttributes");
	if (!a && !n)
		return Reply::refuse(invalid("authorization.k8s.io", "SelfSubjectAccessReview", "",
					     {field_invalid("spec.resourceAttributes", "null",
							    "exactly one of nonResourceAttributes or "
							    "resourceAttributes must be specified")}));
	Action action{a["verb"].str(), a["group"].str(), a["resource"].str(), a["subresource"].str(),
		      a["namespace"].str(), a["name"].str(), ""};
	if (n)
		action = {n["verb"].str(), "", "", "", "", "", n["path"].str()};
	J answer = J::make("kind", "SelfSubjectAccessReview", "apiVersion", "authorization.k8s.io/v1",
			   "metadata", J::object(), "spec", review["spec"], "status",
			   J::make("allowed", rbac_.allowed(r.user, action)));
	return Reply::json(201, answer.dump());
}

} // namespace kubesim
