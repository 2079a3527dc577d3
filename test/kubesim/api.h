// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The Kubernetes API: one request in, one reply out. No I/O, no threads.
#ifndef KUBESIM_API_H
#define KUBESIM_API_H

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "test/kubesim/rbac.h"
#include "test/kubesim/request.h"
#include "test/kubesim/store.h"
#include "test/kubesim/view.h"
#include "test/kubesim/watch.h"

namespace kubesim {

class Api {
public:
	Api(Store &store, Rbac &rbac);

	// Authorizes and serves. Fills in the request's attributes.
	Reply handle(Request &request);
	// The same for the server's own kubelets, without authorization.
	Reply handle_trusted(Request &request);

	// Once a second, see Watch::tick().
	void tick();
	void set_bookmark_interval(std::int64_t us) { bookmark_interval_us_ = us; }
	void each_watch(const std::function<void(Watch &)> &f);

	// Serves pods/log; unset or an empty reply code: no such container.
	std::function<Reply(const Object &pod, const Request &)> logs;
	// Paths that are not the API's (the fault switches); code 0: not mine.
	std::function<Reply(const Request &)> admin;

	Store &store() { return store_; }
	// Creates the namespaces that every cluster has, if they are not there.
	void seed_namespaces();
	// Stores objects as read from files (RBAC manifests), replacing older ones.
	std::string seed(const J &object); // an error sentence, or ""

private:
	Reply serve(Request &r);
	Reply serve_resource(Request &r);
	Reply review_access(Request &r);
	Refusal impersonate(const Request &r);

	// read
	Reply get(Request &r);
	Reply list(Request &r);
	Reply watch(Request &r);

	// write; `status`: through the status subresource
	Reply create(Request &r);
	Reply update(Request &r);
	Reply patch(Request &r);
	Outcome<J> decode(Request &r);
	Outcome<ObjectPtr> replace(Request &r, const ObjectPtr &old, J now, bool unconditional_allowed);
	Reply create_object(Request &r, J object);
	Refusal check_namespace(const Request &r, const std::string &name);
	Reply create_from_patch(Request &r, const std::string &type);

	// delete
	Reply remove(Request &r);
	Reply remove_collection(Request &r);
	Outcome<J> delete_options(const Request &r);
	// The object after the deletion (or its marking), and whether it is gone.
	Outcome<std::pair<ObjectPtr, bool>> remove_object(const Kind &kind, const ObjectPtr &object,
							  J options, bool dry_run);
	Reply remove_namespace(Request &r, const ObjectPtr &object);
	void drain_namespaces();

	// binding
	Reply bind(Request &r);

	// eviction
	Reply evict(Request &r);
	Refusal count_disruption(const Object &pod);

	Store &store_;
	Rbac &rbac_;
	std::list<std::weak_ptr<Watch>> watches_;
	std::int64_t bookmark_interval_us_ = 10000000;
	bool namespaces_terminating_ = true;
};

// Discovery and openapi; code 0: not such a path.
Reply serve_discovery(const Request &r);

} // namespace kubesim

#endif
