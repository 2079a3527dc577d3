// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/kube_requests.h"

#include <utility>

#include "lib/core/names.h"

namespace sk8::sim {

using core::KubeReply;
using core::PodKey;

static constexpr Micros client_timeout = 30 * second;

struct KubeRequests::Request {
	std::string what, stream;
	bool write = false, answered = false, hangs = false;
	int restores = 0; // of etcd, before it was sent
	Effect effect;
	core::KubePort::Done done;
};

static KubeReply status(int code)
{
	KubeReply r;
	r.status = code;
	if (!r.ok())
		r.error = code ? "HTTP status " + std::to_string(code) : "no answer";
	return r;
}

void KubeRequests::send(const std::string &what, const PodKey &key, bool write, Effect effect, KubePort::Done done)
{
	auto r = std::make_shared<Request>();
	r->what = what + " " + key.name;
	r->stream = what + "/" + key.name;
	r->write = write;
	r->restores = api_.restores();
	r->effect = std::move(effect);
	r->done = std::move(done);
	tell(story_, "engine: ", r->what);
	const Micros slow = dice_.chance("slow " + r->stream, 50) ? dice_.between("slow " + r->stream, 0, second) : 0;
	time_.after(dice_.between(r->stream, 200, 20 * ms) + slow, [this, r] { arrive(r); });
}

void KubeRequests::give_up_later(const std::shared_ptr<Request> &r)
{
	if (std::exchange(r->hangs, true))
		return;
	time_.after(client_timeout, [this, r] { answer(r, status(0), 0); });
}

void KubeRequests::answer(const std::shared_ptr<Request> &r, KubeReply reply, Micros delay)
{
	time_.after(delay, [this, r, reply = std::move(reply)] {
		if (r->answered || !alive_)
			return;
		r->answered = true;
		tell(story_, "answer: ", r->what, ": ", std::to_string(reply.status));
		turn_([r, reply] { r->done(reply); });
	});
}

// What an API server, or what stands before it, does to a request on a bad day.
bool KubeRequests::goes_wrong(const std::shared_ptr<Request> &r)
{
	if (!faults || !dice_.chance("fault " + r->stream, faults))
		return false;
	KubeReply refused;
	switch (dice_.between("fault " + r->stream, 0, 7)) {
	case 0:
		refused = status(429);
		refused.retry_after = Millis(1000 * dice_.between("fault " + r->stream, 1, 5));
		break;
	case 1:
		refused = status(500);
		break;
	case 2:
		refused = status(503);
		break;
	case 3: // no answer, no effect
		refused = status(0);
		break;
	case 4: // no answer, but it took effect
		r->effect();
		refused = status(0);
		break;
	case 5: // a gateway gave up, but it took effect
		r->effect();
		refused = status(504);
		break;
	case 6:
		refused = status(409);
		break;
	default: // it hangs, and takes effect when nobody waits for it any more
		give_up_later(r);
		time_.after(dice_.between("hang " + r->stream, second, 60 * second), [this, r] {
			if (!lost_ && r->restores == api_.restores())
				r->effect();
		});
		return true;
	}
	if (r->what.starts_with("get"))
		refused.pod.reset();
	answer(r, refused, dice_.between("fault " + r->stream, 1 * ms, 2 * second));
	return true;
}

void KubeRequests::arrive(const std::shared_ptr<Request> &r)
{
	if (lost_ || (!alive_ && dice_.chance("dead " + r->stream, 500)))
		return; // never left the machine
	if (api_.down) { // nobody listens
		KubeReply refused = status(0);
		refused.not_sent = true;
		return answer(r, std::move(refused), 1 * ms);
	}
	// Every API server is stopped while etcd is restored: what it had not done is not done.
	if (r->restores != api_.restores())
		return answer(r, status(0), 1 * ms);
	if (api_.hung) {
		give_up_later(r);
		time_.after(dice_.between("hung " + r->stream, 500 * ms, second), [this, r] { arrive(r); });
		return;
	}
	if (api_.forbids && r->write)
		return answer(r, status(403), 1 * ms);
	if (goes_wrong(r))
		return;
	KubeReply reply = r->effect();
	answer(r, std::move(reply), dice_.between("answer " + r->stream, 200, 20 * ms));
}

// ---- the port ----

void KubeRequests::get_pod(const PodKey &key, KubePort::Done done)
{
	send("get", key, false,
	     [this, key] {
		     KubeReply r;
		     r.pod = api_.pod(key.name);
		     r.status = r.pod ? 200 : 404;
		     r.error = r.pod ? "" : "not found";
		     return r;
	     },
	     std::move(done));
}

void KubeRequests::set_finalizer(const PodKey &key, bool present, KubePort::Done done)
{
	send(present ? "put finalizer on" : "take finalizer off", key, true,
	     [this, key, present] {
		     kube::PodPtr pod = api_.pod(key.name);
		     if (strips_finalizers && !present && pod)
			     for (const auto &f : pod->meta.finalizers)
				     api_.patch_finalizer(key.name, key.uid, f, false);
		     return status(api_.patch_finalizer(key.name, key.uid, std::string(core::names::finalizer), present));
	     },
	     std::move(done));
}

void KubeRequests::bind(const PodKey &key, const std::string &node,
			const std::map<std::string, std::string> &annotations, KubePort::Done done)
{
	watcher_.binding_by_us(key);
	send("bind to " + node, key, true,
	     [this, key, node, annotations] { return status(api_.bind(key.name, key.uid, node, annotations)); },
	     [this, key, done = std::move(done)](const KubeReply &r) {
		     if (r.not_sent || (r.status >= 400 && r.status < 500))
			     watcher_.binding_refused(key);
		     done(r);
	     });
}

KubeReply KubeRequests::change_pod(const PodKey &key, const std::string &version,
					   const std::function<void(kube::Pod &)> &edit)
{
	KubeReply reply;
	kube::PodPtr pod = api_.pod(key.name);
	reply.status = !pod ? 404 : pod->meta.uid != key.uid || (!version.empty() && pod->meta.resource_version != version) ? 409 : 200;
	reply.error = reply.ok() ? "" : "HTTP status " + std::to_string(reply.status);
	if (!reply.ok())
		return reply;
	api_.change(key.name, key.uid, edit);
	reply.pod = api_.pod(key.name);
	return reply;
}

void KubeRequests::annotate_pod(const PodKey &key, const core::AnnotationChanges &changes, KubePort::Done done)
{
	send("annotate", key, true,
	     [this, key, changes] {
		     return change_pod(key, "", [&](kube::Pod &pod) {
			     for (const auto &[name, value] : changes)
				     if (value)
					     pod.meta.annotations[name] = *value;
				     else
					     pod.meta.annotations.erase(name);
		     });
	     },
	     std::move(done));
}

void KubeRequests::delete_pod(const PodKey &key, const core::Deletion &how, KubePort::Done done)
{
	watcher_.delete_sent_by_us(key, how.grace_seconds);
	send("delete", key, true,
	     [this, key, how, sent_at = time_.now()] {
		     kube::PodPtr pod = api_.pod(key.name);
		     if (pod && !how.if_version.empty() && pod->meta.resource_version != how.if_version)
			     return status(409);
		     watcher_.delete_by_us(key, how.grace_seconds, sent_at);
		     return status(api_.remove(key.name, key.uid, how.grace_seconds));
	     },
	     [this, key, done = std::move(done)](const KubeReply &r) {
		     if (r.status == 0 || r.status >= 500)
			     watcher_.delete_unanswered(key);
		     done(r);
	     });
}

// What a manifest says beyond this the API server remembers by the uid.
void KubeRequests::get_manifest(const PodKey &key, Manifest done)
{
	auto object = std::make_shared<Json>();
	send("get manifest", key, false,
	     [this, key, object] {
		     kube::PodPtr pod = api_.pod(key.name);
		     if (!pod)
			     return status(404);
		     Json meta = Json::object();
		     meta.set("namespace", pod->meta.ns).set("name", pod->meta.name).set("uid", pod->meta.uid);
		     *object = Json::object().set("metadata", meta).set("spec", Json::object());
		     return status(200);
	     },
	     [object, done = std::move(done)](const KubeReply &r) { done(r, r.ok() ? *object : Json()); });
}

KubeReply KubeRequests::make_again(const Json &object)
{
	const Json meta = object["metadata"];
	const std::string name(meta["name"].str());
	const std::string from(meta["annotations"][core::names::resubmitted_from].str());
	if (api_.pod(name))
		return status(409);
	const kube::Pod pod = api_.new_pod_like(from);
	watcher_.made_again_by_us(from, pod);
	KubeReply reply = status(api_.create(pod));
	reply.pod = api_.pod(name);
	return reply;
}

void KubeRequests::create_pod(const std::string &ns, const Json &object, KubePort::Done done)
{
	const PodKey key{"", ns, std::string(object["metadata"]["name"].str()), ""};
	send("create", key, true, [this, object] { return make_again(object); }, std::move(done));
}

void KubeRequests::set_condition(const PodKey &key, const std::string &version, const core::PodCondition &condition,
				 KubePort::Done done)
{
	send("condition", key, true,
	     [this, key, version, condition] {
		     watcher_.condition_by_us(key);
		     return status(api_.set_condition(key.name, version, condition.reason, condition.message));
	     },
	     std::move(done));
}

void KubeRequests::create_event(const PodKey &key, const core::PodEvent &event, KubePort::Done done)
{
	send("event " + event.reason, key, true, [] { return status(201); }, std::move(done));
}

void KubeRequests::get_volumes(const PodKey &key, const std::vector<std::string> &,
			       std::function<void(const Volumes &)> done)
{
	send("volumes", key, false, [] { return status(200); }, [done = std::move(done)](const KubeReply &r) {
		Volumes v;
		v.retry = !r.ok();
		v.error = r.error;
		done(v);
	});
}

} // namespace sk8::sim
